// SPDX-License-Identifier: MIT
// warlock.js - node-redis-warlock, asking again every 10 ms.
'use strict';

require('./workers')((redis) => {
    const warlock = require('node-redis-warlock')(redis);
    return (name) => new Promise((resolve, reject) => {
        warlock.optimistic(name, 10000, 1e9, 10, (error, unlock) => {
            if (error)
                reject(error);
            else
                resolve(() => new Promise((given) => unlock(given)));
        });
    });
});
