-- release: give back, leave the queue or cancel, whichever applies to the token; the next waiter gets the lease, after a
-- reader when it was the last one.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 token.
-- Mostly there is no waiter: then the same as below, in half the time. TIME would cost more than any of these calls.
local held = redis.pcall('GET', KEYS[1])
if held == ARGV[1] and redis.call('PTTL', KEYS[2]) == -2 then
    redis.call('DEL', KEYS[1])
    return 'FREE'
end
-- include hand_off
if type(held) == 'table' and not string.find(held.err, 'WRONGTYPE', 1, true) then
    return call('GET', KEYS[1]) -- what this user may not read may be ours
end
if held == SHARED and is_reader(ARGV[1]) then
    local last = call('ZRANGE', readers, '-2', '-1', 'WITHSCORES')
    local ending = tonumber(last[#last - 1] ~= ARGV[1] and last[#last] or last[#last - 2] or 0)
    if ending >= now then -- another's
        call('ZREM', readers, ARGV[1])
        leave(ARGV[1])
        call('PEXPIRE', KEYS[1], digits(math.ceil((ending - now) / 1000) + 1))
        return {'OTHERS', now}
    end
elseif held ~= ARGV[1] then
    -- include left
    local first = held == SHARED and (typed('ZRANGE', KEYS[2], '0', '0') or {})[1] == ARGV[1]
    local left = leave(ARGV[1]) == 1
    local there = type(held) == 'string' and left_of(ARGV[1], held, readers)
    if there then
        return {'REVOKED', now, there}
    elseif left and held == SHARED then -- it may have wanted the lock alone, and a reader stood behind it; or the other way round
        -- include call_reader
        local head, shares = call_reader(0)
        if first and head and not shares then
            want(SHARED, KEYS[1], KEYS[2])
        end
    end
    return {left and 'LEFT' or 'GONE', now}
end
local how = hand_off('', ARGV[1])
if how then
    if held == SHARED and call('GET', KEYS[1]) ~= SHARED then -- the next one has it alone
        call('DEL', readers)
    end
    return {how, now}
end
leave(ARGV[1])
call('DEL', KEYS[1])
if held == SHARED then
    call('DEL', readers)
end
return 'FREE'
