-- forget_tag: delete the values of a tag, as many as one script should, and mark it, so that no load that began before stores one.
-- KEYS: 1 tag, 2 fences.
-- Answers DONE, or MORE if there are more of them, with the time, how many were there, and the keys of all.
-- include begin
-- include fences
local left = call('PTTL', KEYS[1])
if typed('ZREM', KEYS[1], KEYS[2]) == nil then -- no value's key: only a first write that memory limits do not refuse
    return {'FOREIGN', now, 'tag'}
end
-- A block of its own: no lease was given a higher fence before, and each one from here on is, whatever the clock does. Without
-- a counter none is granted.
local highest = block('2048', KEYS[2]) or (now + 2000000) * 2048
call('ZADD', KEYS[1], digits(highest), '')
outlive(KEYS[1], 86400000, left) -- a load that takes longer stores nothing under a tag
-- All clients wait meanwhile, and a reply is to fit into any lane's limit.
local keys, bytes, there = {}, 0, 0
for _, key in ipairs(call('ZRANGE', KEYS[1], '0', '249')) do
    if key ~= '' and bytes < 32768 then
        keys[#keys + 1] = key
        bytes = bytes + #key
    end
end
if #keys > 0 then
    there = call('DEL', unpack(keys))
    call('ZREM', KEYS[1], unpack(keys))
end
return {call('ZCARD', KEYS[1]) > 1 and 'MORE' or 'DONE', now, there, unpack(keys)}
