-- part of other scripts, in place of key.lua: the name is a member of a set while it is locked. KEYS: 5 lease. The functions:
-- see marks/string.lua.
local function is_out()
    return typed('SISMEMBER', parameter, name) == 1
end
local marked = parameter
-- include lease

local function take_out()
    call('SREM', parameter, name)
end

local function holder(me)
    if typed('SISMEMBER', parameter, name) == nil then
        return nil
    end
    return sweep(take_out) or is_out() and 'a member of ' .. parameter
end

local function take(token, ttl)
    note(token, ttl, '')
    call('SADD', parameter, name)
end

local function drop(token)
    call('HDEL', KEYS[5], token)
    take_out()
end
-- include hand
