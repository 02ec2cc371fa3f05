-- release_permits: of what the token has, keep so many, mostly none; also leaves the queue, cancels, gives back. How many a
-- token has only ever falls, so these may come late, twice, or in any order.
-- KEYS: 1 permits, 2 queue, 3 waiters, 4 fences. ARGV: 1 token, 2 how many it keeps.
-- Mostly there is no waiter: then the same as below, without the cost of TIME.
if redis.call('PTTL', KEYS[2]) == -2 then
    local keep, had = tonumber(ARGV[2]), false
    while redis.pcall('ZREM', KEYS[1], ARGV[1] .. '#' .. string.format('%.0f', keep + 1)) == 1 do
        had, keep = true, keep + 1
    end
    if had then
        return 'FREE'
    end
end
-- include permits
-- include broken
if not remove_ended() then
    return {'GONE', now}
end
local had, left = give_back(ARGV[1], tonumber(ARGV[2])), false
if ARGV[2] == '0' then
    left = leave(ARGV[1]) == 1
end
local _, served = admit('')
if left and is_wanted(ARGV[1]) then -- as long as it was the head, nobody told its own process of those behind it
    want_permits(ARGV[1], false)
end
if not had then
    local revoked = broken(ARGV[1])
    if call('ZSCORE', KEYS[1], permit_of(revoked, 1)) then
        return {'REVOKED', now, revoked}
    end
    return {left and 'LEFT' or 'GONE', now}
end
return {served and 'HANDED' or 'OTHERS', now}
