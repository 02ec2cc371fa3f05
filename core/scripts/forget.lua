-- forget: delete a fetched value. A load that is in progress will not be stored; the next waiter loads again.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences, 5 data, 6 absent mark.
-- include hand_off
local values = call('DEL', KEYS[5])
if call('DEL', KEYS[6]) > 0 and values == 0 then
    try('SET', KEYS[5], '') -- DEL of nothing is told to nobody, and "there is none" may be kept near
    call('DEL', KEYS[5])
end
local held = typed('GET', KEYS[1])
if held then
    if is_ours(held) then
        call('PUBLISH', channel(held), 'B ' .. held .. ' -')
    end
    if hand_off('') ~= 'HANDED' then
        call('DEL', KEYS[1])
    end
end
return {'DONE', now}
