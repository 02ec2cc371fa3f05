-- part of marks without an expiry of their own: who of us holds, and until when. KEYS: 5 lease, a hash of our tokens: each with
-- its end, in server us, and what it has. It has no expiry itself: while something of ours is marked, this says so. What a dead
-- process has left is given back by the next one of us that looks. is_out(item): the mark is there, as we made it. marked: the key
-- that it is in.

-- Those that know nothing of us would wait for ever for a dead one of us to give it back.
local reserves = false

local function parts_of(noted)
    local till, item = string.match(noted or '', '^(%d+) ?(.*)$')
    return tonumber(till or 0), item
end

-- What the token has; nil: it holds nothing, or not any more.
local function item_of(token, noted)
    local till, item = parts_of(noted or typed('HGET', KEYS[5], token))
    return till >= now and is_out(item) and item or nil, till
end

-- Behind a first write that memory limits do not refuse. An expiry that others gave the key must not end what we hold.
local function note(token, ttl, item)
    call('HDEL', KEYS[5], '')
    outlive(marked, tonumber(ttl))
    call('HSET', KEYS[5], token, digits(now + tonumber(ttl) * 1000) .. ' ' .. item)
end

-- Gives back what nobody has any more, by back(item), but where a script only looks. Returns the token whose lease ends first, and
-- how many there are.
local function sweep(back)
    local first, first_till, count = nil, nil, 0
    for _, token in ipairs(typed('HKEYS', KEYS[5]) or {}) do
        local noted = typed('HGET', KEYS[5], token)
        local item, till = item_of(token, noted)
        if item then
            count = count + 1
            if not first or till < first_till then
                first, first_till = token, till
            end
        elseif writes then
            local _, was = parts_of(noted)
            call('HDEL', KEYS[5], token)
            if was and is_out(was) then
                back(was)
            end
        end
    end
    return first, count
end

local function ends_in(held)
    local item, till = item_of(held)
    return item and math.ceil((till - now) / 1000) or -1
end

local function keep(token, ttl)
    local item, till = item_of(token)
    if item then
        note(token, math.max(tonumber(ttl), (till - now) / 1000), item)
    end
end

local function give(from, to, ttl)
    local item = item_of(from)
    call('HDEL', KEYS[5], from)
    note(to, ttl, item)
end
