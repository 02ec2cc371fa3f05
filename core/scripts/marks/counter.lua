-- part of other scripts, in place of key.lua: the counter is above 0 while the lock is held: who makes it 1 has it, and who does
-- not takes its own one off again. KEYS: 1 lock, 5 lease. The functions: see marks/string.lua.
local function count()
    local value = typed('GET', KEYS[1])
    value = value == false and '0' or value
    return value and string.find(value, '^%d+$') and tonumber(value)
end

local function is_out()
    return (count() or 0) > 0
end
local marked = KEYS[1]
-- include lease

local function count_off()
    call('DECR', KEYS[1])
end

local function holder(me)
    if not count() then
        return nil
    end
    return sweep(count_off) or is_out() and 'counted ' .. digits(count())
end

local function take(token, ttl)
    note(token, ttl, '')
    call('INCR', KEYS[1])
end

local function drop(token)
    call('HDEL', KEYS[5], token)
    if is_out() then
        count_off()
    end
end
-- include hand

local function is_fleeting()
    return true
end
