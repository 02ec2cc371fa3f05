-- part of dialects' scripts: the turn of the others. Who polls would never find the lock free while processes of ours hand it to
-- each other. So after ten seconds of that it is left free, though somebody of us waits. KEYS: 2 queue, 3 waiters.

-- In server us. Above 0: when their turn begins. Below: until when, with its sign turned, the lock is left free.
local turn = tonumber(typed('HGET', KEYS[3], 'turn') or 0)

local function set_turn(at)
    turn = at
    typed('HDEL', KEYS[3], '') -- a first write that memory limits do not refuse
    typed('HSET', KEYS[3], 'turn', digits(at))
    call('PEXPIRE', KEYS[3], '60000')
end

-- It has gone on from one of us to the next, or may have in one process.
local function goes_on()
    if turn <= 0 then
        set_turn(now + 10000000)
    end
end

local function is_their_turn()
    return turn > 0 and now >= turn and try('EXISTS', KEYS[2]) == 1
end

-- ms for which no one of us takes it.
local function left_free()
    if turn < 0 and now < -turn then
        return math.ceil((-turn - now) / 1000)
    end
end
