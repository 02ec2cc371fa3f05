-- part of other scripts, in place of clock.lua where a script may not ask for TIME: the end of a key, less what is left until
-- then. The key is read, and written only if it is not there: memory limits refuse SET as a script's first write, and a full
-- server has to go on renewing and releasing.
local clock = call('PEXPIRETIME', 'hf:clock:0')
if clock < 0 then
    call('SET', 'hf:clock:0', '', 'PX', '3155760000000')
    clock = call('PEXPIRETIME', 'hf:clock:0')
end
local now = (clock - call('PTTL', 'hf:clock:0')) * 1000
