-- part of other scripts: keys that may belong to another program, and fences. KEYS: 4 fences.

-- Like call, but nil for a key of another type: it is another program's, and left alone. No client can queue with such
-- a key, so a lease is released as if there were no waiter. An acquire that has to wait is told which key it is.
local function typed(...)
    local said = try(...)
    if type(said) ~= 'table' or not said.err then
        return said
    end
    local err = said.err
    if not (string.find(err, 'WRONGTYPE', 1, true) or string.find(err, 'not an integer', 1, true) or
            string.find(err, 'would overflow', 1, true)) then
        return call(...)
    end
end

-- Lua would write 3.7e+18, so every number in a string or command is formatted here. A number in an answer is turned
-- into an integer by Redis: exact up to 2^53, and for all fences, which are multiples of 2048.
local function digits(n)
    return string.format('%.0f', n)
end

-- Lua's doubles hold multiples of 2048 exactly. A counter that is less than two seconds ahead of the clock may have
-- lost fences that another server gave a moment ago, so it is set ahead of them all. nil: the key is no counter, and
-- nothing can be granted.
local function block(size, key)
    key = key or KEYS[4]
    local fence = typed('INCRBY', key, size)
    if fence and fence < (now + 2000000) * 2048 then
        fence = (now + 2000000) * 2048 + size
        call('SET', key, digits(fence))
    end
    return fence
end
