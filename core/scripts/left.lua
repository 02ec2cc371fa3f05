-- part of other scripts: the token of the same grant that a break has left instead of this one, if it has. Of one that others
-- hold beside it leaves half of the digits. `held`: what the lock's key has.
local function left_of(token, held, readers)
    if held == 'hf1:shared' then
        local revoked = string.gsub(token, '^(hf1:%x+:%x+:)%x%x%x%x%x%x%x%x', '%1ffffffff')
        return tonumber(try('ZSCORE', readers, revoked)) and revoked
    end
    return string.match(held, '^hf1:%x+:%x+:') == string.match(token, '^hf1:%x+:%x+:') and held
end

