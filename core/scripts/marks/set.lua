-- part of other scripts, in place of key.lua: the name is a member of a set while it is locked. KEYS: 5 lease. The functions:
-- see marks/string.lua.
-- include lease
local function holder(me)
    local is_in = typed('SISMEMBER', parameter, name)
    if is_in == nil then
        return nil
    end
    local first = sweep(function()
        call('SREM', parameter, name)
    end)
    if first and is_in == 0 and writes then -- another one has taken it out, and may hold it next: it is over
        call('DEL', KEYS[5])
    elseif first then
        return first
    end
    return call('SISMEMBER', parameter, name) == 1 and 'a member of ' .. parameter
end

local function take(token, ttl)
    call('SADD', parameter, name)
    note(token, ttl, '')
end

local function drop(token)
    call('HDEL', KEYS[5], token)
    call('SREM', parameter, name)
end
-- include hand
