-- fill: the holder of a fetch lock stores what it loaded, frees the lock and notifies the waiters of the value.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 data, 6 absent mark.
-- ARGV: 1 token, 2 value|absent|nothing, 3 ttl ms, 4 the value.
-- include hand_off
if typed('GET', KEYS[1]) ~= ARGV[1] then
    return {'REFUSED', now}
end
local stored = false
if ARGV[2] == 'value' then
    stored = try('SET', KEYS[5], ARGV[4], 'PX', ARGV[3])
    call('DEL', KEYS[6])
elseif ARGV[2] == 'absent' then
    if call('DEL', KEYS[5]) == 0 and call('DEL', KEYS[6]) > 0 then
        try('SET', KEYS[5], '') -- as in forget: the mark that was there may be kept near, and may end later than this one
        call('DEL', KEYS[5])
    end
    stored = try('SET', KEYS[6], '', 'PX', ARGV[3])
end
leave(ARGV[1])
if not stored or stored.err then
    if hand_off('') ~= 'HANDED' then
        call('DEL', KEYS[1])
    end
    return {'FREE', now}
end
call('DEL', KEYS[1])
for _, token in ipairs(typed('ZRANGE', KEYS[2], '0', '255') or {}) do
    call('PUBLISH', channel(token), 'F ' .. token)
    leave(token)
end
return {'FILLED', now}
