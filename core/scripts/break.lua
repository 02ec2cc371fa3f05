-- break: an operator takes the lease from its holder. The key stays, under a token that the holder is told and gives
-- back when it has stopped, or until it would have ended anyway.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences. ARGV: 1 sixteen random hex digits.
-- include hand_off
local held = typed('GET', KEYS[1])
if held == nil then
    return {'FOREIGN', now, 'lock'}
end
if not held then
    return {'FREE', now}
end
local head, tail = string.match(held, '^(hf1:%x+:%x+:)%x+(:.*)$')
if head and call('PTTL', KEYS[1]) > 0 then
    local revoked = head .. ARGV[1] .. tail
    leave(held) -- a first write that memory limits do not refuse
    call('SET', KEYS[1], revoked, 'KEEPTTL')
    call('PUBLISH', channel(held), 'B ' .. held .. ' ' .. revoked .. ' ' .. KEYS[1])
elseif hand_off('') ~= 'HANDED' then
    call('DEL', KEYS[1])
end
return {'BROKEN', now}
