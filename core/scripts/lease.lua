-- part of marks without an expiry of their own: who of us holds, and until when. KEYS: 5 lease, a hash of our tokens: each with
-- its end, in server us, and what it has. It has no expiry itself: while something of ours is marked, this says so. What a dead
-- process has left is given back by the next one of us that looks.

-- What the token has; nil: it holds nothing, or not any more.
local function item_of(token)
    local till, item = string.match(typed('HGET', KEYS[5], token) or '', '^(%d+) ?(.*)$')
    return till and tonumber(till) >= now and item or nil, tonumber(till)
end

local function note(token, ttl, item)
    call('HSET', KEYS[5], token, digits(now + tonumber(ttl) * 1000) .. ' ' .. item)
end

-- Gives back what nobody has any more, by back(item), but where a script only looks. Returns the token whose lease ends first.
local function sweep(back)
    local first, first_till
    for at, token in ipairs(typed('HKEYS', KEYS[5]) or {}) do
        local item, till = item_of(token)
        if item and (not first or till < first_till) then
            first, first_till = token, till
        elseif not item and writes then
            local _, was = string.match(call('HGET', KEYS[5], token), '^(%d+) ?(.*)$')
            call('HDEL', KEYS[5], token)
            back(was or '')
        end
    end
    return first
end

local function ends_in(held)
    local item, till = item_of(held)
    return item and math.ceil((till - now) / 1000) or -1
end

local function keep(token, ttl)
    local item, till = item_of(token)
    if item and till < now + tonumber(ttl) * 1000 then
        call('HDEL', KEYS[5], '') -- a first write that memory limits do not refuse
        note(token, ttl, item)
    end
end

local function give(from, to, ttl)
    local item = item_of(from)
    call('HDEL', KEYS[5], from)
    note(to, ttl, item)
end
