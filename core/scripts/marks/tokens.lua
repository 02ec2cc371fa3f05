-- part of other scripts, in place of key.lua: a list of tokens: who pops one holds, and pushes it back. GRABBED tells which are
-- out, since when. Who comes first makes them, and VERSION at the end. KEYS: 1 lock, the list; 5 lease. The functions: see
-- marks/string.lua. An item is a number and when it was grabbed: what is out since another time somebody else has by now.
local base = string.gsub(KEYS[1], ':AVAILABLE$', '')
local begun, grabbed, made = base .. ':EXISTS', base .. ':GRABBED', base .. ':VERSION'

local function is_out(item)
    local number, since = string.match(item, '^(.+) (.+)$')
    return number and typed('HGET', grabbed, number) == since
end
local marked = grabbed
-- include lease

local function push(item)
    local number = string.match(item, '^(.+) ')
    call('HDEL', grabbed, number)
    call('LPUSH', KEYS[1], number)
end

-- `number` nil: the next one of the list. The time goes on with each renewal: others give back what is out for too long. They may
-- give each key an expiry, and make all tokens anew without `begun`. What a user may not do, or a key of another type does not let
-- us do, is found out before a token is taken.
local function grab(token, ttl, number)
    local since = string.format('%.6f', now / 1000000)
    for _, key in ipairs({begun, KEYS[1], made}) do
        outlive(key, tonumber(ttl))
    end
    call('HDEL', KEYS[5], '')
    call('HDEL', grabbed, '')
    number = number or call('LPOP', KEYS[1])
    note(token, ttl, number .. ' ' .. since)
    call('HSET', grabbed, number, since)
end

-- All but those that one of us holds, wherever the list has gone to.
local function make_them()
    local held = {}
    for _, token in ipairs(typed('HKEYS', KEYS[5]) or {}) do
        local till, item = parts_of(typed('HGET', KEYS[5], token))
        local number, since = string.match(item or '', '^(.+) (.+)$')
        held[number or ''] = till >= now and since or nil
    end
    call('DEL', KEYS[1], grabbed)
    call('SET', begun, '1')
    for i = 0, tonumber(parameter) - 1 do
        local number = digits(i)
        if held[number] then
            call('HSET', grabbed, number, held[number])
        else
            call('RPUSH', KEYS[1], number)
        end
    end
    call('SET', made, '1')
end

-- Who was about to make them has died, if this stays so for ten seconds: an expiry lets the next one begin anew. It is the others'
-- own; they give it at once, and take it away when the tokens are there.
local function is_being_made()
    if call('EXISTS', KEYS[1], grabbed, made) > 0 then
        return false
    end
    if writes and call('PTTL', begun) == -1 then
        call('PEXPIRE', begun, '10000')
    end
    return true
end

local first, ours
local function holder(me)
    if typed('LLEN', KEYS[1]) == nil or typed('HLEN', grabbed) == nil or typed('GET', begun) == nil then
        return nil
    elseif item_of(me) then -- a renewal does not look at all the others
        return me
    end
    local is_begun = call('EXISTS', begun) == 1
    if asks and not is_begun then
        if typed('GET', made) == nil then
            return nil
        end
        make_them()
    end
    first, ours = sweep(push)
    if call('LLEN', KEYS[1]) > 0 or not is_begun and not asks then
        return false
    end
    return first or is_being_made() and 'about to be made' or 'taken'
end

local ends_in_lease = ends_in
local function ends_in(held)
    return is_ours(held) and ends_in_lease(held) or math.max(call('PTTL', begun), -1)
end

local function take(token, ttl)
    grab(token, ttl)
end

local function give(from, to, ttl)
    grab(to, ttl, string.match(item_of(from), '^(.+) '))
    call('HDEL', KEYS[5], from)
end

local function keep(token, ttl)
    local item, till = item_of(token)
    if item then
        grab(token, math.max(tonumber(ttl), (till - now) / 1000), string.match(item, '^(.+) '))
    end
end

-- What is broken may be theirs: the first one that is out, or what is nowhere.
local function drop(token)
    local item = item_of(token)
    call('HDEL', KEYS[5], token)
    if item then
        push(item)
        return
    end
    local out, there = call('HKEYS', grabbed), {}
    for _, number in ipairs(call('LRANGE', KEYS[1], '0', '-1')) do
        there[number] = true
    end
    for i = 0, tonumber(parameter) - 1 do
        if #out > 0 then
            push(out[1] .. ' ')
            return
        elseif not there[digits(i)] then
            call('LPUSH', KEYS[1], digits(i))
        end
    end
end
-- include hand

-- R goes to 64 of those that hold: each may give its own back.
local want_one = want
local function want(held, lock, queue)
    local all = 1
    for at, token in ipairs(typed('HKEYS', KEYS[5])) do
        all = at <= 64 and want_one(token, lock, queue) < all and 0 or all
    end
    return all
end

local function is_all_ours()
    return ours == tonumber(parameter)
end
