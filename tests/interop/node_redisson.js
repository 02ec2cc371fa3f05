// SPDX-License-Identifier: MIT
// node_redisson.js - the real node-redisson: not Redisson, but another implementation of its keys, scripts and channel. Its wait
// is over when the holder's lease is, so it is asked again until its time is.
'use strict';

const {speak} = require('./actor');

speak(async ({path, name, leaseMs}) => {
    const {Redisson} = require('node-redisson');
    const redisson = new Redisson({redis: {options: {path}}, lockWatchdogTimeout: BigInt(leaseMs)});
    const lock = redisson.getLock(name);
    return {
        take: async (waitMs) => {
            const end = performance.now() + waitMs;
            let left, taken;
            do {
                left = Math.max(Math.ceil(end - performance.now()), 0);
                taken = await lock.tryLock(BigInt(left), true);
            } while (!taken && left > 0);
            return taken;
        },
        give: () => lock.unlock(),
    };
});
