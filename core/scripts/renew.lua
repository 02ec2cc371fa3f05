-- renew: extend up to 32 leases, forward only, never creating a key.
-- KEYS: the locks. ARGV: token, ttl ms and queue of each. A user who may not read a queue renews all the same.
-- Answers the time, then a code each: 1 extended, 4 extended and a process waits, 0 gone, 2 taken, 3 another key type,
-- 5 this user may not read the key;
-- or, if revoked by an operator, the token that is there instead.
-- include begin
-- include left
local keys, args = KEYS, ARGV

-- True: a process waits. One that has not asked for too long has been killed, and nobody else may look: while readers have the
-- lock, those who come wait for the ones that wait here.
local function is_waited_for(queue)
    local waiters = 'hf:wait:' .. string.sub(queue, 10)
    for _ = 1, 64 do
        local head = try('ZRANGE', queue, '0', '0')[1]
        local record = head and try('HGET', waiters, head)
        if not head or type(record) == 'table' or tonumber(string.match(record or '', '^%d+') or 0) >= now then
            return head
        end
        call('HDEL', waiters, head)
        call('ZREM', queue, head)
    end
    return true
end

-- Takes out readers that have died: until then they are shown, and told of those who wait. That comes first, for memory limits
-- refuse ZADD as a script's first write.
local function read_on(lock, token, ttl, queue)
    local readers = 'hf:held:' .. string.sub(queue, 10)
    local till, ending = try('ZSCORE', readers, token), now + tonumber(ttl) * 1000
    if type(till) == 'table' then
        return till
    elseif not till or tonumber(till) < now then
        return not till and left_of(token, 'hf1:shared', readers) or 0
    end
    call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. string.format('%.0f', now))
    outlive(lock, ttl + 1)
    outlive(readers, ttl + 1)
    if tonumber(till) < ending then
        call('ZADD', readers, string.format('%.0f', ending), token)
    end
    return is_waited_for(queue) and 4 or 1
end

local answer = {now}
for i = 1, #keys do
    local lock, token, ttl = keys[i], args[3 * i - 2], args[3 * i - 1]
    local held = try('GET', lock)
    local code = held
    if held == token then
        if call('PTTL', lock) < tonumber(ttl) then
            call('PEXPIRE', lock, ttl)
        end
        code = try('EXISTS', args[3 * i]) == 1 and 4 or 1
    elseif held == 'hf1:shared' then
        code = read_on(lock, token, ttl, args[3 * i])
    elseif type(held) == 'string' then
        code = left_of(token, held) or 2
    end
    if type(code) == 'table' then
        code = string.find(code.err, 'WRONGTYPE', 1, true) and 3 or 5
    end
    answer[i + 1] = code or 0
end
return answer
