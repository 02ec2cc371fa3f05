-- part of other scripts: who does not get the lock. KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 4 try|wait, 6 ticket
-- or 0; and those of stand.
-- include stand
-- The answer. left 0, and nobody of us holds: more old records are to be dropped, so the caller asks again at once.
local function wait(token, held)
    local left, ours = held and ends_in(held) or 0, held and (held == SHARED or is_ours(held))
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
    end
    if position > 0 and dropped == 1024 then
        left, ours = 0, false
    end
    return {'QUEUED', now, left, position, ticket, ours and is_all_ours() and 1 or 0,
            position == 0 and ours and want(held, KEYS[1], KEYS[2]) or -1}
end
