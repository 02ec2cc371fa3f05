-- downgrade: the holder goes on as a reader, beside the readers that stand at the head of the queue. Nobody has had the lock
-- in between. The same call again changes nothing.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 token, 2 ttl ms.
-- include hand_off
-- include left
-- include call_reader
-- include read_first
-- include readers
local held = typed('GET', KEYS[1])
if held == nil then
    return {'FOREIGN', now, 'lock'}
elseif held == SHARED and is_reader(ARGV[1]) then
    return {'SHARED', now}
elseif held ~= ARGV[1] then
    local there = held and left_of(ARGV[1], held, readers)
    return there and {'REVOKED', now, there} or {'GONE', now}
elseif not typed('ZCARD', readers) then
    return {'FOREIGN', now, 'held'}
end
read_first(ARGV[1], math.max(call('PTTL', KEYS[1]), tonumber(ARGV[2])))
let_in()
return {'SHARED', now}
