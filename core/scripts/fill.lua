-- fill: the holder of a fetch lock stores what it loaded, frees the lock and notifies the waiters of the value.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 data, 6 absent mark; then up to 8 tags.
-- ARGV: 1 token, 2 value|same|absent|nothing, 3 ttl ms, 4 the value, or of the same one `length,first,last`: it ends between
--       those, server ms; with tags 5 the fence of the lease.
-- include hand_off
if typed('GET', KEYS[1]) ~= ARGV[1] then
    return {'REFUSED', now}
end
local size = typed('STRLEN', KEYS[5])

-- A tag's member '' is the highest fence given when it was last forgotten. A lease with no higher one began to load before.
local overtaken, foreign = nil, size == nil and 'data'
for i = 7, #KEYS do
    local mark = typed('ZSCORE', KEYS[i], '')
    overtaken = overtaken or mark and tonumber(mark) >= tonumber(ARGV[5])
    foreign = foreign or mark == nil and 'tag'
end

-- The others are the keys of values, each with its end in server ms.
local function index(tag)
    local left, till, was = call('PTTL', tag), now / 1000 + ARGV[3], call('ZSCORE', tag, KEYS[5])
    call('ZADD', tag, digits(math.max(till, tonumber(was or 0))), KEYS[5])
    local firsts = call('ZRANGE', tag, '0', '2', 'WITHSCORES')
    for i = 1, #firsts, 2 do
        if tonumber(firsts[i + 1]) < now / 1000 - 2 then -- in its last millisecond it can still be read
            call('ZREM', tag, firsts[i])
        end
    end
    outlive(tag, tonumber(ARGV[3]), left)
end

-- What there was goes. The mark may be kept near: as in forget, the data's key tells of it.
local function drop()
    local there = call('DEL', KEYS[5])
    if call('DEL', KEYS[6]) > 0 and there == 0 then
        try('SET', KEYS[5], '')
        call('DEL', KEYS[5])
    end
end

local stored = false
local what = not overtaken and not foreign and ARGV[2]
if what == 'value' then
    stored = try('SET', KEYS[5], ARGV[4], 'PX', ARGV[3])
    call('DEL', KEYS[6])
elseif what == 'same' then
    local length, from, till = string.match(ARGV[4], '(%d+),(%d+),(%d+)')
    local ends = now / 1000 + call('PTTL', KEYS[5])
    if size ~= tonumber(length) or ends < tonumber(from) or ends > tonumber(till) or call('PEXPIRE', KEYS[5], ARGV[3]) == 0 then
        return {'MISSING', now}
    end
    stored = {}
    call('DEL', KEYS[6])
elseif what == 'absent' then
    drop() -- the mark too: one that is kept near may end later than this one
    stored = try('SET', KEYS[6], '', 'PX', ARGV[3])
elseif what then
    drop() -- it is not what the load has found
end
leave(ARGV[1])
if not stored or stored.err then
    if hand_off('') ~= 'HANDED' then
        call('DEL', KEYS[1])
    end
    return overtaken and {'REFUSED', now} or foreign and {'FOREIGN', now, foreign} or {'FREE', now}
end
for i = 7, what ~= 'absent' and #KEYS or 0 do
    index(KEYS[i])
end
call('DEL', KEYS[1])
for _, token in ipairs(typed('ZRANGE', KEYS[2], '0', '255') or {}) do
    call('PUBLISH', channel(token), 'F ' .. token)
    leave(token)
end
return {'FILLED', now}
