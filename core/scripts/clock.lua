-- part of other scripts: the server's time, in microseconds.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
