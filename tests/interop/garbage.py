# SPDX-License-Identifier: MIT
"""garbage.py - what stands where a lock should stand is repaired where the recipe says how, else it is named, never taken."""
import asyncio
import re
import time
from dataclasses import dataclass
from typing import Callable

from questions import Outcome

LEASE_MS = 300
SHORT_MS = 200
WITHIN_MS = 1500  # a lease, its guard, a re-check and what the machine needs
TYPES = re.compile(r"\b(string|list|hash|set|sorted set|count)\b")


@dataclass(frozen=True)
class Case:
    what: str
    spoil: Callable           # (redis, key, name)
    expect: tuple             # what may be said to one who waits: "took", "held" or "foreign"
    try_expect: tuple = ("held", "foreign")
    freed: bool = False       # a waiter gets in when the key is deleted by hand
    clean: Callable = lambda redis, key, name: redis.delete(key)


def with_end(redis, key, _name):
    redis.set(key, "garbage", px=SHORT_MS)


def half_seeded(redis, _key, name):
    redis.set(f"SEMAPHORE:{name}:EXISTS", "1")


def half_seeded_with_end(redis, _key, name):
    redis.set(f"SEMAPHORE:{name}:EXISTS", "1", px=SHORT_MS)


def seeded_with_text(redis, key, name):
    redis.set(f"SEMAPHORE:{name}:EXISTS", "1")
    redis.set(key, "garbage")


def let_time_pass(redis, _key, name):
    """What a waiter has begun to repair is over; if nobody has, it stays as it is."""
    if redis.pttl(f"SEMAPHORE:{name}:EXISTS") > 0:
        redis.delete(f"SEMAPHORE:{name}:EXISTS")


def unseed(redis, key, name):
    redis.delete(key, f"SEMAPHORE:{name}:EXISTS")


LIST = Case("a list", lambda redis, key, name: redis.rpush(key, "garbage"), ("foreign",), ("foreign",))
STRING = Case("a string", lambda redis, key, name: redis.set(key, "garbage"), ("foreign",), ("foreign",))
ENDLESS = Case("a value without an end", lambda redis, key, name: redis.set(key, "garbage"), ("held",), ("held",), freed=True)
ENDING = Case("a value with an end", with_end, ("took",), ("held",))
STRINGS = (LIST, Case("a hash", lambda redis, key, name: redis.hset(key, "a", "b"), ("foreign",), ("foreign",)), ENDLESS, ENDING)

CASES = {
    "string": STRINGS,
    "signal": STRINGS,
    "setnx": (LIST, ENDING,
              Case("an owner that died before EXPIRE", lambda redis, key, name: redis.set(key, "garbage"), ("took",), ("held",))),
    "hash": (STRING, LIST,
             Case("a hash without an end", lambda redis, key, name: redis.hset(key, "id:1", 1), ("held",), ("held",), freed=True),
             Case("a field that is no count", lambda redis, key, name: redis.hset(key, "garbage", "x"), ("held",), ("held",))),
    "set": (Case("a string for the set", lambda redis, key, name: redis.set("locks", "garbage"), ("foreign",), ("foreign",),
                 clean=lambda redis, key, name: redis.delete("locks")),
            Case("a member that nobody will remove", lambda redis, key, name: redis.sadd("locks", name), ("held",), ("held",),
                 freed=True, clean=lambda redis, key, name: redis.srem("locks", name))),
    "counter": (LIST, STRING,
                Case("a count of five", lambda redis, key, name: redis.set(key, 5), ("held",), ("held",), freed=True),
                Case("a count below nothing", lambda redis, key, name: redis.set(key, -1), ("held", "foreign")),
                Case("more than a number can be", lambda redis, key, name: redis.set(key, 2**64), ("held", "foreign"))),
    "tokens": (Case("a string for the list", seeded_with_text, ("foreign",), ("foreign",), clean=unseed),
               Case("half seeded, about to begin anew", half_seeded_with_end, ("took",), ("held",), clean=let_time_pass),
               Case("half seeded, for ever", half_seeded, ("took", "held"), ("held",), clean=let_time_pass)),
}


def meaning(answer):
    if answer.startswith("not HF_BUSY") or answer.startswith("not HF_TIMEOUT"):
        return "held"
    if answer.startswith("not HF_FOREIGN"):
        return "foreign"
    return answer.split()[0] if answer else "nothing"


class Trial:
    def __init__(self, stage, case, name):
        self.stage, self.case, self.name = stage, case, name
        self.redis, self.key, self.complaints = stage.redis, stage.neighbour.key.format(name), []

    async def run(self):
        ours = await self.stage.actor("ours", self.name, LEASE_MS)
        self.case.spoil(self.redis, self.key, self.name)
        self.judge(await ours.ask("take 0"), self.case.try_expect, "a try")
        if self.case.freed:
            await self.wait_for_its_end(ours)
        else:
            self.judge(await ours.ask(f"take {WITHIN_MS}"), self.case.expect, "a wait")
        await ours.ask("give")
        self.case.clean(self.redis, self.key, self.name)
        self.must_be(await ours.ask("take 0"), "took", "afterwards")
        self.must_be(await ours.ask("give"), "gave", "afterwards")
        if wrong := self.stage.neighbour.at_rest(self.redis, self.name):
            self.complaints.append(f"{self.case.what}: at the end {wrong}")
        await self.stage.dismiss([ours])

    async def wait_for_its_end(self, ours):
        self.judge(await ours.ask("take 100"), self.case.expect, "a wait")
        ours.say("take 20000")
        other = asyncio.ensure_future(ours.answer(30))
        await asyncio.wait({other}, timeout=0.1)  # it waits, and has time to take what it must not
        if other.done():
            self.complaints.append(f"{self.case.what}: {await other}")
            return
        freed = time.monotonic_ns()
        self.case.clean(self.redis, self.key, self.name)
        answer = await other
        self.must_be(answer, "took", "when it was freed by hand")
        if answer.startswith("took") and int(answer.split()[2]) - freed > WITHIN_MS * 1000000:
            self.complaints.append(f"{self.case.what}: in {(int(answer.split()[2]) - freed) // 1000000} ms after its end")

    def judge(self, answer, allowed, who):
        found = meaning(answer)
        if found not in allowed:
            self.complaints.append(f"{self.case.what}: {who} was told: {answer}")
        elif found == "foreign" and not (TYPES.search(answer) and self.names_key(answer)):
            self.complaints.append(f"{self.case.what}: key and type are not named: {answer}")

    def names_key(self, answer):
        return self.key in answer or self.stage.neighbour.recipe == "set" and "locks" in answer

    def must_be(self, answer, word, when):
        if not answer.startswith(word):
            self.complaints.append(f"{self.case.what}: {when} {answer}")


async def garbage(stage, _scale):
    cases = CASES[stage.neighbour.recipe]
    trials = [Trial(stage, case, f"bad-{number}") for number, case in enumerate(cases)]
    for trial in trials:  # one after the other: some spoil a key that all names share
        await trial.run()
    complaints = [complaint for trial in trials for complaint in trial.complaints]
    met = sum(not trial.complaints for trial in trials)
    return Outcome(f"{len(cases)} kinds of garbage, {met} met as they should be", complaints, cases=len(cases), met=met)
