-- acquire: take the lock, or join its queue. The same call again is a re-check, and claims a lease that was handed off.
-- KEPT: granted, and the token had it already.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences; for a fetch also 5 data, 6 absent mark.
-- ARGV: 1 token, 2 ttl ms, 3 not after (server us), 4 try|wait, 5 echo, 6 ticket or 0, 7 claim ttl ms,
--       8 patience us; for a fetch also 9 enough ms: data with a longer TTL is the answer.
-- include hand_off
-- include wait
local token = ARGV[1]
if now > tonumber(ARGV[3]) then
    return {'LATE', now}
end
local held = typed('GET', KEYS[1])
if held == nil then
    return {'FOREIGN', now, 'lock'}
end
if held == token or held == SHARED and is_reader(token) then -- the latter: a late question, it was downgraded meanwhile
    leave(token)
    if held == token and call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
        call('PEXPIRE', KEYS[1], ARGV[2])
    end
    local fence = block('2048')
    return fence and {'KEPT', now, fence} or {'FOREIGN', now, 'fence'}
end
if KEYS[5] then
    local left = call('PTTL', KEYS[5])
    local enough = left == -1 or left > tonumber(ARGV[9])
    local data = left == -2 or typed(enough and 'GET' or 'STRLEN', KEYS[5]) -- what is to be replaced may be long
    local mark = left == -2 and call('PTTL', KEYS[6]) or -2
    local answer = not data and {'FOREIGN', now, 'data'} or enough and {'VALUE', now, data, left} or
        mark ~= -2 and (typed('GET', KEYS[6]) and {'ABSENT', now, mark} or {'FOREIGN', now, 'absent'})
    if answer then
        leave(token)
        return answer
    end
end
if not held then
    local whose = hand_off(token)
    if whose ~= 'HANDED' and whose ~= 'MORE' then
        typed('HDEL', KEYS[3], token) -- a first write that memory limits do not refuse
        if whose == 'ME' then
            call('ZREM', KEYS[2], token)
        end
        local fence = block('2048')
        if not fence then
            return {'FOREIGN', now, 'fence'}
        end
        call('SET', KEYS[1], token, 'PX', ARGV[2])
        return {'GRANTED', now, fence}
    end
    held = call('GET', KEYS[1])
end
return wait(token, held)
