// SPDX-License-Identifier: MIT
// workers.js - `node x.js PORT WORKERS own|one SECONDS`: workers that take and give back a lock until the time is over.
// Prints sections a second and the longest wait in milliseconds.
'use strict';

module.exports = async function run(open) {
    const [port, workers, kind, seconds] = process.argv.slice(2);
    const redis = require('redis').createClient({host: '127.0.0.1', port: Number(port)});
    const take = open(redis); // take(name) resolves to a function that gives it back
    let done = 0, worst = 0, from = 0;
    const length = Number(seconds) * 1000, begin = performance.now() + length / 10, end = begin + length;

    async function work(number) {
        const name = kind === 'own' ? `neighbour:${number}` : 'neighbour:one';
        for (;;) {
            const asked = performance.now();
            if (asked >= end)
                return;
            const give = await take(name);
            const now = performance.now();
            if (now >= begin && now < end) {
                done++;
                worst = Math.max(worst, now - asked);
            }
            await give();
        }
    }

    await Promise.race([
        Promise.all(Array.from({length: Number(workers)}, (_, i) => work(i))),
        new Promise((resolve) => setTimeout(resolve, length * 1.1 + 2000)),
    ]);
    console.log((done * 1000 / length).toFixed(1), worst.toFixed(3));
    process.exit(0);
};
