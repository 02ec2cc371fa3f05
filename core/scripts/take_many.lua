-- take_many: several locks at once, all or none. A lock that is held, or that has a queue, is taken by nobody here.
-- KEYS: 1 lock, 2 queue, 3 waiters of the first name, 4 fences; then the lock and the queue of each further name.
-- ARGV: 1 not after (server us), 2 ttl ms; then the token of each name, in the same order.
-- Answers GRANTED with the time and the last name's fence: the others have one block less each, from the last to the
-- first. Or BUSY with the time and the number of the first name that is not free.
-- include begin
-- include fences
local count = #ARGV - 2
if now > tonumber(ARGV[1]) then
    return {'LATE', now}
end

local function key_of(i)
    return i == 1 and 1 or 2 * i + 1
end

for i = 1, count do
    local at = key_of(i)
    if call('EXISTS', KEYS[at], KEYS[at + 1]) > 0 then
        return {'BUSY', now, i}
    end
end
call('PEXPIRE', KEYS[1], ARGV[2]) -- a first write that memory limits do not refuse
local size = 2048 * count
local fence = block(size)
if fence and fence < (now + 2000000) * 2048 + size then -- its first blocks are behind the clock: see fences
    fence = block(size)
end
if not fence then
    return {'FOREIGN', now, 'fence'}
end
for i = 1, count do
    call('SET', KEYS[key_of(i)], ARGV[i + 2], 'PX', ARGV[2])
end
return {'GRANTED', now, fence}
