-- look in a dialect: as look.lua, and writes nothing either.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 lease. ARGV: 1 name, 2 parameter of the dialect.
local name, parameter, writes, asks = ARGV[1], ARGV[2], false, false
-- include begin
-- include fences
-- include say
-- include key
local held = holder('')
if held == nil then
    return {'FOREIGN', 'lock'}
elseif not held then
    return {'FREE'}
end
local waiting = try('ZCARD', KEYS[2])
return {'HELD', string.sub(held, 1, 256), ends_in(held), type(waiting) == 'number' and waiting or 0}
