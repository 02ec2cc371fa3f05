-- break: an operator takes the lease from its holder. The key stays, under a new token that the holder receives by B.
-- The key ends when the holder has stopped and releases that token, or with its TTL.
-- With force the next waiter gets the lease now. B makes the holder renew, and the renewal finds the lease over.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 sixteen hex digits, 2 'force' or ''.
-- include hand_off
local held = typed('GET', KEYS[1])
if held == nil then
    return {'FOREIGN', now, 'lock'}
end
if not held then
    return {'FREE', now}
end
local head, tail = string.match(held, '^(hf1:%x+:%x+:)%x+(:.*)$')
local force, revoked = ARGV[2] == 'force', head and head .. ARGV[1] .. tail
if head and not force and call('PTTL', KEYS[1]) > 0 then
    leave(held) -- a first write that memory limits do not refuse
    call('SET', KEYS[1], revoked, 'KEEPTTL')
elseif hand_off('') ~= 'HANDED' then
    call('DEL', KEYS[1])
end
if head then
    call('PUBLISH', channel(held), 'B ' .. held .. ' ' .. revoked .. ' ' .. KEYS[1])
end
return {'BROKEN', now}
