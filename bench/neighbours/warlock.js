// SPDX-License-Identifier: MIT
// warlock.js - node-redis-warlock, asking again every 10 ms.
'use strict';

require('./workers')((where) => {
    const warlock = require('node-redis-warlock')(require('redis').createClient(where));
    return (name) => new Promise((resolve, reject) => {
        warlock.optimistic(name, 10000, 1e9, 10, (error, unlock) => {
            if (error)
                reject(error);
            else
                resolve(() => new Promise((given) => unlock(given)));
        });
    });
});
