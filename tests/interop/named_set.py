# SPDX-License-Identifier: MIT
"""The old recipe of the named set: who adds the name to the set `locks` has the lock. It has no end and no owner."""
from actor import Lost, asking, speak


class Lock:
    def __init__(self, redis, name, _lease_ms, _permits):
        self.redis, self.name = redis, name

    def take(self, wait_ms):
        return asking(lambda: self.redis.sadd("locks", self.name) == 1, wait_ms)

    def give(self):
        if self.redis.srem("locks", self.name) != 1:
            raise Lost("not there")


speak(Lock)
