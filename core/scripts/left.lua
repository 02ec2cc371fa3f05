-- part of other scripts: the token of the same grant that a break has left instead of this one, if it has. `held`: what the
-- lock's key has.
-- include broken
local function left_of(token, held, readers)
    if held == 'hf1:shared' then
        local revoked = broken(token)
        return tonumber(try('ZSCORE', readers, revoked)) and revoked
    end
    return string.match(held, '^(hf1:%x+:%x+:)ffffffff') == string.match(token, '^hf1:%x+:%x+:') and held
end

