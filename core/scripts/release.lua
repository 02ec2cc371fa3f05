-- release: give back, leave the queue or cancel, whichever applies to the token; the next waiter gets the lease.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 token.
-- Nobody waits, as nearly always: the same as below, in half the time.
if redis.call('PTTL', KEYS[2]) == -2 and redis.pcall('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
    local clock = redis.call('TIME')
    return {'FREE', clock[1] .. string.sub('00000' .. clock[2], -6)}
end
-- include hand_off
local left = leave(ARGV[1])
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then
    return {left == 1 and 'LEFT' or 'GONE', digits(now)}
end
if hand_off('') then
    return {'HANDED', digits(now)}
end
redis.call('DEL', KEYS[1])
return {'FREE', digits(now)}
