# SPDX-License-Identifier: MIT
"""neighbours.py - whom we share locks with: how they are started, how their locks are spelled, what they cannot promise."""
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Neighbour:
    name: str
    program: tuple                # what runs the script, the script, and what comes behind its two arguments
    key: str                      # of a lock, with {} for its name
    dialect: str                  # that teaches Holdfast to spell it
    package: str = ""             # npm's; "python3-redis"; "": a script of ours
    recipe: str = ""              # how a lock looks on the server; garbage.py knows what is wrong with which
    permits: int = 1
    in_quick: bool = True
    lease_ms: int = 1000          # of locks whose holders are killed
    crew_lease_ms: int = 10000    # of the others: longer than a machine stands still, as most of them renew nothing
    outlives: frozenset = field(default=frozenset({"holder", "waiter"})) # whose death of theirs the recipe gets over

    def line(self, url, name):
        """What starts one."""
        runs, script, *words = self.program
        return [runs, str(HERE / script), url, name, *words]

    @property
    def has_ends(self):
        """A lock ends by itself."""
        return "holder" in self.outlives

    def at_rest(self, redis, name):
        """What is wrong with a lock that nobody holds; "" if nothing."""
        return RESTS[self.recipe](self, redis, name)

    def mend(self, redis, name):
        """What an operator does after a death that the recipe does not get over."""
        MENDS[self.recipe](self, redis, name)


def node(script):
    return ("node", script)


def python(script, *words):
    return (sys.executable, script, *words)


def key_is_gone(neighbour, redis, name):
    left = redis.exists(neighbour.key.format(name))
    return "the key is still there" if left else ""


def not_a_member(_neighbour, redis, name):
    return "the member is still there" if redis.sismember("locks", name) else ""


def counts_nothing(neighbour, redis, name):
    number = int(redis.get(neighbour.key.format(name)) or 0)
    return f"the counter is {number}" if number else ""


def tokens(name):
    return f"SEMAPHORE:{name}:AVAILABLE", f"SEMAPHORE:{name}:GRABBED"


def all_tokens_there(neighbour, redis, name):
    available, grabbed = tokens(name)
    there, out = redis.lrange(available, 0, -1), redis.hlen(grabbed)
    good = sorted(there) == [str(i).encode() for i in range(neighbour.permits)] and not out
    return "" if good else f"{len(there)} tokens {there} available and {out} grabbed, of {neighbour.permits}"


def remove_key(neighbour, redis, name):
    redis.delete(neighbour.key.format(name))


def count_the_dead_one_back(neighbour, redis, name):
    """DEL would take away what one who is just counting adds, and its DECR then counts below nothing."""
    if int(redis.get(neighbour.key.format(name)) or 0) > 0:
        redis.decr(neighbour.key.format(name))


def remove_member(_neighbour, redis, name):
    redis.srem("locks", name)


def lay_tokens_out(neighbour, redis, name):
    available, grabbed = tokens(name)
    lost = {str(i).encode() for i in range(neighbour.permits)} - set(redis.lrange(available, 0, -1))
    redis.delete(grabbed)
    redis.lpush(available, *lost)


RESTS = {"string": key_is_gone, "signal": key_is_gone, "setnx": key_is_gone, "hash": key_is_gone, "set": not_a_member,
         "counter": counts_nothing, "tokens": all_tokens_there}
MENDS = {"string": remove_key, "signal": remove_key, "setnx": remove_key, "hash": remove_key, "set": remove_member,
         "counter": count_the_dead_one_back, "tokens": lay_tokens_out}

NONE, WAITER = frozenset(), frozenset({"waiter"})
KNOWN = [
    Neighbour("warlock", node("warlock.js"), "{}:lock", "warlock", "node-redis-warlock", "string"),
    Neighbour("redlock", node("redlock.js"), "{}", "redlock", "redlock", "string"),
    Neighbour("redis-semaphore", node("redis_semaphore.js"), "mutex:{}", "redis-semaphore", "redis-semaphore", "string"),
    Neighbour("redis-py", python("redis_py.py"), "{}", "redis-py", "python3-redis", "string"),
    Neighbour("node-redisson", node("node_redisson.js"), "{}", "redisson", "node-redisson", "hash",
              crew_lease_ms=2000),  # it renews, and waits for so long when it has missed a message
    Neighbour("redisson", python("redisson.py"), "{}", "redisson", recipe="hash"),
    Neighbour("python-redis-lock", python("python_redis_lock.py"), "lock:{}", "python-redis-lock", recipe="signal"),
    Neighbour("spring", python("spring.py"), "registry:{}", "spring:registry", recipe="string"),
    Neighbour("shedlock", python("strings.py", "shedlock"), "job-lock:default:{}", "shedlock", recipe="string"),
    Neighbour("rueidislock", python("strings.py", "rueidislock"), "rueidislock:0:{}", "rueidislock", recipe="string"),
    Neighbour("redsync", python("strings.py", "redsync"), "{}", "redlock", recipe="string", in_quick=False),
    Neighbour("redislock", python("strings.py", "redislock"), "{}", "redlock", recipe="string", in_quick=False),
    Neighbour("setnx", python("setnx.py"), "{}", "setnx", recipe="setnx"),
    Neighbour("set", python("named_set.py"), "{}", "set", recipe="set", outlives=WAITER),
    Neighbour("counter", python("counter.py"), "{}", "counter", recipe="counter", outlives=NONE),
    Neighbour("tokens", python("tokens.py"), "SEMAPHORE:{}:AVAILABLE", "tokens", recipe="tokens", outlives=NONE),
    Neighbour("tokens-3", python("tokens.py"), "SEMAPHORE:{}:AVAILABLE", "tokens:3", recipe="tokens", permits=3,
              outlives=NONE),
]
BY_NAME = {neighbour.name: neighbour for neighbour in KNOWN}


def version(neighbour, node_path):
    """Of the program that is tested; None: it is not here."""
    if not neighbour.package:
        return "a script from its documented commands" if neighbour.recipe in ("string", "signal", "hash") else "the recipe"
    if neighbour.package == "python3-redis":
        import redis
        return f"python3-redis {redis.__version__}"
    try:
        text = (Path(node_path) / neighbour.package / "package.json").read_text()
        subprocess.run(["node", "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return f"npm {neighbour.package} {json.loads(text)['version']}"
