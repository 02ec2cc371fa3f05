-- break in a dialect: the lease ends now, and the next one gets it. Its holder, if it is of us, learns of it by its renewal.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 lease. ARGV: 1 sixteen hex digits, 2 'force' or '', 3 name, 4 parameter.
local name, parameter, writes = ARGV[3], ARGV[4], true
-- include hand_off
-- include revoked
local held = holder('')
if held == nil then
    return {'FOREIGN', now, 'lock'}
elseif not held then
    return {'FREE', now}
end
leave(held)
drop(held)
hand_off('')
local after = revoked(held)
if after then
    call('PUBLISH', channel(held), 'B ' .. held .. ' ' .. after .. ' ' .. KEYS[1])
end
return {'BROKEN', now}
