# SPDX-License-Identifier: MIT
"""The real redis-py's Lock, as Debian's python3-redis ships it."""
from actor import ASK_S, Lost, speak
from redis.exceptions import LockError


class Lock:
    def __init__(self, redis, name, lease_ms, _permits):
        self.lock = redis.lock(name, timeout=lease_ms / 1000, sleep=ASK_S)

    def take(self, wait_ms):
        return self.lock.acquire(blocking=wait_ms > 0, blocking_timeout=wait_ms / 1000)

    def give(self):
        try:
            self.lock.release()
        except LockError as error:
            raise Lost(error) from error


speak(Lock)
