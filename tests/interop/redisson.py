# SPDX-License-Identifier: MIT
"""Conformance script: Redisson's RLock by its scripts; no JVM is here. It renews its hash at a third of the lease."""
import threading
import time
import uuid

from actor import Lost, speak

TRY = """
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
    redis.call('hincrby', KEYS[1], ARGV[2], 1)
    redis.call('pexpire', KEYS[1], ARGV[1])
    return nil
end
return redis.call('pttl', KEYS[1])"""
UNLOCK = """
if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then
    redis.call('pexpire', KEYS[1], ARGV[2])
    return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], ARGV[1])
return 1"""
RENEW = "if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then return redis.call('pexpire', KEYS[1], ARGV[1]) end return 0"
UNLOCKED = 0


class Lock:
    def __init__(self, redis, name, lease_ms, _permits):
        channel = name if "{" in name else "{" + name + "}"
        self.keys, self.lease_ms, self.me = [name, f"redisson_lock__channel:{channel}"], lease_ms, f"{uuid.uuid4()}:1"
        self.attempt, self.unlock, self.renew = (redis.register_script(script) for script in (TRY, UNLOCK, RENEW))
        self.messages, self.held = redis.pubsub(), threading.Event()
        threading.Thread(target=self.watchdog, daemon=True).start()

    def watchdog(self):
        while True:
            time.sleep(self.lease_ms / 3000)
            if self.held.is_set():
                self.renew(keys=self.keys[:1], args=[self.lease_ms, self.me])

    def left_ms(self):
        """None: it is ours."""
        left = self.attempt(keys=self.keys[:1], args=[self.lease_ms, self.me])
        if left is None:
            self.held.set()
        return left

    def take(self, wait_ms):
        end, left = time.monotonic() + wait_ms / 1000, self.left_ms()
        if left is None or wait_ms <= 0:
            return left is None
        self.messages.subscribe(self.keys[1])
        self.messages.get_message(timeout=1) # that it is subscribed: what is published from here on is heard
        while (left := self.left_ms()) is not None and time.monotonic() < end:
            until = min(end - time.monotonic(), left / 1000 if left > 0 else 0.001)
            self.messages.get_message(timeout=max(until, 0))
        self.messages.unsubscribe()
        while self.messages.subscribed:
            self.messages.get_message(timeout=1)
        return left is None

    def give(self):
        self.held.clear()
        if self.unlock(keys=self.keys, args=[UNLOCKED, self.lease_ms, self.me]) is None:
            raise Lost("not ours")


speak(Lock)
