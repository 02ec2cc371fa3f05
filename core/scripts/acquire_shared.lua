-- acquire_shared: have the lock together with others, or join its queue. The same call again is a re-check, and claims a lease
-- that was handed off. It is granted what others read if nobody who wants the lock alone stands before it.
-- KEYS: 1 lock, 2 queue, 3 waiters, 4 fences.
-- ARGV: 1 token, 2 ttl ms, 3 not after (server us), 4 try|wait, 5 echo, 6 ticket or 0, 7 claim ttl ms and ` s`, 8 patience us.
-- include hand_off
-- include wait
-- include call_reader
-- include read_first
-- include readers
local token, ticket = ARGV[1], ARGV[6]
if now > tonumber(ARGV[3]) then
    return {'LATE', now}
end
local held = typed('GET', KEYS[1])
if held == nil then
    return {'FOREIGN', now, 'lock'}
elseif held and held ~= SHARED then
    return wait(token, held)
end

local function read(is_first, word)
    leave(token) -- a first write that memory limits do not refuse
    local fence = block('2048')
    if not fence then
        return {'FOREIGN', now, 'fence'}
    elseif is_first then
        read_first(token, tonumber(ARGV[2]))
        let_in()
    else
        share(token, tonumber(ARGV[2]))
    end
    return {word or 'GRANTED', now, fence}
end

local ending = typed('ZSCORE', readers, token)
if ending == nil then
    return {'FOREIGN', now, 'held'}
elseif held and tonumber(ending or 0) >= now then
    return read(false, 'KEPT')
end
-- Who has a ticket takes its place before anything is decided: it may be before one who wants the lock alone.
local place = typed('ZSCORE', KEYS[2], token)
if ticket ~= '0' and ARGV[4] == 'wait' then
    local stands, foreign = stand(token, ticket)
    if not stands then
        return foreign
    end
end
if not held then
    local whose = hand_off(token)
    if whose ~= 'HANDED' and whose ~= 'MORE' then
        return read(true)
    end
    held = call('GET', KEYS[1])
end
if held == SHARED then
    local is_mine, stopped = let_in(token)
    if is_mine or not (stopped or place or ticket ~= '0') then
        return read()
    end
end
return wait(token, held)
