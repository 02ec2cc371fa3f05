# SPDX-License-Identifier: MIT
"""The old recipe of SETNX and EXPIRE: who finds a lock without an end gives it one; WATCH lets its owner alone delete it."""
import uuid

from actor import Lost, asking, speak
from redis import WatchError


class Lock:
    def __init__(self, redis, name, lease_ms, _permits):
        self.redis, self.name, self.lease_ms, self.token = redis, name, lease_ms, str(uuid.uuid4()).encode()

    def sets(self):
        if self.redis.setnx(self.name, self.token):
            return self.redis.pexpire(self.name, self.lease_ms)
        if self.redis.pttl(self.name) == -1:  # its owner died before it set one
            self.redis.pexpire(self.name, self.lease_ms)
        return False

    def take(self, wait_ms):
        return asking(self.sets, wait_ms)

    def give(self):
        with self.redis.pipeline() as pipe:
            while True:
                pipe.watch(self.name)
                if pipe.get(self.name) != self.token:
                    raise Lost("not ours")
                pipe.multi()
                try:
                    return pipe.delete(self.name).execute()
                except WatchError:  # another one met it before we gave it an end, and has done so now
                    continue


speak(Lock)
