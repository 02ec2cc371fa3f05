-- part of other scripts: the lock's key, as far as it is another one in a dialect (marks). KEYS: 1 lock.
local function hand(to, claim)
    call('SET', KEYS[1], to, 'PX', claim)
end

-- It may be given to a waiter that hears nothing: it ends by itself, if that one is dead.
local reserves = true

local function ends_in(held)
    return call('PTTL', KEYS[1])
end

local function is_all_ours()
    return true
end
