-- part of other scripts: what a break leaves of a token. ARGV: 1 sixteen hex digits.
-- Of one that others hold beside, the second half of its random digits stays: the renewal finds it by that.
local function revoked(token, beside)
    local head, half, tail = string.match(token, '^(hf1:%x+:%x+:)%x%x%x%x%x%x%x%x(%x+)(:.*)$')
    return head and head .. (beside and string.sub(ARGV[1], 1, 8) .. half or ARGV[1]) .. tail
end
