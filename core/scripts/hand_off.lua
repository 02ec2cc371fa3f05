-- part of other scripts: the clock, fences, and passing a lease on. KEYS: 1 lock, 2 queue, 3 waiters, 4 fences.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- Lua would write 3.7e+18; every number that leaves goes through here.
local function digits(n)
    return string.format('%.0f', n)
end

local function is_ours(value)
    return string.sub(value, 1, 4) == 'hf1:' and string.sub(value, 37, 37) == ':'
end

local function channel(token)
    return 'hf:c:' .. string.sub(token, 5, 36)
end

-- Multiples of 2048 survive Lua's doubles. A counter that is behind the clock was lost: it comes back ahead of it.
local function block(size)
    local fence = redis.call('INCRBY', KEYS[4], size)
    if fence < now * 2048 then
        redis.call('SET', KEYS[4], digits((now + 2000000) * 2048))
        fence = redis.call('INCRBY', KEYS[4], size)
    end
    return digits(fence)
end

local function leave(token)
    redis.call('HDEL', KEYS[3], token)
    return redis.call('ZREM', KEYS[2], token)
end

-- A message is a promise: a replica's subscribers hear it too and are not counted here. So a grant is published to
-- the one who gets the lease and to nobody else; who is there, is found out with a message that says nothing.
local function is_heard(token)
    return redis.call('PUBLISH', channel(token), 'P') > 0
end

-- First the removals: memory limits refuse a SET or INCRBY as a script's first write, never these.
local function grant(head, echo, claim)
    leave(head)
    local fence = block(2048)
    redis.call('SET', KEYS[1], head, 'PX', claim)
    redis.call('PUBLISH', channel(head), 'G ' .. head .. ' ' .. echo .. ' ' .. fence .. ' ' .. KEYS[1])
    -- Whoever comes next said R to the holder before; this one has not heard it.
    if redis.call('ZRANGE', KEYS[2], 0, 0)[1] then
        redis.call('PUBLISH', channel(head), 'R ' .. head .. ' ' .. KEYS[1])
    end
    return 'HANDED'
end

-- What a waiter left with its last question: echo and claim ttl. One that has not asked for too long loses its place.
local function record(token)
    local till, echo, claim = string.match(redis.call('HGET', KEYS[3], token) or '', '^(%d+) (%d+) (%d+)$')
    if till and tonumber(till) >= now then
        return echo, claim
    end
    leave(token)
end

-- To the first waiter that lives: its record is fresh and somebody hears its channel. A fresh one that nobody hears
-- is kept in reserve. A caller that is heard goes before it, for then the other was most likely killed; where nobody
-- is heard there is no pub/sub, and the order of the queue is all there is. 64 heads: each of them costs the server 3 us.
-- 'ME' if the caller is next, 'HANDED', or nil if nobody waits.
local function hand_off(me)
    local reserve, reserve_echo, reserve_claim
    local skipped = 0
    for _ = 1, 64 do
        local head = redis.call('ZRANGE', KEYS[2], skipped, skipped)[1]
        if not head then
            break
        end
        if head == me then
            if not reserve or is_heard(me) then
                return 'ME'
            end
            break
        end
        local echo, claim = record(head)
        if echo and is_heard(head) then
            return grant(head, echo, claim)
        elseif echo then
            if not reserve then
                reserve, reserve_echo, reserve_claim = head, echo, claim
            end
            skipped = skipped + 1
        end
    end
    if reserve then
        return grant(reserve, reserve_echo, reserve_claim)
    end
    return nil
end
