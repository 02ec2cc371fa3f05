-- more: another block of fences for the holder's local passes; only the holder can have one, or a
-- reader, whose grant brought a fence that was behind; or who has permits of a semaphore.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 token, 2 ttl ms, 3 size of the block.
-- include clock
-- include fences
local held = typed('GET', KEYS[1])
local till = held == 'hf1:shared' and typed('ZSCORE', 'hf:held:' .. string.sub(KEYS[2], 10), ARGV[1]) or
             held == nil and typed('ZSCORE', KEYS[1], ARGV[1] .. '#1')
if held ~= ARGV[1] and tonumber(till or 0) < now then
    return {'GONE', now}
end
call('PEXPIRE', KEYS[1], math.max(call('PTTL', KEYS[1]), held == ARGV[1] and tonumber(ARGV[2]) or 0))
local fence = block(ARGV[3])
return fence and {'GRANTED', now, fence} or {'FOREIGN', now, 'fence'}
