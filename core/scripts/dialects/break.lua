-- break in a dialect: the lease ends now, and the next one gets it. Its holder, if it is of us, learns of it by its renewal.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 lease. ARGV: 1 sixteen hex digits, 2 'force' or '', 3 name, 4 parameter.
local name, parameter, writes, asks = ARGV[3], ARGV[4], true, false
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
if holder('') == false then -- others may have it as well
    hand_off('')
end
local after = revoked(held)
if after then
    call('PUBLISH', channel(held), 'B ' .. held .. ' ' .. after .. ' ' .. KEYS[1])
end
return {'BROKEN', now}
