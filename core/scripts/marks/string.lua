-- part of other scripts, in place of key.lua: how a dialect marks a lock as held. Here the key has the holder's word, and an
-- expiry. KEYS: 1 lock. Each mark has these functions; nil from the first one: the key is of another type.

-- Who holds: `me`, if that does; else a token of ours, or a word of theirs; false: nobody.
local function holder(me)
    return typed('GET', KEYS[1])
end

-- include expiry

-- The lock, which is free, is the token's for ttl ms. Those that wait among the others are not told.
local function take(token, ttl)
    call('SET', KEYS[1], token, 'PX', ttl)
end

-- From one token of ours to another, so that the others never see it free.
local function give(from, to, ttl)
    call('SET', KEYS[1], to, 'PX', ttl)
end

local function drop(token)
    call('DEL', KEYS[1])
end
-- include hand
