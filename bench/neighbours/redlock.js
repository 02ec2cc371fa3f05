// SPDX-License-Identifier: MIT
// redlock.js - redlock on one server, asking again every 10 ms.
'use strict';

require('./workers')((where) => {
    const Redlock = require('redlock');
    const redlock = new Redlock([require('redis').createClient(where)],
        {retryCount: -1, retryDelay: 10, retryJitter: 5});
    return async (name) => {
        const lock = await redlock.lock(name, 10000);
        return () => lock.unlock();
    };
});
