-- more: another block of fences for the holder's local passes; only the holder can have one.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 token, 2 ttl ms, 3 size of the block.
-- include clock
-- include fences
if typed('GET', KEYS[1]) ~= ARGV[1] then
    return {'GONE', now}
end
call('PEXPIRE', KEYS[1], math.max(call('PTTL', KEYS[1]), tonumber(ARGV[2])))
local fence = block(ARGV[3])
return fence and {'GRANTED', now, fence} or {'FOREIGN', now, 'fence'}
