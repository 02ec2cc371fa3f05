-- quarantine: fence_floor, and since when this server is the one that all ask: another one has another run id.
-- KEYS: 1 fences, 2 since. ARGV: 1 and 2 as fence_floor, 3 the server's run id.
-- include begin
-- include floor
local run, since = string.match(call('GET', KEYS[2]) or '', '^(%w+) (%d+)$')
if run ~= ARGV[3] or tonumber(since) > now then
    since = string.format('%.0f', now)
    call('SET', KEYS[2], ARGV[3] .. ' ' .. since)
end
return {now, floor, tonumber(since)}
