-- renew: extend up to 32 leases, forward only, never creating a key.
-- KEYS: the locks. ARGV: token and ttl ms of each. Answers the time, then a code each:
-- 1 extended, 0 gone, 2 taken, 3 another type of key; revoked by an operator: the token that is there instead.
local clock = redis.call('TIME')
local answer = {clock[1] * 1000000 + clock[2]}
for i = 1, #KEYS do
    local token, ttl = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
    local held = redis.pcall('GET', KEYS[i])
    if held == token then
        if redis.call('PTTL', KEYS[i]) < ttl then
            redis.call('PEXPIRE', KEYS[i], ttl)
        end
        answer[i + 1] = 1
    elseif type(held) == 'table' then
        answer[i + 1] = 3
    elseif not held then
        answer[i + 1] = 0
    elseif string.match(held, '^hf1:%x+:%x+:') == string.match(token, '^hf1:%x+:%x+:') then
        answer[i + 1] = held
    else
        answer[i + 1] = 2
    end
end
return answer
