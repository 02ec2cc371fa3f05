-- part of other scripts: keys that may be another program's, and fences. KEYS: 4 fences.

-- As call, but nil for a key that another program filled with something else. It is left alone. Nobody can wait by it, so
-- a lease is given back as if nobody did; whoever would have to wait is told which key it is.
local function typed(...)
    local said = try(...)
    if type(said) ~= 'table' or not said.err then
        return said
    end
    local err = said.err
    if not (string.find(err, 'WRONGTYPE', 1, true) or string.find(err, 'integer', 1, true) or
            string.find(err, 'overflow', 1, true)) then
        return call(...)
    end
end

-- Lua would write 3.7e+18; every number that leaves inside a text or command goes through here. In an answer Redis
-- makes an integer of it: exact up to 2^53, and for fences, multiples of 2048, as far as they go.
local function digits(n)
    return string.format('%.0f', n)
end

-- Multiples of 2048 survive Lua's doubles. A counter that is less than two seconds ahead of the clock may have lost what
-- another server gave until a moment ago: it comes back ahead of all that. nil: the key is no counter, and nothing can be
-- granted.
local function block(size)
    local fence = typed('INCRBY', KEYS[4], size)
    if fence and fence < (now + 2000000) * 2048 then
        fence = (now + 2000000) * 2048 + size
        call('SET', KEYS[4], digits(fence))
    end
    return fence
end
