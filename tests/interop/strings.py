# SPDX-License-Identifier: MIT
"""Conformance scripts: libraries that keep one string per lock and ask again until it is free. `strings.py URL NAME LIBRARY`
speaks their keys and values, by the commands that they document; none of them runs here."""
import os
import socket
import sys
import time
import uuid
from base64 import b64encode

from actor import Lost, asking, speak

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"

LIBRARIES = { # key, value, how SET says when it ends
    "redsync": ("{}", lambda: b64encode(os.urandom(16)).decode(), "PX"),
    "redislock": ("{}", lambda: b64encode(os.urandom(16))[:22].decode(), "PX"),
    "shedlock": ("job-lock:default:{}", lambda: f"ADDED:{time.strftime('%FT%TZ')}@{socket.gethostname()}:{uuid.uuid4()}", "PX"),
    "rueidislock": ("rueidislock:0:{}", lambda: os.urandom(24), "PXAT"), # its KeyMajority 1
}


class Lock:
    def __init__(self, redis, name, lease_ms, _permits):
        template, self.value, self.ends = LIBRARIES[sys.argv[3]]
        self.redis, self.key, self.lease_ms = redis, template.format(name), lease_ms
        self.release, self.token = redis.register_script(RELEASE), None

    def set(self):
        self.token = self.value()
        end = self.lease_ms if self.ends == "PX" else int(time.time() * 1000) + self.lease_ms
        return self.redis.execute_command("SET", self.key, self.token, "NX", self.ends, end)

    def take(self, wait_ms):
        return asking(self.set, wait_ms)

    def give(self):
        if self.release(keys=[self.key], args=[self.token]) != 1:
            raise Lost("not ours")


speak(Lock)
