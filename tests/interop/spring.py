# SPDX-License-Identifier: MIT
"""Conformance script: Spring Integration's RedisLockRegistry of the type PUB_SUB_LOCK, registry `registry`, by its scripts."""
import time
import uuid

from actor import Lost, speak

OBTAIN = """
local holder = redis.call('GET', KEYS[1])
if holder == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) return 1 end
if not holder then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1 end
return 0"""
UNLOCK = """
if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('UNLINK', KEYS[1]) == 1 then
    redis.call('PUBLISH', ARGV[2], KEYS[1])
    return 1
end
return 0"""


class Lock:
    def __init__(self, redis, name, lease_ms, _permits):
        self.key, self.id, self.lease_ms = f"registry:{name}", str(uuid.uuid4()), lease_ms
        self.obtain, self.unlock = redis.register_script(OBTAIN), redis.register_script(UNLOCK)
        self.messages = redis.pubsub(ignore_subscribe_messages=True)
        self.messages.psubscribe("registry-channel:*") # one subscription for the whole registry

    def obtained(self):
        return self.obtain(keys=[self.key], args=[self.id, self.lease_ms]) == 1

    def take(self, wait_ms):
        end = time.monotonic() + wait_ms / 1000
        while not self.obtained():
            left = min(end - time.monotonic(), self.lease_ms / 1000) # it waits for a message no longer than a lease
            if left <= 0:
                return False
            heard = time.monotonic() + left
            while (left := heard - time.monotonic()) > 0:
                message = self.messages.get_message(timeout=left)
                if message and message["data"].decode() == self.key:
                    break
        return True

    def give(self):
        if self.unlock(keys=[self.key], args=[self.id, f"registry-channel:{self.key}"]) != 1:
            raise Lost("not ours")


speak(Lock)
