-- part of marks: the lock is given to the waiter that hand_off has chosen, by its holder, or from nobody.
local function hand(to, claim, holds)
    if holds then
        give(holds, to, claim)
    else
        take(to, claim)
    end
end

-- What marks it as theirs may be there for a moment only, by one that asks in vain.
local function is_fleeting()
    return false
end

-- Whoever holds, it is of us: who waits need not hear of the others' releases.
local function is_all_ours()
    return true
end
