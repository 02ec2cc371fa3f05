-- part of other scripts: is a token ours, what is its client's channel, and does that have a subscriber.

-- The lock's value while readers have it. It is no token, so programs that know only tokens, and older versions of us, find
-- the lock held by somebody else. Who the readers are tells a key of their own, in the slot of the queue.
local SHARED = 'hf1:shared'
local function readers_of(queue)
    return 'hf:held:' .. string.sub(queue, 10)
end

local function is_ours(value)
    return string.sub(value, 1, 4) == 'hf1:' and string.sub(value, 37, 37) == ':'
end

local function channel(token)
    return 'hf:c:' .. string.sub(token, 5, 36)
end

-- NUMSUB does not count subscribers by a pattern, such as a monitor. For a user without the right to NUMSUB the count
-- comes from PUBLISH, which includes those.
local function is_heard(token)
    return (try('PUBSUB', 'NUMSUB', channel(token))[2] or call('PUBLISH', channel(token), 'P')) > 0
end

-- Publish R to the holder, or to the 64 readers whose leases end last: a client waits for the lock. 1: they receive it; 0: one
-- of them does not.
local function want(holder, lock, queue)
    local all = true
    for _, token in ipairs(holder == SHARED and try('ZRANGE', readers_of(queue), '-64', '-1') or {holder}) do
        all = call('PUBLISH', channel(token), 'R ' .. token .. ' ' .. lock) > 0 and all and is_heard(token)
    end
    return all and 1 or 0
end
