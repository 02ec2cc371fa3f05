-- part of other scripts: the permits of a semaphore. KEYS: 1 permits, 2 queue, 3 waiters, 4 fences.
-- KEYS[1] has a member for each permit that is out, `token#1` .. `token#n`, and its end, server us, for a score. So the
-- number of its members says how many are out, once those whose end has passed are removed: by each script, before all else,
-- and with a first write that memory limits do not refuse.
-- include begin
-- include fences
-- include say
-- include leave

-- False: the key is another program's.
local function remove_ended()
    return typed('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. digits(now)) ~= nil
end

local function fits(permits, limit)
    return call('ZCARD', KEYS[1]) + permits <= limit
end

local function permit_of(token, number)
    return token .. '#' .. digits(number)
end

local function take(token, permits, ttl)
    local ending, members = digits(now + ttl * 1000), {}
    for k = 1, permits do
        members[2 * k - 1], members[2 * k] = ending, permit_of(token, k)
    end
    local left = call('PTTL', KEYS[1])
    call('ZADD', KEYS[1], unpack(members))
    outlive(KEYS[1], ttl + 1, left)
end

-- Gives back all permits of the token above the first `keep`. Returns whether there was one.
local function give_back(token, keep)
    local had = false
    while call('ZREM', KEYS[1], permit_of(token, keep + 1)) == 1 do
        had, keep = true, keep + 1
    end
    return had
end

-- What a waiter left with its last question: echo, claim ttl, permits, the limit that it asked with. See hand_off.
local dropped = 0
local function record(token)
    local till, echo, claim, permits, limit =
        string.match(typed('HGET', KEYS[3], token) or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    if till and tonumber(till) >= now then
        return echo, tonumber(claim), tonumber(permits), tonumber(limit)
    end
    dropped = dropped + 1
    leave(token)
end

-- Whether another process than the token's waits.
local function is_wanted(token)
    local heads = typed('ZRANGE', KEYS[2], '0', '1') or {}
    return heads[2] or heads[1] and channel(heads[1]) ~= channel(token)
end

-- Who has permits from now on has not heard the R of those that wait still.
local function tell_wanted(token)
    if is_wanted(token) then
        call('PUBLISH', channel(token), 'R ' .. token .. ' ' .. KEYS[1])
    end
end

-- False: there is no fence.
local function hand(token, echo, claim, permits)
    leave(token)
    local fence = block('2048')
    if fence then
        take(token, permits, claim)
        call('PUBLISH', channel(token), 'G ' .. token .. ' ' .. echo .. ' ' .. digits(fence) .. ' ' .. KEYS[1])
    end
    return fence
end

-- Serves the queue in its order, as long as enough is free for the next; who wants more than that stops all behind it. Those
-- that nobody hears keep their places, and get what is left in the end. Returns 'ME' where it is the caller's turn and
-- enough is free, 'STOP' where somebody before it, or itself, has to wait, nil if there is no one left; and whether somebody
-- was served.
local function admit(me)
    local unheard, looks, word, served = {}, 0, nil, {}
    while not word do
        local head = (typed('ZRANGE', KEYS[2], #unheard, #unheard) or {})[1]
        if not head then
            break
        end
        local echo, claim, permits, limit = record(head)
        looks = looks + (echo and 1 or 0)
        if dropped == 1024 or looks == 65 or echo and not fits(permits, limit) then
            word = 'STOP'
            if looks == 65 and served[1] then -- the rest is its own doing
                call('PUBLISH', channel(head), 'F ' .. head)
            end
        elseif head == me then
            word = 'ME'
        elseif echo and not is_heard(head) then
            unheard[#unheard + 1] = {head, echo, claim, permits, limit}
        elseif echo then
            if not hand(head, echo, claim, permits) then
                word = 'STOP'
            end
            served[#served + 1] = head
        end
    end
    for i = 1, word == 'ME' and 0 or #unheard do
        if fits(unheard[i][4], unheard[i][5]) and hand(unpack(unheard[i], 1, 4)) then
            served[#served + 1] = unheard[i][1]
        end
    end
    for _, token in ipairs(served) do
        tell_wanted(token)
    end
    return word, #served > 0
end

-- Tells processes that have permits that another one waits for them: 64 `others` than that of `me`; else its own. Each is
-- told once, for one token: it tells its other grants. A look at a permit costs the server 1.3 us, so no more than 512 are looked at:
-- where more are out, from another place on each time. 1: they receive it; 0: one of them does not; -1: nobody was told.
local function want_permits(me, others)
    local heard, told, done, all, looks = -1, 0, {}, call('ZCARD', KEYS[1]), 0
    local from = all > 512 and now % all or 0
    repeat
        local members = call('ZRANGE', KEYS[1], from, from + 63)
        for _, member in ipairs(members) do
            local token = string.match(member, '^(.*)#%d+$')
            if token and (channel(token) ~= channel(me)) == others and not done[channel(token)] then
                done[channel(token)] = true
                local hears = call('PUBLISH', channel(token), 'R ' .. token .. ' ' .. KEYS[1]) > 0 and is_heard(token)
                heard, told = hears and heard ~= 0 and 1 or 0, told + 1
                if told == (others and 64 or 1) then
                    return heard
                end
            end
        end
        looks = looks + #members
        from = from + 64 < all and from + 64 or 0
    until looks >= math.min(all, 512)
    return heard
end
