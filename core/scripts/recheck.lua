-- recheck: up to 32 waiters of one client, each for its own name, renew their records. It grants nothing and makes no
-- place in a queue. A token that is not plainly waiting as before is answered 0, left alone, and asks by acquire.
-- KEYS: lock, queue, waiters of each. ARGV: 1 not after (server us), 2 patience us, 3 echo, 4 claim ttl ms, of readers with ` s`; the tokens.
-- Answers the time, then `pttl position ours heard` of each, or 0.
-- include begin
-- include say
local in_time = now <= tonumber(ARGV[1])
local record = string.format('%.0f', now + tonumber(ARGV[2])) .. ' ' .. ARGV[3] .. ' ' .. ARGV[4]
local reads, told, answer = string.sub(ARGV[4], -1) == 's', 0, {now}

-- False: acquire's task. An old record is to be dropped at the head of the queue; or it may come in, with the reader there.
local function is_in_place(position, held, queue, waiters)
    local may_read = reads and held == SHARED
    if position == 0 then
        return not may_read
    end
    local head = call('ZRANGE', queue, '0', '0')[1]
    local record = try('HGET', waiters, head)
    local till, _, _, mode = string.match(type(record) == 'string' and record or '', '^(%d+) (%d+) (%d+)(.*)$')
    return till and tonumber(till) >= now and not (may_read and mode == ' s')
end

local function wait_on(token, lock, queue, waiters)
    local held = try('GET', lock)
    local position = type(held) == 'string' and held ~= token and try('ZRANK', queue, token)
    if type(position) ~= 'number' or not is_in_place(position, held, queue, waiters) then
        return 0
    end
    told = told + (held == SHARED and position == 0 and 1 or 0)
    if told > 1 then -- 64 readers hear of it: once in a script
        return 0
    end
    call('PEXPIRE', queue, '60000')
    if type(try('HSET', waiters, token, record)) == 'table' then
        return 0
    end
    call('PEXPIRE', waiters, '60000')
    local ours = held == SHARED or is_ours(held)
    local heard = ours and position == 0 and want(held, lock, queue) or -1
    return string.format('%.0f %d %d %d', call('PTTL', lock), position, ours and 1 or 0, heard)
end

for i = 1, #KEYS / 3 do
    answer[i + 1] = in_time and wait_on(ARGV[i + 4], KEYS[3 * i - 2], KEYS[3 * i - 1], KEYS[3 * i]) or 0
end
return answer
