-- part of other scripts: readers that come in beside others. The readers' key tells the end of each one's lease, in server us,
-- by its token.

-- Renewals do the same; but it may be long until the next one.
local function bury()
    for _ = 1, 64 do
        local first = call('ZRANGE', readers, '0', '0', 'WITHSCORES')
        if not first[1] or tonumber(first[2]) >= now then
            return
        end
        call('ZREM', readers, first[1])
    end
end

-- One reader more, for ttl ms, or the same for longer. Ends move forward only: the question may be an old one, with a shorter
-- lease.
local function share(token, ttl)
    local ending = now + ttl * 1000
    bury()
    local left = call('PTTL', readers)
    if tonumber(call('ZSCORE', readers, token) or 0) < ending then
        call('ZADD', readers, digits(ending), token)
    end
    outlive(readers, ttl + 1, left)
    outlive(KEYS[1], ttl + 1)
end

-- Lets in the readers at the head of the queue, 64 at most, up to the first waiter that wants the lock alone: if there is
-- one, all readers are told of it. A reader that is not heard keeps its place; one behind the 64 is called, and lets in the
-- next. Returns whether `me`, a reader, who stays in the queue, is among them; and whether there is, or may be, such a waiter.
local function let_in(me)
    local place, looks, is_mine, stopped, given, more = 0, 0, false, false, false, false
    while true do
        local head = (typed('ZRANGE', KEYS[2], place, place) or {})[1]
        if not head then
            break
        elseif looks == 64 or dropped == 1024 then
            local next, shares, mine = call_reader(place, me)
            stopped, more, is_mine = next and not shares, true, is_mine or mine
            break
        elseif head == me then
            is_mine = true
            place = place + 1
        else
            local echo, claim, reads = record(head)
            looks = looks + (echo and 1 or 0)
            if echo and reads == '' then
                stopped = true
                break
            elseif echo and is_heard(head) then
                leave(head)
                local fence = block('2048')
                if not fence then
                    break
                end
                share(head, tonumber(claim))
                call('PUBLISH', channel(head), 'G ' .. head .. ' ' .. echo .. ' ' .. digits(fence) .. ' ' .. KEYS[1])
                given = true
            elseif echo then
                place = place + 1
            end
        end
    end
    if stopped and (given or is_mine or not me) then
        want(SHARED, KEYS[1], KEYS[2])
    end
    if stopped and is_mine then
        call('PUBLISH', channel(me), 'R ' .. me .. ' ' .. KEYS[1])
    end
    return is_mine, stopped or more
end
