// SPDX-License-Identifier: MIT
// redis_semaphore.js - the Mutex of the real redis-semaphore, on ioredis. Its release does not tell whether it was still ours.
'use strict';

const {speak, ASK_MS} = require('./actor');

speak(async ({path, name, leaseMs}) => {
    const {Mutex} = require('redis-semaphore');
    const redis = new (require('ioredis'))(path);
    let mutex;
    return {
        take: (waitMs) => {
            mutex = new Mutex(redis, name, {lockTimeout: leaseMs, acquireTimeout: Math.max(waitMs, 1), retryInterval: ASK_MS,
                onLockLost: () => {}}); // or the process ends
            return mutex.tryAcquire();
        },
        give: () => mutex.release(),
    };
});
