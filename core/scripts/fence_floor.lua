-- fence_floor: keep the fence counter ahead of the clock and of all fences seen.
-- KEYS: 1 fences. ARGV: 1 highest fence seen (a multiple of 2048) or 0, 2 estimated server us or 0.
-- include begin
local t, estimate = now, tonumber(ARGV[2])
if estimate > now + 10000 then
    t = estimate + 500000
end
local there = tonumber(call('GET', KEYS[1]) or '0')
if not there then
    return {err = 'WRONGTYPE The fence counter is not a number'}
end
call('PERSIST', KEYS[1])
local floor = math.max(there, tonumber(ARGV[1]), (t + 2000000) * 2048)
call('SET', KEYS[1], string.format('%.0f', floor))
return {now, floor}
