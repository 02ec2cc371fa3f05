-- part of marks with an expiry of their own, which is the end of the lease. KEYS: 1 lock.

-- ms until it ends by itself; -1: it does not.
local function ends_in(held)
    return call('PTTL', KEYS[1])
end

-- Forward only.
local function keep(token, ttl)
    outlive(KEYS[1], tonumber(ttl))
end
local reserves = true
