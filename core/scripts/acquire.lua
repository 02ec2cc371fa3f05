-- acquire: take the lock, or join its queue. The same call again is a re-check, and claims a lease that was handed off.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences; for a fetch also 5 data, 6 absent mark.
-- ARGV: 1 token, 2 ttl ms, 3 not after (server us), 4 try|wait, 5 echo, 6 ticket or 0, 7 claim ttl ms,
--       8 patience us; for a fetch also 9 enough ms: data with a longer TTL is the answer.
-- include hand_off
local token, ticket = ARGV[1], ARGV[6]
if now > tonumber(ARGV[3]) then
    return {'LATE', now}
end
local held = typed('GET', KEYS[1])
if held == nil then
    return {'FOREIGN', now, 'lock'}
end
if held == token then
    leave(token)
    if call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
        call('PEXPIRE', KEYS[1], ARGV[2])
    end
    local fence = block('2048')
    return fence and {'GRANTED', now, fence} or {'FOREIGN', now, 'fence'}
end
if KEYS[5] then
    local data = typed('GET', KEYS[5])
    local left = call('PTTL', KEYS[data and 5 or 6])
    if data == nil then
        leave(token)
        return {'FOREIGN', now, 'data'}
    elseif data and (left == -1 or left > tonumber(ARGV[9])) then
        leave(token)
        return {'VALUE', now, data, left}
    elseif not data and left ~= -2 then
        leave(token)
        return typed('GET', KEYS[6]) == nil and {'FOREIGN', now, 'absent'} or {'ABSENT', now, left}
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
-- left 0 without a holder: more old records are to be dropped, so the caller asks again at once.
local left, ours = held and call('PTTL', KEYS[1]) or 0, held and is_ours(held)
if ARGV[4] == 'try' then
    return {'BUSY', now, left, ours and 1 or 0, ours and want(held, KEYS[1]) or -1}
end
-- A first write that memory limits do not refuse. They would refuse ZADD or HSET here.
if typed('HDEL', KEYS[3], '') == nil then
    return {'FOREIGN', now, 'wait'}
end
local place = typed('ZSCORE', KEYS[2], token)
if place == nil then
    return {'FOREIGN', now, 'queue'}
end
if ticket == '0' then
    local last = call('ZRANGE', KEYS[2], '-1', '-1', 'WITHSCORES')[2]
    ticket = digits(tonumber(place) or math.max(last and tonumber(last) + 1 or 0, now))
end
call('ZADD', KEYS[2], ticket, token)
call('HSET', KEYS[3], token, digits(now + tonumber(ARGV[8])) .. ' ' .. ARGV[5] .. ' ' .. ARGV[7])
call('PEXPIRE', KEYS[2], '60000')
call('PEXPIRE', KEYS[3], '60000')
local position = call('ZRANK', KEYS[2], token)
-- Only the head of the queue publishes R. Killed waiters do not, so a re-check drops their old records from the head.
if ARGV[6] ~= '0' then
    while position > 0 and dropped < 1024 and not record(call('ZRANGE', KEYS[2], '0', '0')[1]) do
        position = position - 1
    end
    left = position > 0 and dropped == 1024 and 0 or left
end
return {'QUEUED', now, left, position, ticket, ours and 1 or 0, position == 0 and ours and want(held, KEYS[1]) or -1}
