// SPDX-License-Identifier: MIT
// warlock.js - the real node-redis-warlock, on node-redis 3.
'use strict';

const {speak, ASK_MS} = require('./actor');

speak(async ({path, name, leaseMs}) => {
    const warlock = require('node-redis-warlock')(require('redis').createClient({path}));
    let unlock;
    return {
        take: (waitMs) => new Promise((resolve) => {
            warlock.optimistic(name, leaseMs, waitMs / ASK_MS + 1, ASK_MS, (error, given) => resolve(Boolean(unlock = given)));
        }),
        give: () => new Promise((resolve, reject) => {
            unlock((error, count) => (error || count !== 1 ? reject(error || new Error('not ours')) : resolve()));
        }),
    };
});
