-- part of other scripts, in place of key.lua: SETNX, and EXPIRE behind it. Who waits, not who tries, gives a key an expiry that has
-- none, as its maker may have died between the two: that of its own lease. ARGV of acquire: 2 ttl ms, 4 try|wait.
-- include marks/string
local function ends_in(held)
    local left = call('PTTL', KEYS[1])
    if left == -1 and asks and ARGV[4] == 'wait' and not is_ours(held) then
        call('PEXPIRE', KEYS[1], ARGV[2])
        return tonumber(ARGV[2])
    end
    return left
end
