-- renew_permits: extend the permits of up to 32 tokens, forward only, never creating one.
-- KEYS: the permits. ARGV: token, ttl ms, queue, number of permits of each.
-- Answers the time, then a code each: 1 extended, 4 extended and another process waits, 0 gone, 3 another key type, 5 this
-- user may not read the key; or, if revoked by an operator, the token that is there instead.
-- include begin
-- include broken
local answer = {now}

local function waits(queue, token)
    local heads = try('ZRANGE', queue, '0', '1')
    heads = type(heads) == 'table' and not heads.err and heads or {}
    return heads[2] or heads[1] and string.sub(heads[1], 1, 36) ~= string.sub(token, 1, 36)
end

local function extend(key, token, ttl, queue, permits)
    -- the last one: where a failover or a break has left fewer than their process believes, it is not there
    local till, ending = try('ZSCORE', key, token .. '#' .. permits), now + tonumber(ttl) * 1000
    if type(till) == 'table' then
        return string.find(till.err, 'WRONGTYPE', 1, true) and 3 or 5
    elseif not till or tonumber(till) < now then
        local revoked = broken(token)
        return not till and try('ZSCORE', key, revoked .. '#1') and revoked or 0
    end
    call('ZREM', key, '') -- a first write that memory limits do not refuse
    outlive(key, ttl + 1)
    if tonumber(till) < ending then
        local members = {}
        for k = 1, tonumber(permits) do
            members[2 * k - 1], members[2 * k] = string.format('%.0f', ending), token .. '#' .. string.format('%.0f', k)
        end
        call('ZADD', key, 'XX', unpack(members))
    end
    return waits(queue, token) and 4 or 1
end

for i = 1, #KEYS do
    answer[i + 1] = extend(KEYS[i], ARGV[4 * i - 3], ARGV[4 * i - 2], ARGV[4 * i - 1], ARGV[4 * i])
end
return answer
