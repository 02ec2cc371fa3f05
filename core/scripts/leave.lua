-- part of other scripts: the end of a place in the queue. KEYS: 2 queue, 3 waiters.
local function leave(token)
    typed('HDEL', KEYS[3], token)
    return typed('ZREM', KEYS[2], token)
end

