-- part of other scripts, in place of key.lua: the counter is above 0 while the lock is held: who makes it 1 has it, and who does
-- not takes its own one off again. KEYS: 1 lock, 5 lease. The functions: see marks/string.lua.
-- include lease
local function count()
    local value = typed('GET', KEYS[1])
    value = value == false and '0' or value
    return value and string.find(value, '^%d+$') and tonumber(value)
end

local function holder(me)
    local before = count()
    if not before then
        return nil
    end
    local first = sweep(function()
        call('DECR', KEYS[1])
    end)
    local now_is = count()
    if first and now_is == 0 and writes then -- another one has taken ours off: it is over
        call('DEL', KEYS[5])
    elseif first then
        return first
    end
    return now_is and now_is > 0 and 'counted ' .. digits(now_is)
end

local function take(token, ttl)
    call('INCR', KEYS[1])
    note(token, ttl, '')
end

local function drop(token)
    call('HDEL', KEYS[5], token)
    call('DECR', KEYS[1])
end
-- include hand
