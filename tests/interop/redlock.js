// SPDX-License-Identifier: MIT
// redlock.js - the real redlock, on one server by ioredis.
'use strict';

const {speak, ASK_MS} = require('./actor');

speak(async ({path, name, leaseMs}) => {
    const Redlock = require('redlock');
    const redlock = new Redlock([new (require('ioredis'))(path)], {retryDelay: ASK_MS, retryJitter: ASK_MS / 2});
    let lock;
    return {
        take: async (waitMs) => {
            redlock.retryCount = Math.floor(waitMs / ASK_MS);
            lock = await redlock.lock(name, leaseMs).catch((error) => {
                if (error.name !== 'LockError')
                    throw error;
            });
            return Boolean(lock);
        },
        give: () => lock.unlock(),
    };
});
