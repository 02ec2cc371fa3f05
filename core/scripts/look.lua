-- look: who holds a lock, for how long still, how many processes wait. Writes nothing, so a full server answers it, which
-- refuses whatever is said inside MULTI.
-- KEYS: 1 lock, 2 queue.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return string.find(held.err, 'WRONGTYPE', 1, true) and {'FOREIGN', 'lock'} or held
elseif not held then
    return {'FREE'}
end
local waiting = redis.pcall('ZCARD', KEYS[2])
return {'HELD', held, redis.call('PTTL', KEYS[1]), type(waiting) == 'number' and waiting or 0}
