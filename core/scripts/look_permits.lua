-- look_permits: who has permits of a semaphore, and the number of waiting processes. Writes nothing, so a full server answers it.
-- KEYS: 1 permits, 2 queue.
-- Answers FREE, FOREIGN, or PERMITS with that number; then, of the 4096 permits that end first, up to 64 tokens, each with the
-- time until the first of its permits ends and how many it has.
-- include begin
local waiting, at, from, members = try('ZCARD', KEYS[2]), {}, 0, nil
local answer = {'PERMITS', type(waiting) == 'number' and waiting or 0}
repeat
    members = try('ZRANGE', KEYS[1], from, from + 63, 'WITHSCORES')
    if members.err then
        return string.find(members.err, 'WRONGTYPE', 1, true) and {'FOREIGN', 'permits'} or members
    end
    for i = 1, #members, 2 do
        local token, left = string.match(members[i], '^(.*)#%d+$'), tonumber(members[i + 1]) - now
        if token and left >= 0 and not at[token] and #answer < 194 then
            at[token] = #answer + 3
            answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = token, math.ceil(left / 1000), 0
        end
        if at[token or ''] and left >= 0 then
            answer[at[token]] = answer[at[token]] + 1
        end
    end
    from = from + 64
until #members < 128 or from == 4096
return #answer > 2 and answer or {'FREE'}
