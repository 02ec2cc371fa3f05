-- part of other scripts, in place of key.lua: a string, and a list from which the others wait for one element.
-- include marks/string
local function drop(token)
    local signals = 'lock-signal:' .. name
    call('DEL', KEYS[1])
    if typed('LLEN', signals) then
        call('DEL', signals)
        call('LPUSH', signals, '1')
        call('PEXPIRE', signals, '60000')
    end
end
