-- part of other scripts, in place of key.lua: a hash with the holder as its one field, and how often it has it; an expiry; a
-- message by which the others learn of its end. KEYS: 1 lock. The functions: see marks/string.lua.
local function holder(me)
    local fields = typed('HKEYS', KEYS[1])
    return fields and (fields[1] or false)
end

-- include expiry

local function take(token, ttl)
    call('HSET', KEYS[1], token, '1')
    call('PEXPIRE', KEYS[1], ttl)
end

local function give(from, to, ttl)
    call('DEL', KEYS[1])
    take(to, ttl)
end

local function drop(token)
    call('DEL', KEYS[1])
    local braces = string.find(KEYS[1], '{', 1, true)
    call('PUBLISH', 'redisson_lock__channel:' .. (braces and KEYS[1] or '{' .. KEYS[1] .. '}'), '0')
end
-- include hand
