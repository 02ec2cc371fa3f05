-- part of dialects' scripts: the turn of the others. Who polls would never find the lock free while processes of ours hand it to
-- each other, or threads of one pass it on. So after ten seconds of that it is left free for 250 ms, though somebody of us waits.
-- Where nobody comes, both grow, to eight times as much. KEYS: 2 queue, 3 waiters.

-- In server us. `turn` above 0: when their turn begins; below: until when, with its sign turned, the lock is left free. `misses`:
-- so often nobody came. `freed`: when the lock was left last.
local function told(field)
    return tonumber(typed('HGET', KEYS[3], field) or 0) or 0
end
local turn, misses = told('turn'), told('misses')

local function tell(field, number)
    typed('HDEL', KEYS[3], '') -- a first write that memory limits do not refuse
    if typed('HSET', KEYS[3], field, digits(number)) then
        call('PEXPIRE', KEYS[3], '180000')
    end
end

-- It has gone on from one of us to the next, or may have in one process.
local function goes_on()
    if turn == 0 or turn < 0 and now >= -turn then
        turn = now + 10000000 * 2 ^ misses
        tell('turn', turn)
    end
end

local function is_their_turn()
    return turn > 0 and now >= turn
end

local function leave_it_free()
    tell('turn', -now - 250000 * 2 ^ misses)
    tell('misses', math.min(misses + 1, 3))
    tell('freed', now)
end

-- ms for which none of us takes it, but who only tries while nobody of us waits.
local function left_free()
    if turn < 0 and now < -turn then
        return math.ceil((-turn - now) / 1000)
    end
end

-- It was free for a second, or is theirs: the count begins anew. Who counts up and down again says only that somebody polls: it
-- may be in vain, and must not end the turn for which it asks.
local function begins_anew(theirs, in_vain)
    if turn ~= 0 and (theirs and not in_vain or now > told('freed') + 1000000) then
        typed('HDEL', KEYS[3], 'turn', 'freed')
        turn = 0
    end
    if theirs and misses > 0 then
        typed('HDEL', KEYS[3], 'misses')
    end
end
