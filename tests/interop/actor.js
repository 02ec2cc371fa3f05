// SPDX-License-Identifier: MIT
// actor.js - a neighbour in node: speak(open) in a script that is started as SCRIPT URL NAME. open({path, name, leaseMs}) gives
// {take(waitMs), give()}, both asynchronous: whether it has it, and a rejection if the lock was lost. README.md has the words.
'use strict';

const Redis = require('ioredis');

const FOREVER_MS = 1e9;
const say = (line) => process.stdout.write(line + '\n');
console.log = console.error; // what a library says is no answer
const clock = () => process.hrtime.bigint();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

exports.ASK_MS = 10; // how often who polls asks again

function numbers(seed) { // in [0, 1), the same for the same seed
    let state = (Number(seed) + 1) >>> 0;
    return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

class Actor {
    constructor(redis, name, lock) {
        Object.assign(this, {redis, name, lock});
    }

    key(what) {
        return `interop:${what}:${this.name}`;
    }

    async take(waitMs) {
        const asked = clock();
        return await this.lock.take(Number(waitMs)) ? `took ${asked} ${clock()} 0` : 'not BUSY';
    }

    async give() {
        const began = clock();
        await this.lock.give();
        return `gave ${began} ${clock()}`;
    }

    async count(sections, awayUs, seed) {
        const next = numbers(seed);
        let most = 0;
        for (let i = 0; i < Number(sections); i++) {
            if (!await this.lock.take(FOREVER_MS))
                return 'not BUSY';
            most = Math.max(most, await this.redis.incr(this.key('inside')));
            await this.redis.set(this.key('count'), Number(await this.redis.get(this.key('count'))) + 1);
            await this.redis.rpush(this.key('log'), '-');
            await this.redis.decr(this.key('inside'));
            await this.lock.give();
            await sleep(next() * Number(awayUs) / 1000);
        }
        return `counted ${sections} ${most}`;
    }

    async look(pages) {
        for (let page = 0; page < Number(pages); page++) {
            if (await this.redis.exists(this.key(`page:${page}`)))
                continue;
            if (!await this.lock.take(FOREVER_MS))
                return 'not BUSY';
            if (!await this.redis.exists(this.key(`page:${page}`))) {
                await this.redis.incr(this.key(`loads:${page}`));
                await this.redis.set(this.key(`page:${page}`), 'loaded');
            }
            await this.lock.give();
        }
        return 'looked';
    }

    async baton(sections, seed) {
        const next = numbers(seed), words = ['batons'];
        for (let i = 0; i < Number(sections); i++) {
            const asked = clock();
            if (!await this.lock.take(FOREVER_MS))
                return 'not BUSY';
            const taken = clock();
            await sleep(20 + next() * 20);
            words.push(`${asked},${taken},${clock()}`);
            await this.lock.give();
            await sleep(5 + next() * 10);
        }
        return words.join(' ');
    }
}

exports.speak = async function speak(open) {
    const url = new URL(process.argv[2]), name = process.argv[3], path = url.pathname;
    const redis = new Redis(path);
    const actor = new Actor(redis, name, await open({path, name, leaseMs: Number(url.searchParams.get('lease_ms') || 10000)}));
    await redis.ping();
    say('ready');
    for await (const line of require('readline').createInterface({input: process.stdin})) {
        const [word, ...words] = line.split(' ');
        say(await actor[word](...words).catch((error) => `lost ${error.message}`));
    }
    process.exit(0);
};
