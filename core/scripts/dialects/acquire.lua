-- acquire in a dialect: as acquire.lua, but for what marks the lock as held, and for the turn of those who know nothing of us.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 lease.
-- ARGV: 1 token, 2 ttl ms, 3 not after (server us), 4 try|wait, 5 echo, 6 ticket or 0, 7 claim ttl ms, 8 patience us, 9 name,
--       10 parameter of the dialect.
local name, parameter, writes, asks = ARGV[9], ARGV[10], true, true
-- include hand_off
-- include turn
-- include wait
local token = ARGV[1]
if now > tonumber(ARGV[3]) then
    return {'LATE', now}
end
typed('HDEL', KEYS[3], '') -- a first write that memory limits do not refuse
local held = holder(token)
if held == nil then
    return {'FOREIGN', now, 'lock'}
end
if held == token then
    leave(token)
    keep(token, ARGV[2])
    local fence = block('2048')
    return fence and {'KEPT', now, fence} or {'FOREIGN', now, 'fence'}
end
if held and not is_ours(held) then
    begins_anew(true, is_fleeting())
end
local free_ms = not held and (ARGV[4] == 'wait' or try('EXISTS', KEYS[2]) == 1) and left_free()
if free_ms then
    held = 'left free'
    ends_in = function()
        return free_ms
    end
end
while not held do
    local whose = hand_off(token)
    if whose == 'MORE' then
        break
    elseif whose ~= 'HANDED' then
        typed('HDEL', KEYS[3], token)
        if whose == 'ME' then
            call('ZREM', KEYS[2], token)
        end
        local fence = block('2048')
        if not fence then
            return {'FOREIGN', now, 'fence'}
        end
        begins_anew(false)
        take(token, ARGV[2])
        return {'GRANTED', now, fence}
    end
    held = holder(token)
end
return wait(token, held)
