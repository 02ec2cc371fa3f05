-- part of other scripts: passing a lease on. KEYS: 1 lock, 2 queue, 3 waiters, 4 fences.
-- What a script costs here the next in the server's line waits for: the calls are as few as they can be, and what they are
-- given is text where it can be, for Redis takes as long to print a number as half a call lasts.
-- include clock
-- include fences
-- include say

local function leave(token)
    typed('HDEL', KEYS[3], token)
    return typed('ZREM', KEYS[2], token)
end

-- What a waiter left with its last question: echo and claim ttl. One that has not asked for too long loses its place; each
-- of those costs the server 3 us, so a script drops 1024 and no more.
local dropped = 0
local function record(token)
    local till, echo, claim = string.match(typed('HGET', KEYS[3], token) or '', '^(%d+) (%d+) (%d+)$')
    if till and tonumber(till) >= now then
        return echo, claim
    end
    dropped = dropped + 1
    leave(token)
end

-- To the first waiter that lives: its record is fresh and somebody hears its channel. A fresh one that nobody hears
-- is kept in reserve. A caller that is heard goes before it, for then the other was most likely killed; where nobody
-- is heard there is no pub/sub, and the order of the queue is all there is. 64 fresh ones are looked at: they cost 3 us
-- each. 'MORE': nothing was done but to drop old ones, and there may be more of them.
-- A message is a promise: a replica's subscribers hear it too and are not counted here. So a grant is published to
-- the one who gets the lease and to nobody else; who is there is counted.
-- `gone` waits no more. 'ME' if the caller is next, 'HANDED', 'MORE', or nil if nobody waits.
local function hand_off(me, gone)
    local to, echo, claim, another
    local skipped, from, till = 0, '0', '1'
    while skipped < 64 do
        local heads = typed('ZRANGE', KEYS[2], from, till)
        local head = heads and heads[1]
        if not head then
            break
        elseif head == me then
            if not to or is_heard(me) then
                return 'ME'
            end
            break
        elseif head == gone then
            leave(head)
        elseif dropped == 1024 then
            return 'MORE'
        else
            local its_echo, its_claim = record(head)
            local heard = its_echo and is_heard(head)
            if heard or its_echo and not to then
                another = to or heads[2]
                to, echo, claim = head, its_echo, its_claim
            end
            if heard then
                break
            elseif its_echo then
                skipped = skipped + 1
                from, till = skipped, skipped + 1
            end
        end
    end
    if not to then
        return nil
    end
    -- First the removals: memory limits refuse a SET or INCRBY as a script's first write, never these.
    call('HDEL', KEYS[3], to, gone or to)
    call('ZREM', KEYS[2], to, gone or to)
    local fence = block('2048')
    if not fence then
        return nil
    end
    local ears = channel(to)
    call('SET', KEYS[1], to, 'PX', claim)
    call('PUBLISH', ears, 'G ' .. to .. ' ' .. echo .. ' ' .. digits(fence) .. ' ' .. KEYS[1])
    -- Whoever comes next said R to the holder before; this one has not heard it.
    if another then
        call('PUBLISH', ears, 'R ' .. to .. ' ' .. KEYS[1])
    end
    return 'HANDED'
end
