# SPDX-License-Identifier: MIT
"""The old recipe of the test-and-set counter: who counts to one has the lock. Others count back and spin."""
from actor import Lost, asking, speak

SPINS = 3  # at once, before it sleeps


class Lock:
    def __init__(self, redis, name, _lease_ms, _permits):
        self.redis, self.name, self.held = redis, name, False

    def counts_to_one(self):
        for _ in range(SPINS):
            if self.redis.incr(self.name) == 1:
                return True
            self.redis.decr(self.name)
        return False

    def take(self, wait_ms):
        self.held = asking(self.counts_to_one, wait_ms)
        return self.held

    def give(self):
        held, self.held = self.held, False
        if not held or self.redis.decr(self.name) < 0:
            raise Lost("not held, or counted below nothing")


speak(Lock)
