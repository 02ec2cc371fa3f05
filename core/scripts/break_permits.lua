-- break_permits: an operator takes all permits of a semaphore from their holders. They stay out, under new tokens that their
-- holders receive by B, until those have stopped and release these tokens, or with their ends. With force they are out no more.
-- KEYS: 1 permits, 2 queue, 3 waiters, 4 fences. ARGV: 1 sixteen hex digits, 2 'force' or ''.
-- include permits
-- include revoked
if not remove_ended() then
    return {'FOREIGN', now, 'permits'}
end
local members, force, told, holders = call('ZRANGE', KEYS[1], '0', '-1', 'WITHSCORES'), ARGV[2] == 'force', {}, {}
for i = 1, #members, 2 do
    local token, number = string.match(members[i], '^(.*)(#%d+)$')
    local left = token and revoked(token, true)
    if left and not force then -- first: a key without members ends, and its TTL with it
        call('ZADD', KEYS[1], members[i + 1], left .. number)
    end
    if force or left and left ~= token then
        call('ZREM', KEYS[1], members[i])
    end
    if left and not told[token] then
        told[token] = left
        holders[#holders + 1] = token
    end
end
if force then
    admit('')
end
for _, token in ipairs(holders) do
    call('PUBLISH', channel(token), 'B ' .. token .. ' ' .. told[token] .. ' ' .. KEYS[1])
end
return {#members > 0 and 'BROKEN' or 'FREE', now}
