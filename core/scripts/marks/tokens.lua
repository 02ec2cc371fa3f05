-- part of other scripts, in place of key.lua: a list of tokens: who pops one holds, and pushes it back. `grabbed` tells which
-- are out, since when. Who comes first makes them. KEYS: 1 lock, the list; 5 lease. The functions: see marks/string.lua.
-- include lease
local base = string.gsub(KEYS[1], ':AVAILABLE$', '')
local grabbed = base .. ':GRABBED'

local function push(item)
    call('HDEL', grabbed, item)
    call('LPUSH', KEYS[1], item)
end

local function holder(me)
    local free = typed('LLEN', KEYS[1])
    local out = typed('HLEN', grabbed)
    if free == nil or out == nil or typed('GET', base .. ':EXISTS') == nil then
        return nil
    end
    local first = sweep(push)
    if item_of(me) then
        return me
    end
    if not writes and not call('GET', base .. ':EXISTS') then
        return false
    elseif writes and not call('GETSET', base .. ':EXISTS', '1') then
        call('DEL', KEYS[1], grabbed)
        for i = 0, tonumber(parameter) - 1 do
            call('RPUSH', KEYS[1], digits(i))
        end
        call('SET', base .. ':VERSION', '1')
    end
    return call('LLEN', KEYS[1]) == 0 and (first or 'taken')
end

local function take(token, ttl)
    local item = call('LPOP', KEYS[1])
    call('HSET', grabbed, item, digits(math.floor(now / 1000000)))
    note(token, ttl, item)
end

local function drop(token)
    local item = item_of(token) or call('HKEYS', grabbed)[1] -- the latter: broken, and theirs
    call('HDEL', KEYS[5], token)
    if item then
        push(item)
    end
end
-- include hand
