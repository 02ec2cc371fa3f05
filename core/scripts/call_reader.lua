-- part of other scripts: the readers in the queue. KEYS: 2 queue, 3 waiters.

-- The waiter at that place of the queue, and whether it wants to share the lock: then it is told to ask, and comes in beside
-- the readers, together with those behind it. Those that want to share and are not heard are passed over, 64 of them; so is `me`,
-- which asks already: then the third value is true.
local function call_reader(place, me)
    local is_mine
    for at = place, place + 63 do
        local head = (typed('ZRANGE', KEYS[2], at, at) or {})[1]
        local shares = head and string.find(typed('HGET', KEYS[3], head) or '', ' s$')
        if not shares then
            return head, nil, is_mine
        elseif head == me then
            is_mine = true
        elseif is_heard(head) then
            call('PUBLISH', channel(head), 'F ' .. head)
            return head, shares, is_mine
        end
    end
    return nil, nil, is_mine
end
