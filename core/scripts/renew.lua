-- renew: extend up to 32 leases, forward only, never creating a key.
-- KEYS: the locks. ARGV: token, ttl ms and queue of each. A user who may not read a queue renews all the same.
-- Answers the time, then a code each: 1 extended, 4 extended and a process waits, 0 gone, 2 taken, 3 another key type,
-- 5 this user may not read the key;
-- or, if revoked by an operator, the token that is there instead.
-- include clock
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

-- ZREM comes first: memory limits refuse ZADD as a script's first write. A break leaves half of the digits.
local function read_on(lock, token, ttl, queue)
    local readers = 'hf:held:' .. string.sub(queue, 10)
    local till, ending = tonumber(try('ZSCORE', readers, token)), now + tonumber(ttl) * 1000
    if not till or till < now then
        local revoked = string.gsub(token, '^(hf1:%x+:%x+:)%x%x%x%x%x%x%x%x', '%1ffffffff')
        return not till and tonumber(try('ZSCORE', readers, revoked)) and revoked or 0
    end
    call('ZREM', readers, '')
    outlive(lock, ttl + 1)
    outlive(readers, ttl + 1)
    if till < ending then
        call('ZADD', readers, string.format('%.0f', ending), token)
    end
    return is_waited_for(queue) and 4 or 1
end

local answer = {now}
for i = 1, #keys do
    local lock, token, ttl = keys[i], args[3 * i - 2], args[3 * i - 1]
    local held = try('GET', lock)
    if held == token then
        if call('PTTL', lock) < tonumber(ttl) then
            call('PEXPIRE', lock, ttl)
        end
        answer[i + 1] = try('EXISTS', args[3 * i]) == 1 and 4 or 1
    elseif held == 'hf1:shared' then
        answer[i + 1] = read_on(lock, token, ttl, args[3 * i])
    elseif type(held) == 'table' then
        answer[i + 1] = string.find(held.err, 'WRONGTYPE', 1, true) and 3 or 5
    elseif not held then
        answer[i + 1] = 0
    elseif string.match(held, '^hf1:%x+:%x+:') == string.match(token, '^hf1:%x+:%x+:') then
        answer[i + 1] = held
    else
        answer[i + 1] = 2
    end
end
return answer
