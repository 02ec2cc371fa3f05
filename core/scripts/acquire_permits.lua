-- acquire_permits: take some of a limited number, or join the queue. The same call again is a re-check, and claims what was
-- handed off.
-- KEYS: 1 permits, 2 queue, 3 waiters, 4 fences.
-- ARGV: 1 token, 2 ttl ms, 3 not after (server us), 4 try|wait, 5 echo, 6 ticket or 0, 7 claim ttl ms, permits and limit,
--       parted by blanks, 8 patience us, 9 how many permits are of use if nobody else waits.
-- Answers GRANTED with the time, the first fence, the number of permits that the token has, and how many are out; or as acquire does.
-- include permits
-- include stand
local token, ttl, ticket = ARGV[1], tonumber(ARGV[2]), ARGV[6]
local permits, limit = string.match(ARGV[7], '^%d+ (%d+) (%d+)$')
permits, limit = tonumber(permits), tonumber(limit)
if now > tonumber(ARGV[3]) then
    return {'LATE', now}
end
if not remove_ended() then
    return {'FOREIGN', now, 'permits'}
end

-- Ends move forward only: the question may be an old one, with a shorter lease. And after a shrink that was lost, the renewals
-- moved only those that were kept.
local function granted(count)
    leave(token)
    local fence = block('2048')
    if not fence then
        return {'FOREIGN', now, 'fence'}
    end
    local first, last = call('ZSCORE', KEYS[1], permit_of(token, 1)), call('ZSCORE', KEYS[1], permit_of(token, count))
    if tonumber(last or 0) < now + ttl * 1000 then
        take(token, count, math.max(ttl, math.ceil((tonumber(first or 0) - now) / 1000)))
    end
    return {'GRANTED', now, fence, count, call('ZCARD', KEYS[1])}
end

local has = 0
while call('ZSCORE', KEYS[1], permit_of(token, has + 1)) do
    has = has + 1
end
if has > 0 then -- handed off, or granted by a question whose answer was lost
    return granted(has)
end
local place = typed('ZSCORE', KEYS[2], token)
-- Who has a ticket stands in its place before anything is decided, and what it says now counts. A try has no place: what was
-- said there was for other numbers.
if ARGV[4] == 'try' then
    leave(token)
    place = false
elseif place or ticket ~= '0' then
    local stands, foreign = stand(token, ticket)
    if not stands then
        return foreign
    end
    place = true
end
local word = admit(token)
if word == 'ME' or not word and not place and fits(permits, limit) then
    leave(token)
    if (typed('ZCARD', KEYS[2]) or 0) == 0 then
        permits = math.max(permits, math.min(tonumber(ARGV[9]), limit - call('ZCARD', KEYS[1])))
    end
    local answer = granted(permits)
    if word == 'ME' then
        admit('')
    end
    tell_wanted(token)
    return answer
end
local soonest = call('ZRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2]
local left = soonest and math.ceil((tonumber(soonest) - now) / 1000) or 0
if ARGV[4] == 'try' then
    return {'BUSY', now, left, 1, want_permits(token, true)}
end
local foreign
if place then
    ticket = digits(tonumber(call('ZSCORE', KEYS[2], token)))
else
    ticket, foreign = stand(token, ticket)
end
if foreign then
    return foreign
end
local position = call('ZRANK', KEYS[2], token)
if dropped == 1024 then -- as in wait
    return {'QUEUED', now, 0, position, ticket, 0, -1}
end
if position == 1 then -- the head told the others, and its own process may have permits too
    local head = call('ZRANGE', KEYS[2], '0', '0')[1]
    if channel(head) ~= channel(token) then
        call('PUBLISH', channel(head), 'R ' .. head .. ' ' .. KEYS[1])
    end
end
return {'QUEUED', now, left, position, ticket, 1, position == 0 and want_permits(token, true) or -1}
