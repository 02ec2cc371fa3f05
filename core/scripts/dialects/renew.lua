-- renew in a dialect: extend one lease, forward only. KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 lease. ARGV: 1 token, 2 ttl ms,
-- 3 name, 4 parameter of the dialect. Answers the time and a code, as renew.lua.
local name, parameter, writes, asks = ARGV[3], ARGV[4], true, false
-- include begin
-- include fences
-- include say
-- include key
-- include turn
local held = holder(ARGV[1])
if held ~= ARGV[1] then
    return {now, held == nil and 3 or held and 2 or 0}
end
keep(ARGV[1], ARGV[2])
goes_on() -- from thread to thread, perhaps: that ends when it is the others' turn
return {now, (is_their_turn() or try('EXISTS', KEYS[2]) == 1) and 4 or 1}
