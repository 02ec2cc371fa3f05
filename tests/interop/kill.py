# SPDX-License-Identifier: MIT
"""kill.py - a holder or a waiter of either side is killed while one of each side waits: both get in, in time."""
import asyncio
import random
import time

from questions import Outcome
from stage import Gone, Stalls

GUARD_MS = 274       # guard(L) of docs/protocol.md, for leases of a second
RECHECK_MS = 440     # 1.1 R
MACHINE_MS = 600     # what two busy cores need, and process starts beside
WAIT_MS = 8000
SHUT_MS = 150        # so long nobody gets past a lock whose recipe does not get over the death
UNTIL_KILL_MS = 30


class Round:
    """One death on one name."""

    def __init__(self, seat, side, role, rng):
        self.seat, self.side, self.role, self.rng = seat, side, role, rng
        self.taken = {}  # when who took it
        self.complaints, self.first_ms, self.second_ms, self.lost = [], 0, 0, False
        self.late, self.is_void = [], False  # what a machine that stands still for a third of a lease can do by itself

    async def play(self):
        victim = await self.seat.get(self.side, "victim")
        holder = victim if self.role == "holder" else await self.seat.get(self.rng.choice(("ours", "theirs")), "holder")
        waiters = [await self.seat.get("ours", "waiter"), await self.seat.get("theirs", "waiter")] # before the lease begins
        self.entered(holder, await holder.ask("take 5000"), 0)
        if self.role == "waiter":
            victim.say(f"take {WAIT_MS}")
        if self.stays_shut():
            await self.find_it_shut(victim, waiters)
            return
        for waiter in waiters:
            waiter.say(f"take {WAIT_MS}")
        await asyncio.sleep(self.rng.uniform(0, UNTIL_KILL_MS) / 1000)  # any moment of its wait or section
        began = await self.seat.kill(victim)
        if self.role == "waiter":
            began = await self.give(holder)
        await self.both_get_in(waiters, began)

    def stays_shut(self):
        return self.may_shut() and self.role == "holder" and self.seat.neighbour.permits == 1

    async def find_it_shut(self, victim, waiters):
        """The recipe leaves it held for ever: neither side may take it before it is mended."""
        await self.seat.kill(victim)
        for waiter in waiters:
            answer = await waiter.ask(f"take {SHUT_MS}")
            if not answer.startswith("not "):
                self.complaints.append(f"{waiter.side} took what a dead one of theirs holds: {answer}")
                self.entered(waiter, answer, 0)
                await self.give(waiter)
        self.lost = True
        self.seat.mend()
        for waiter in waiters:
            self.entered(waiter, await waiter.ask(f"take {WAIT_MS}"), 0)
            await self.give(waiter)

    async def both_get_in(self, waiters, began):
        answers = {asyncio.ensure_future(waiter.answer(WAIT_MS / 1000 + 10)): waiter for waiter in waiters}
        try:
            first, began = await self.one_of(answers, began)
            self.first_ms = self.entered(answers[first], await first, began)
            began = await self.give(answers[first])
            second, began = await self.one_of([task for task in answers if task is not first], began)
            self.second_ms = self.entered(answers[second], await second, began)
            await self.give(answers[second])
        finally:
            for task in answers:
                task.cancel()
        # The second one may wait for a lock that was handed to a dead one, and then for what it thought was left of that.
        for late_ms, bound in ((self.first_ms, self.bound_ms()), (self.second_ms, self.bound_ms() + self.seat.neighbour.lease_ms)):
            if late_ms > bound:
                self.late.append(f"in after {late_ms:.0f} ms, the bound is {bound}")

    async def one_of(self, answers, began):
        """The first answer, and since when it could have come: a lock that a dead one of theirs left shut is mended first."""
        done, _ = await asyncio.wait(answers, timeout=self.patience_s(), return_when=asyncio.FIRST_COMPLETED)
        if not done:
            self.lost = True
            self.seat.mend()
            began = time.monotonic_ns()
            done, _ = await asyncio.wait(answers, return_when=asyncio.FIRST_COMPLETED)
        return done.pop(), began

    def bound_ms(self):
        return self.seat.neighbour.lease_ms + GUARD_MS + RECHECK_MS + MACHINE_MS

    def may_shut(self):
        """The recipe does not get over this death, if it comes at a bad moment."""
        return self.side == "theirs" and self.role not in self.seat.neighbour.outlives

    def patience_s(self):
        return self.bound_ms() / 1000 if self.may_shut() else None

    def entered(self, waiter, answer, began):
        if not answer.startswith("took"):
            self.complaints.append(f"{waiter.side} did not get in: {answer}")
            return 0
        self.taken[waiter] = int(answer.split()[2])
        return (self.taken[waiter] - began) / 1e6

    async def give(self, holder):
        """When it began to. Who of theirs is kept from it by a busy machine until most of its lease is over, for it renews none,
        has lost the lock by rights; one of ours has not."""
        began, taken = time.monotonic_ns(), self.taken.pop(holder, None)
        answer = await holder.ask("give")
        over = holder.side == "theirs" and taken and time.monotonic_ns() - taken > self.seat.neighbour.lease_ms * 500000
        if not answer.startswith("gave") and taken and not over:
            self.late.append(f"{holder.side}: {answer}")
        return int(answer.split()[1]) if answer.startswith("gave") else began

    async def look_at_rest(self):
        """What a dead one of theirs may have left behind is counted; what one of ours leaves behind ends by itself in time, or,
        where the recipe has no ends, when the next of ours asks."""
        end = time.monotonic() + self.bound_ms() / 1000
        while (wrong := self.seat.at_rest()) and time.monotonic() < end and not self.may_shut():
            await asyncio.sleep(0.005)
        if wrong and self.side == "ours" and not self.seat.neighbour.has_ends:
            next_one = await self.seat.get("ours", "waiter")
            self.entered(next_one, await next_one.ask("take 0"), 0)
            await self.give(next_one)
            wrong = self.seat.at_rest()
        if wrong:
            if self.may_shut():
                self.lost = True
            else:
                self.complaints.append(wrong)
            self.seat.mend()


