-- more: another block of fences for the holder's local passes; only the holder can have one, or a
-- reader, whose grant brought a fence that was behind; or who has permits of a semaphore.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 token, 2 ttl ms, 3 size of the block.
-- include begin
-- include fences
local held = typed('GET', KEYS[1])
-- A first write that memory limits do not refuse.
if held == ARGV[1] then
    call('PEXPIRE', KEYS[1], math.max(call('PTTL', KEYS[1]), tonumber(ARGV[2])))
else
    local ends = held == nil and KEYS[1] or 'hf:held:' .. string.sub(KEYS[2], 10)
    local till = (held == nil or held == 'hf1:shared') and typed('ZSCORE', ends, ARGV[1] .. (held and '' or '#1'))
    if tonumber(till or 0) < now then
        return {'GONE', now}
    end
    call('ZREM', ends, '')
end
local fence = block(ARGV[3])
return fence and {'GRANTED', now, fence} or {'FOREIGN', now, 'fence'}
