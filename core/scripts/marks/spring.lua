-- part of other scripts, in place of key.lua: a string, and a message by which the others learn of its end: on a channel of the
-- key, in older versions on one for all.
-- include marks/string
local function drop(token)
    call('DEL', KEYS[1])
    call('PUBLISH', parameter .. '-channel:' .. KEYS[1], KEYS[1])
    call('PUBLISH', parameter .. '-channel', KEYS[1])
end
