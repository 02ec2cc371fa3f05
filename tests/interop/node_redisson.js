// SPDX-License-Identifier: MIT
// node_redisson.js - the real node-redisson: not Redisson, but another implementation of its keys, scripts and channel.
'use strict';

const {speak} = require('./actor');

speak(async ({path, name, leaseMs}) => {
    const {Redisson} = require('node-redisson');
    const redisson = new Redisson({redis: {options: {path}}, lockWatchdogTimeout: BigInt(leaseMs)});
    const lock = redisson.getLock(name);
    return {
        take: (waitMs) => lock.tryLock(BigInt(waitMs), true),
        give: () => lock.unlock(),
    };
});
