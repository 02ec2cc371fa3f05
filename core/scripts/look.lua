-- look: the holder of a lock, the TTL that is left, the number of waiting processes. Writes nothing, so a full server
-- answers it. Inside MULTI such a server refuses every command.
-- KEYS: 1 lock, 2 queue.
-- Answers FREE, FOREIGN, HELD with the value, or SHARED with the tokens of up to 64 readers behind the two numbers.
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return string.find(held.err, 'WRONGTYPE', 1, true) and {'FOREIGN', 'lock'} or held
elseif not held then
    return {'FREE'}
end
local left, waiting = redis.call('PTTL', KEYS[1]), redis.pcall('ZCARD', KEYS[2])
waiting = type(waiting) == 'number' and waiting or 0
if held == 'hf1:shared' then
    local readers = redis.pcall('ZRANGE', 'hf:held:' .. string.sub(KEYS[2], 10), '-64', '-1')
    return {'SHARED', left, waiting, unpack(readers.err and {} or readers)}
end
return {'HELD', string.sub(held, 1, 256), left, waiting}
