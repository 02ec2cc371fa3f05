// SPDX-License-Identifier: MIT
// workers.js - `node x.js PORT WORKERS own|one|baton SECONDS`: workers that take and give back a lock until the time is
// over. Prints sections a second and the longest wait in milliseconds; and for baton, where another process does the
// same, when each section was asked for, taken and given back, in nanoseconds of the machine's clock.
'use strict';

const HELD_MS = 30, AWAY_MS = 15, WARM_MS = 400; // till the loop is compiled

module.exports = async function run(open) {
    const [port, workers, kind, seconds] = process.argv.slice(2);
    const take = open({host: '127.0.0.1', port: Number(port)}); // take(name) resolves to a function that gives it back
    const clock = () => process.hrtime.bigint(), sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const sections = [];
    let done = 0, worst = 0;
    const length = Number(seconds) * 1000, begin = performance.now() + WARM_MS, end = begin + length;

    async function work(number) {
        const name = kind === 'own' ? `neighbour:${number}` : `neighbour:${kind}`;
        for (;;) {
            const asked = performance.now(), section = [clock()];
            if (asked >= end)
                return;
            const give = await take(name);
            const now = performance.now();
            section.push(clock());
            if (now >= begin && now < end) {
                done++;
                worst = Math.max(worst, now - asked);
            }
            if (kind === 'baton') {
                await sleep(HELD_MS);
                section.push(clock());
                sections.push(section);
            }
            await give();
            if (kind === 'baton')
                await sleep(AWAY_MS);
        }
    }

    await Promise.race([
        Promise.all(Array.from({length: Number(workers)}, (_, i) => work(i))),
        new Promise((resolve) => setTimeout(resolve, WARM_MS + length + 2000)),
    ]);
    console.log([(done * 1000 / length).toFixed(1) + ' ' + worst.toFixed(3)]
        .concat(sections.map((section) => section.join(' '))).join('\n'));
    process.exit(0);
};
