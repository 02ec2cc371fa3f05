-- part of other scripts, and the first one: the server's time, and the life of keys.
local call, try = redis.call, redis.pcall
-- include clock

-- The key stays for ttl ms at least. One that stays for ever, as only another program can have made it, goes on to: others
-- may be in it for longer. `left`: its PTTL before it was written.
local function outlive(key, ttl, left)
    left = left or call('PTTL', key)
    if left ~= -1 and left < ttl then
        call('PEXPIRE', key, string.format('%.0f', ttl))
    end
end
