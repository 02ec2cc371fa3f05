// SPDX-License-Identifier: MIT
// semaphore.js - redis-semaphore's Mutex on ioredis, asking again every 10 ms, as it does by itself.
'use strict';

require('./workers')((where) => {
    const {Mutex} = require('redis-semaphore');
    const Redis = require('ioredis');
    const redis = new Redis(where);
    return async (name) => {
        const mutex = new Mutex(redis, name, {lockTimeout: 10000, acquireTimeout: 1e9, retryInterval: 10});
        await mutex.acquire();
        return () => mutex.release();
    };
});
