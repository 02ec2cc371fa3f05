-- part of other scripts: the lock's key, as far as it is another one in a dialect (marks). KEYS: 1 lock.
local function hand(to, claim)
    call('SET', KEYS[1], to, 'PX', claim)
end

local function ends_in(held)
    return call('PTTL', KEYS[1])
end
