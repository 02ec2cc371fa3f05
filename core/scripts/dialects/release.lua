-- release in a dialect: give back, leave the queue or cancel. The next waiter of ours gets the lease, if it is not the others' turn.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 lease. ARGV: 1 token, 2 name, 3 parameter of the dialect.
local name, parameter, writes, asks = ARGV[2], ARGV[3], true, false
-- include hand_off
-- include turn
local token = ARGV[1]
if holder(token) ~= token then
    return {leave(token) == 1 and 'LEFT' or 'GONE', now}
end
local their_turn = is_their_turn()
local how = not their_turn and hand_off('', token)
if how == 'HANDED' then
    goes_on()
end
if how then
    return {how, now}
end
leave(token)
drop(token)
if their_turn then
    leave_it_free()
    local head = (typed('ZRANGE', KEYS[2], '0', '0') or {})[1]
    if head and is_heard(head) then -- it asks now, and hears until when
        call('PUBLISH', channel(head), 'F ' .. head)
    end
elseif turn ~= 0 then
    tell('freed', now)
end
return 'FREE'
