# SPDX-License-Identifier: MIT
"""actor.py - a neighbour in Python: `speak(Lock)` in a script that is started as SCRIPT URL NAME. Lock(redis, name, lease_ms,
permits) has take(wait_ms), which says whether it has it, and give(), which raises if the lock was lost. README.md has the words
of the lines."""
import random
import sys
import time
from urllib.parse import parse_qs, urlsplit

import redis as redis_py

ASK_S = 0.01  # how often who polls asks again
FOREVER_MS = 10**9


def asking(attempt, wait_ms):
    """attempt() until it is true, or wait_ms are over."""
    end = time.monotonic() + wait_ms / 1000
    while not attempt():
        if time.monotonic() >= end:
            return False
        time.sleep(ASK_S)
    return True


class Lost(Exception):
    """The lock was not ours any more when it was given back."""


class Actor:
    def __init__(self, url, name, make):
        parts = urlsplit(url)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.name = name
        self.redis = redis_py.Redis(unix_socket_path=parts.path)
        self.lock = make(redis_py.Redis(unix_socket_path=parts.path), name, int(query.get("lease_ms", 10000)),
                         int(query.get("permits", 1)))

    def key(self, what):
        return f"interop:{what}:{self.name}"

    def take(self, wait_ms):
        asked = time.monotonic_ns()
        if not self.lock.take(int(wait_ms)):
            return "not BUSY"
        return f"took {asked} {time.monotonic_ns()} 0"

    def give(self):
        began = time.monotonic_ns()
        self.lock.give()
        return f"gave {began} {time.monotonic_ns()}"

    def count(self, sections, away_us, seed):
        rng, most = random.Random(int(seed)), 0
        for _ in range(int(sections)):
            if not self.lock.take(FOREVER_MS):
                return "not BUSY"
            most = max(most, self.redis.incr(self.key("inside")))
            self.redis.set(self.key("count"), int(self.redis.get(self.key("count")) or 0) + 1)
            self.redis.rpush(self.key("log"), "-")
            self.redis.decr(self.key("inside"))
            self.lock.give()
            time.sleep(rng.uniform(0, int(away_us)) / 1e6)
        return f"counted {sections} {most}"

    def look(self, pages):
        for page in range(int(pages)):
            if self.redis.exists(self.key(f"page:{page}")):
                continue
            if not self.lock.take(FOREVER_MS):
                return "not BUSY"
            if not self.redis.exists(self.key(f"page:{page}")):
                self.redis.incr(self.key(f"loads:{page}"))
                self.redis.set(self.key(f"page:{page}"), "loaded")
            self.lock.give()
        return "looked"

    def baton(self, sections, seed):
        rng, words = random.Random(int(seed)), ["batons"]
        for _ in range(int(sections)):
            asked = time.monotonic_ns()
            if not self.lock.take(FOREVER_MS):
                return "not BUSY"
            taken = time.monotonic_ns()
            time.sleep(rng.uniform(0.02, 0.04))
            words.append(f"{asked},{taken},{time.monotonic_ns()}")
            self.lock.give()
            time.sleep(rng.uniform(0.005, 0.015))
        return " ".join(words)


def speak(make):
    actor = Actor(sys.argv[1], sys.argv[2], make)
    actor.redis.ping()
    print("ready", flush=True)
    for line in sys.stdin:
        word, *words = line.split()
        try:
            answer = getattr(actor, word)(*words)
        except (Lost, redis_py.RedisError) as error:
            answer = f"lost {error}"
        print(answer, flush=True)
