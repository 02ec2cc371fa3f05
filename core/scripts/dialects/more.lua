-- more in a dialect: another block of fences for the holder's local passes.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 lease. ARGV: 1 token, 2 ttl ms, 3 size of the block, 4 name, 5 parameter.
local name, parameter, writes, asks = ARGV[4], ARGV[5], true, false
-- include begin
-- include fences
-- include say
-- include key
if holder(ARGV[1]) ~= ARGV[1] then
    return {'GONE', now}
end
keep(ARGV[1], ARGV[2])
typed('HDEL', KEYS[3], '') -- a first write that memory limits do not refuse
local fence = block(ARGV[3])
return fence and {'GRANTED', now, fence} or {'FOREIGN', now, 'fence'}
