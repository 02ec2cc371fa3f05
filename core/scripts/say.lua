-- part of other scripts: is a token ours, what is its client's channel, and does that have a subscriber.

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

-- Publish R to the holder: a client waits for the lock. 1: the holder receives it; 0: it does not.
local function want(holder, lock)
    return call('PUBLISH', channel(holder), 'R ' .. holder .. ' ' .. lock) > 0 and is_heard(holder) and 1 or 0
end
