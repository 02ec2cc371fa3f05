# SPDX-License-Identifier: MIT
"""The old recipe of the token list, with the keys of Ruby's redis-semaphore: a mutex of one token, a semaphore of several."""
import time

from actor import FOREVER_MS, Lost, speak


class Lock:
    def __init__(self, redis, name, _lease_ms, permits):
        self.redis, self.permits, self.token = redis, permits, None
        self.exists, self.available, self.grabbed, self.version = (
            f"SEMAPHORE:{name}:{key}" for key in ("EXISTS", "AVAILABLE", "GRABBED", "VERSION"))

    def seed(self):
        if self.redis.getset(self.exists, "1") is None:  # the first of all
            self.redis.expire(self.exists, 10)  # if it dies here, another one begins again
            with self.redis.pipeline() as pipe:
                pipe.delete(self.grabbed, self.available).rpush(self.available, *range(self.permits))
                pipe.set(self.version, "1").persist(self.exists).execute()

    def take(self, wait_ms):
        self.seed()
        if wait_ms <= 0:
            self.token = self.redis.lpop(self.available)
        else:
            popped = self.redis.blpop(self.available, timeout=0 if wait_ms >= FOREVER_MS else wait_ms / 1000)
            self.token = popped and popped[1]
        return self.token is not None and self.redis.hset(self.grabbed, self.token, time.time()) is not None

    def give(self):
        with self.redis.pipeline() as pipe:
            there, _ = pipe.hdel(self.grabbed, self.token).lpush(self.available, self.token).execute()
        if not there:
            raise Lost("not grabbed")


speak(Lock)
