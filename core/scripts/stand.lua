-- part of other scripts: who does not get the lock. ARGV: 4 try|wait, 5 echo, 6 ticket or 0, 7 claim ttl ms, 8 patience us.

-- A waiter is in the queue from here on, in the place of its ticket, which is returned. nil and an answer: it cannot be.
local function stand(token, ticket)
    -- A first write that memory limits do not refuse. They would refuse ZADD or HSET here.
    if typed('HDEL', KEYS[3], '') == nil then
        return nil, {'FOREIGN', now, 'wait'}
    end
    local place = typed('ZSCORE', KEYS[2], token)
    if place == nil then
        return nil, {'FOREIGN', now, 'queue'}
    end
    if ticket == '0' then
        local last = call('ZRANGE', KEYS[2], '-1', '-1', 'WITHSCORES')[2]
        ticket = digits(tonumber(place) or math.max(last and tonumber(last) + 1 or 0, now))
    end
    call('ZADD', KEYS[2], ticket, token)
    call('HSET', KEYS[3], token, digits(now + tonumber(ARGV[8])) .. ' ' .. ARGV[5] .. ' ' .. ARGV[7])
    call('PEXPIRE', KEYS[2], '60000')
    call('PEXPIRE', KEYS[3], '60000')
    return ticket
end

-- The answer. left 0 without a holder: more old records are to be dropped, so the caller asks again at once.
local function wait(token, held)
    local left, ours = held and call('PTTL', KEYS[1]) or 0, held and (held == SHARED or is_ours(held))
    if ARGV[4] == 'try' then
        return {'BUSY', now, left, ours and 1 or 0, ours and want(held, KEYS[1], KEYS[2]) or -1}
    end
    local ticket, foreign = stand(token, ARGV[6])
    if foreign then
        return foreign
    end
    local position = call('ZRANK', KEYS[2], token)
    -- Only the head of the queue publishes R. Killed waiters do not, so a re-check drops their old records from the head.
    if ARGV[6] ~= '0' then
        while position > 0 and dropped < 1024 and not record(call('ZRANGE', KEYS[2], '0', '0')[1]) do
            position = position - 1
        end
        left = position > 0 and dropped == 1024 and 0 or left
    end
    return {'QUEUED', now, left, position, ticket, ours and 1 or 0,
            position == 0 and ours and want(held, KEYS[1], KEYS[2]) or -1}
end
