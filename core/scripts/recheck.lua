-- recheck: up to 32 waiters of one client, each for its own name, renew their records. It grants nothing and makes no
-- place in a queue. A token that is not plainly waiting as before is answered 0, left alone, and asks by acquire.
-- KEYS: lock, queue, waiters of each. ARGV: 1 not after (server us), 2 patience us, 3 echo, 4 claim ttl ms; the tokens.
-- Answers the time, then `pttl position ours heard` of each, or 0.
-- include clock
-- include say
local in_time = now <= tonumber(ARGV[1])
local record = string.format('%.0f', now + tonumber(ARGV[2])) .. ' ' .. ARGV[3] .. ' ' .. ARGV[4]
local answer = {now}

-- True: no old record is to be dropped at the head of the queue. To drop it is acquire's task.
local function is_in_place(position, queue, waiters)
    if position == 0 then
        return true
    end
    local head = call('ZRANGE', queue, '0', '0')[1]
    local told = try('HGET', waiters, head)
    local till = type(told) == 'string' and string.match(told, '^(%d+) ')
    return till and tonumber(till) >= now
end

local function wait_on(token, lock, queue, waiters)
    local held = try('GET', lock)
    local position = type(held) == 'string' and held ~= token and try('ZRANK', queue, token)
    if type(position) ~= 'number' or not is_in_place(position, queue, waiters) then
        return 0
    end
    call('PEXPIRE', queue, '60000')
    if type(try('HSET', waiters, token, record)) == 'table' then
        return 0
    end
    call('PEXPIRE', waiters, '60000')
    local ours = is_ours(held)
    local heard = ours and position == 0 and want(held, lock) or -1
    return string.format('%.0f %d %d %d', call('PTTL', lock), position, ours and 1 or 0, heard)
end

for i = 1, #KEYS / 3 do
    answer[i + 1] = in_time and wait_on(ARGV[i + 4], KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]) or 0
end
return answer
