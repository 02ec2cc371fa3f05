-- part of other scripts: a lock that readers have. KEYS: 1 lock.

-- The first reader, where somebody had the lock alone, or nobody had it. The list begins anew: who read before that does not
-- read any more, whatever its end. Where this user may not write one of the two, nothing of either stays.
local function read_first(token, ttl)
    call('DEL', readers)
    call('ZADD', readers, digits(now + ttl * 1000), token)
    if try('SET', KEYS[1], SHARED, 'PX', digits(ttl + 1)).err then
        call('DEL', readers)
        call('SET', KEYS[1], SHARED, 'PX', digits(ttl + 1)) -- the same error, as the script's
    end
    call('PEXPIRE', readers, digits(ttl + 1))
end
