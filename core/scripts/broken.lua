-- part of other scripts: what a break leaves of a token that others hold beside: half of its digits.
local function broken(token)
    return (string.gsub(token, '^(hf1:%x+:%x+:)%x%x%x%x%x%x%x%x', '%1ffffffff'))
end
