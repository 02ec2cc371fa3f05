-- acquire: take the lock, or stand in its queue. The same call again is a re-check, and claims what was handed off.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences; for a fetch also 5 data, 6 absent mark.
-- ARGV: 1 token, 2 ttl ms, 3 not after (server us), 4 try|wait, 5 echo, 6 ticket or 0, 7 claim ttl ms,
--       8 patience us; for a fetch also 9 enough ms: data that lives longer is the answer.
-- include hand_off
local token, ttl, ticket = ARGV[1], tonumber(ARGV[2]), ARGV[6]
if now > tonumber(ARGV[3]) then
    return {'LATE', now}
end
local held = redis.pcall('GET', KEYS[1])
if type(held) == 'table' then
    return {'FOREIGN', now, 'lock'}
end
call('PEXPIRE', KEYS[2], 60000)
if held == token then
    if call('PTTL', KEYS[1]) < ttl then
        call('PEXPIRE', KEYS[1], ttl)
    end
    leave(token)
    return {'GRANTED', now, block(2048)}
end
if KEYS[5] then
    local data = redis.pcall('GET', KEYS[5])
    if type(data) == 'table' then
        leave(token)
        return {'FOREIGN', now, 'data'}
    end
    local left = call('PTTL', KEYS[5])
    if data and (left == -1 or left > tonumber(ARGV[9])) then
        leave(token)
        return {'VALUE', now, data, left}
    end
    left = call('PTTL', KEYS[6])
    if not data and left ~= -2 then
        leave(token)
        return {'ABSENT', now, left}
    end
end
if not held then
    if hand_off(token) ~= 'HANDED' then
        local fence = block(2048)
        leave(token)
        call('SET', KEYS[1], token, 'PX', ttl)
        return {'GRANTED', now, fence}
    end
    held = call('GET', KEYS[1])
end
local left, ours = call('PTTL', KEYS[1]), is_ours(held)
if ARGV[4] == 'try' then
    if ours then
        call('PUBLISH', channel(held), 'R ' .. held .. ' ' .. KEYS[1])
    end
    return {'BUSY', now, left, ours and 1 or 0}
end
if ticket == '0' then
    ticket = call('ZSCORE', KEYS[2], token)
    if not ticket then
        local last = call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
        ticket = math.max(last and tonumber(last) + 1 or 0, now)
    end
    ticket = digits(tonumber(ticket))
end
call('ZADD', KEYS[2], ticket, token)
call('HSET', KEYS[3], token, digits(now + tonumber(ARGV[8])) .. ' ' .. ARGV[5] .. ' ' .. ARGV[7])
call('PEXPIRE', KEYS[2], 60000)
call('PEXPIRE', KEYS[3], 60000)
local position = call('ZRANK', KEYS[2], token)
-- The first says R. Those that were killed say nothing, so a re-check makes room.
if ARGV[6] ~= '0' then
    for _ = 1, math.min(position, 64) do
        if record(call('ZRANGE', KEYS[2], 0, 0)[1]) then
            break
        end
        position = position - 1
    end
end
if position == 0 and ours then
    call('PUBLISH', channel(held), 'R ' .. held .. ' ' .. KEYS[1])
end
return {'QUEUED', now, left, position, ticket, ours and 1 or 0}