class Seat:
    """A name, and processes for it, made when they are needed and kept while they live."""

    def __init__(self, stage, name):
        self.stage, self.neighbour, self.name, self.cast = stage, stage.neighbour, name, {}

    async def get(self, side, part):
        if (side, part) not in self.cast:
            self.cast[side, part] = await self.stage.actor(side, self.name, self.neighbour.lease_ms)
        return self.cast[side, part]

    async def kill(self, victim):
        at = await victim.kill()
        self.cast = {key: actor for key, actor in self.cast.items() if actor is not victim}
        self.stage.actors.remove(victim)
        return at

    def at_rest(self):
        return self.neighbour.at_rest(self.stage.redis, self.name)

    def mend(self):
        self.neighbour.mend(self.stage.redis, self.name)

    async def start_anew(self):
        await self.stage.dismiss(list(self.cast.values()))
        self.cast = {}
        self.mend()


async def rounds_of(seat, plan, done, stalls):
    while plan:
        side, role, seed = plan.pop()
        this, began = Round(seat, side, role, random.Random(seed)), time.monotonic()
        try:
            await this.play()
            await this.look_at_rest()
        except Gone as gone:
            this.complaints.append(str(gone))
            await seat.start_anew()
        this.is_void = stalls.worst_ms(began) > seat.neighbour.lease_ms / 3
        done.append(this)


async def kill(stage, scale):
    kinds = [(side, role) for side in ("ours", "theirs") for role in ("holder", "waiter")]
    plan = [(side, role, scale.seed * 100000 + i * 4 + kind) for i in range(scale.kills)
            for kind, (side, role) in enumerate(kinds)]
    plan.reverse()
    done, stalls = [], Stalls()
    await asyncio.gather(*(rounds_of(Seat(stage, f"kill-{number}"), plan, done, stalls) for number in range(scale.seats)))
    stalls.stop()
    void = sum(this.is_void for this in done)
    complaints = [f"{this.side} {this.role} killed: {complaint}" for this in done
                  for complaint in this.complaints + ([] if this.is_void else this.late)]
    worst = {kind: max([this.first_ms for this in done if (this.side, this.role) == kind], default=0) for kind in kinds}
    second = max(this.second_ms for this in done)
    lost = sum(this.lost for this in done)
    words = ", ".join(f"{side} {role} {worst[side, role]:.0f} ms" for side, role in kinds)
    not_judged = f"; {void} times not judged by time, as the machine stood still" if void else ""
    by_hand = f"; {lost} times mended by hand after a death of theirs" if lost else ""
    return Outcome(f"{scale.kills} deaths each; the next one in, at most: {words}; the one after {second:.0f} ms{by_hand}{not_judged}",
                   complaints, kills=scale.kills, mended=lost, void=void, second_ms=second,
                   **{f"{side}_{role}_ms": worst[side, role] for side, role in kinds})
