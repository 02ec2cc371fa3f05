-- break: an operator takes the lease from its holder. The key stays, under a new token that the holder receives by B.
-- The key ends when the holder has stopped and releases that token, or with its TTL. The same for each reader.
-- With force the next waiter gets the lease now. B makes the holder renew, and the renewal finds the lease over.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 sixteen hex digits, 2 'force' or ''.
-- include hand_off
-- include revoked
local held = typed('GET', KEYS[1])
if held == nil then
    return {'FOREIGN', now, 'lock'}
end
if not held then
    return {'FREE', now}
end
local force = ARGV[2] == 'force'
local shared = held == SHARED
leave(held) -- a first write that memory limits do not refuse
local holders = shared and typed('ZRANGE', readers, '0', '-1', 'WITHSCORES') or {held}
local left = not force and call('PTTL', KEYS[1]) > 0 and revoked(holders[1] or '', shared)
if left and shared then -- each reader's place stays until the reader has stopped
    for i = 1, #holders, 2 do
        local after = revoked(holders[i], true)
        if after and after ~= holders[i] then
            call('ZADD', readers, holders[i + 1], after)
            call('ZREM', readers, holders[i])
        end
    end
elseif left then
    call('SET', KEYS[1], left, 'KEEPTTL')
elseif hand_off('') ~= 'HANDED' then
    call('DEL', KEYS[1])
end
if shared and call('GET', KEYS[1]) ~= SHARED and typed('ZCARD', readers) then
    call('DEL', readers)
end
for i = 1, #holders, shared and 2 or 1 do
    local after = revoked(holders[i], shared)
    if after then
        call('PUBLISH', channel(holders[i]), 'B ' .. holders[i] .. ' ' .. after .. ' ' .. KEYS[1])
    end
end
return {'BROKEN', now}
