-- part of other scripts: passing a lease on. KEYS: 1 lock, 2 queue, 3 waiters, 4 fences.
-- All clients of the server wait while a script runs. So it makes as few calls as it can, and passes strings where it
-- can: to print a number takes Redis half as long as a call. To make a function takes as long as to print a
-- number: what is called rarely is made where it is called.
-- include begin
-- include fences
-- include say
-- include leave
-- include key

-- Returns what a waiter left with its last question: echo, claim ttl, and 's' if it wants to share the lock, else ''. A
-- waiter that has not asked for too long loses its place. Each such waiter costs the server 3 us, so a script drops no more
-- than 1024.
local dropped = 0
local function record(token)
    local till, echo, claim, reads = string.match(typed('HGET', KEYS[3], token) or '', '^(%d+) (%d+) (%d+) ?(s?)$')
    if till and tonumber(till) >= now then
        return echo, claim, reads
    end
    dropped = dropped + 1
    leave(token)
end

local readers = readers_of(KEYS[2])

local function is_reader(token)
    return tonumber(typed('ZSCORE', readers, token) or 0) >= now
end

-- Hand the lease to the first live waiter: its record is fresh and its channel has a subscriber. The first fresh waiter
-- without one is the reserve. A caller with a subscriber goes before the reserve, which was most likely killed. Where
-- no channel has one, there is no pub/sub, and only the order of the queue counts. At most 64 fresh waiters are tried,
-- at 3 us each. A grant message is a promise. A replica's subscribers receive it too and are not counted here. So a
-- grant is published only to the waiter that gets the lease, and liveness is tested by counting subscribers.
-- `gone` waits no more. Returns 'ME' if the caller is next, 'HANDED', nil if there is no waiter, or 'MORE': only old
-- records were dropped, and there may be more of them.
local function hand_off(me, gone)
    local to, echo, claim, mode, place, another
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
            local its_echo, its_claim, its_mode = record(head)
            local heard = its_echo and (its_mode == '' or typed('ZCARD', readers)) and is_heard(head)
            if heard or heard == false and reserves and not to then
                another = to or heads[2]
                to, echo, claim, mode, place = head, its_echo, its_claim, its_mode, skipped
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
    -- Removals come first: memory limits refuse SET or INCRBY as a script's first write, but never a removal.
    call('HDEL', KEYS[3], to, gone or to)
    call('ZREM', KEYS[2], to, gone or to)
    local fence = block('2048')
    if not fence then
        return nil
    end
    local ears = channel(to)
    if mode == 's' then
        -- include read_first
        read_first(to, tonumber(claim))
    else
        hand(to, claim, gone)
    end
    call('PUBLISH', ears, 'G ' .. to .. ' ' .. echo .. ' ' .. digits(fence) .. ' ' .. KEYS[1])
    local beside
    if mode == 's' then
        -- include call_reader
        another, beside = call_reader(place)
    end
    -- The waiter behind the new holder published R to the old one; the new one has not received it.
    if another and not beside then
        call('PUBLISH', ears, 'R ' .. to .. ' ' .. KEYS[1])
    end
    return 'HANDED'
end
