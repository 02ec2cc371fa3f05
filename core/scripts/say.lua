-- part of other scripts: whose a token is, what its client is told, and whether it hears.

local function is_ours(value)
    return string.sub(value, 1, 4) == 'hf1:' and string.sub(value, 37, 37) == ':'
end

local function channel(token)
    return 'hf:c:' .. string.sub(token, 5, 36)
end

-- NUMSUB does not count who listens to everything by a pattern, a monitor for one. To a user who may not ask, PUBLISH
-- says it, and counts those too.
local function is_heard(token)
    return (try('PUBSUB', 'NUMSUB', channel(token))[2] or call('PUBLISH', channel(token), 'P')) > 0
end

-- The holder is told that somebody waits for the lock. 1: it hears that; 0.
local function want(holder, lock)
    return call('PUBLISH', channel(holder), 'R ' .. holder .. ' ' .. lock) > 0 and is_heard(holder) and 1 or 0
end
