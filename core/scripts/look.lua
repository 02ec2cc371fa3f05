-- look: the holder of a lock, the TTL that is left, the number of waiting processes. Writes nothing, so a full server
-- answers it. Inside MULTI such a server refuses every command.
-- KEYS: 1 lock, 2 queue.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return string.find(held.err, 'WRONGTYPE', 1, true) and {'FOREIGN', 'lock'} or held
elseif not held then
    return {'FREE'}
end
local waiting = redis.pcall('ZCARD', KEYS[2])
return {'HELD', held, redis.call('PTTL', KEYS[1]), type(waiting) == 'number' and waiting or 0}
