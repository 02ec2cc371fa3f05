# SPDX-License-Identifier: MIT
"""Conformance script: the commands of python-redis-lock 4.0 (keys lock:NAME and lock-signal:NAME), not the package."""
import time
import uuid

from actor import Lost, speak

RELEASE = """
if redis.call('get', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('del', KEYS[2])
redis.call('lpush', KEYS[2], 1)
redis.call('pexpire', KEYS[2], ARGV[2])
redis.call('del', KEYS[1])
return 0"""
SIGNAL_MS = 1000


class Lock:
    def __init__(self, redis, name, lease_ms, _permits):
        self.redis, self.keys = redis, [f"lock:{name}", f"lock-signal:{name}"]
        self.expire, self.token = max(1, lease_ms // 1000), uuid.uuid4().hex
        self.release = redis.register_script(RELEASE)

    def take(self, wait_ms):
        """It waits for a signal at most as long as a lease, and for whole seconds; this one may wait for less."""
        end = time.monotonic() + wait_ms / 1000
        while not self.redis.set(self.keys[0], self.token, nx=True, ex=self.expire):
            left = end - time.monotonic()
            if left <= 0:
                return False
            self.redis.blpop(self.keys[1], timeout=min(self.expire, left))
        return True

    def give(self):
        if self.release(keys=self.keys, args=[self.token, SIGNAL_MS]) != 0:
            raise Lost("not ours")


speak(Lock)
