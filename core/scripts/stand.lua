-- part of other scripts: a place in the queue. KEYS: 2 queue, 3 waiters. ARGV: 5 echo, 7 claim ttl ms and what else the record
-- tells, 8 patience us.

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

