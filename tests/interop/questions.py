# SPDX-License-Identifier: MIT
"""questions.py - count, look, move and wake: what a lock is for, and how soon who waits is let in."""
import asyncio
from math import ceil

from stage import CREW

PATIENCE_S = 300
AWAY_US = 3000  # between two sections of a process: now and then nobody of ours waits, and others come in
NEAR_MS = 2     # what is within this is no slower
TURN_MS = 15000 # ten seconds of handing it on among us, a quarter of one that is left to theirs, and what the machine needs
WOKEN_MS = 1000 # who is in no sooner was not woken, nor did it ask: its wait ran out


class Outcome:
    """What one question found: a line for people, fields for --json, and what was wrong."""

    def __init__(self, words, complaints=(), **fields):
        self.words, self.complaints, self.fields = words, list(complaints), fields


async def all_of(actors, line):
    return await asyncio.gather(*(actor.ask(line(number), PATIENCE_S) for number, actor in enumerate(actors)))


def wrong(answers, word):
    return [answer for answer in answers if not answer.startswith(word)]


def changes_of_side(log):
    return sum((one == b"-") != (other == b"-") for one, other in zip(log, log[1:]))


async def count(stage, scale):
    """Nobody's update is lost, however many read, add one and write back; fences of ours rise."""
    neighbour = stage.neighbour
    each = ceil(scale.sections / (2 * scale.crew))
    crew = await stage.together(scale.crew, scale.crew)
    began = asyncio.get_running_loop().time()
    answers = await all_of(crew, lambda number: f"count {each} {AWAY_US} {scale.seed * 100 + number}")
    took_s = asyncio.get_running_loop().time() - began
    sections, log = each * len(crew), stage.redis.lrange(f"interop:log:{CREW}", 0, -1)
    counted, changes = int(stage.redis.get(f"interop:count:{CREW}") or 0), changes_of_side(log)
    fences = [int(entry) for entry in log if entry != b"-"]
    complaints = wrong(answers, "counted")
    most = max([int(answer.split()[2]) for answer in answers if answer.startswith("counted")], default=0)
    if most > neighbour.permits:
        complaints.append(f"{most} were inside, where {neighbour.permits} may be")
    if neighbour.permits == 1 and counted != sections:
        complaints.append(f"{sections - counted} updates lost")
    if len(log) != sections:
        complaints.append(f"{len(log)} sections of {sections}")
    if len(set(fences)) != len(fences) or neighbour.permits == 1 and fences != sorted(fences):
        complaints.append("fences of ours do not rise")
    if at_rest := neighbour.at_rest(stage.redis, CREW):
        complaints.append(f"at the end {at_rest}")
    lost = f"at most {most} inside" if neighbour.permits > 1 else f"{sections - counted} updates lost"
    return Outcome(f"{sections} sections of {scale.crew} + {scale.crew} processes: {lost}, {len(fences)} fences rise, "
                   f"the side changed {changes} times, {took_s:.1f} s", complaints, sections=sections,
                   lost=sections - counted, most=most, changes=changes, seconds=round(took_s, 3))


async def look(stage, scale):
    """The cache look-up with its second look: each page is loaded once."""
    if stage.neighbour.permits > 1:
        return None
    crew = await stage.together(scale.crew, scale.crew)
    answers = await all_of(crew, lambda number: f"look {scale.pages}")
    loads = [int(stage.redis.get(f"interop:loads:{page}:{CREW}") or 0) for page in range(scale.pages)]
    complaints = wrong(answers, "looked")
    if loads != [1] * scale.pages:
        complaints.append(f"pages were loaded {min(loads)} to {max(loads)} times")
    return Outcome(f"{scale.pages} pages missed by {scale.crew} + {scale.crew} processes: {sum(loads)} loads", complaints,
                   pages=scale.pages, loads=sum(loads))


async def move(stage, scale):
    """The order of deployments of docs/coming-from.md: theirs beside who takes both locks, then those beside who takes ours."""
    if stage.neighbour.permits > 1:
        return None
    size, name, complaints = max(1, scale.crew // 2), "move", []
    each = ceil(scale.sections / (4 * size))
    crews = {side: [await stage.actor(side, name, stage.neighbour.crew_lease_ms) for _ in range(size)]
             for side in ("theirs", "moving", "moved")}
    for sides in (("theirs", "moving"), ("moving", "moved")):
        answers = await all_of(crews[sides[0]] + crews[sides[1]], lambda number: f"count {each} {AWAY_US} {scale.seed * 100 + number}")
        complaints += wrong(answers, "counted")
        complaints += [f"two were inside: {answer}" for answer in answers if answer.startswith("counted") and answer.split()[2] != "1"]
    await stage.dismiss([actor for crew in crews.values() for actor in crew])
    sections, counted = 4 * each * size, int(stage.redis.get(f"interop:count:{name}") or 0)
    fences = [int(entry) for entry in stage.redis.lrange(f"interop:log:{name}", 0, -1) if entry != b"-"]
    if counted != sections:
        complaints.append(f"{sections - counted} updates lost")
    if fences != sorted(set(fences)):
        complaints.append("fences of ours do not rise over the move")
    return Outcome(f"{sections} sections in two deployments: {sections - counted} updates lost, {len(fences)} fences rise",
                   complaints, sections=sections, lost=sections - counted)


async def turn(stage, scale):
    """While processes of ours want nothing else than this lock, one of theirs gets it in bounded time."""
    if stage.neighbour.permits > 1 or not scale.judges_time:
        return None
    crew = await stage.together(scale.crew, 1)
    for number, actor in enumerate(crew[:-1]):
        actor.say(f"count {10**9} 0 {scale.seed * 100 + number}")
    waits, complaints = [], []
    while len(waits) < scale.turns and not complaints:
        answer = await crew[-1].ask(f"take {TURN_MS}", PATIENCE_S)
        if answer.startswith("took"):
            waits.append((int(answer.split()[2]) - int(answer.split()[1])) / 1e6)
            await crew[-1].ask("give")
        else:
            complaints.append(f"not in after {TURN_MS} ms: {answer}")
    sections = stage.redis.llen(f"interop:log:{CREW}")
    await stage.start_anew()
    return Outcome(f"one of theirs beside {scale.crew} of ours in {sections:,} sections: in after {max(waits, default=0):.0f} ms at most",
                   complaints, worst_ms=max(waits, default=None))


class HandOffs:
    """From one process's release to the entry of another that was waiting by then, by sides."""

    def __init__(self):
        self.ms = {}

    def add(self, crew, answers):
        sections = sorted((taken, asked, giving, number) for number, answer in enumerate(answers)
                          for asked, taken, giving in (map(int, word.split(",")) for word in answer.split()[1:]))
        for (_, _, giving, giver), (taken, asked, _, taker) in zip(sections, sections[1:]):
            if giver != taker and asked < giving <= taken:
                self.ms.setdefault((crew[giver].side, crew[taker].side), []).append((taken - giving) / 1e6)

    def quantile(self, giver, taker, part):
        ms = sorted(self.ms.get((giver, taker), []))
        return ms[min(len(ms) - 1, int(part * len(ms)))] if ms else None

    def words(self, giver, taker):
        middle, late = self.quantile(giver, taker, 0.5), self.quantile(giver, taker, 0.99)
        return "never" if middle is None else f"{middle:.2f} / {late:.2f} ms"


async def wake(stage, scale):
    """Two take turns: two of theirs, then one of theirs and one of ours."""
    if stage.neighbour.permits > 1:
        return None
    found, complaints = HandOffs(), []
    for ours, theirs in ((0, 2), (1, 1)):
        crew = await stage.together(ours, theirs)
        answers = await all_of(crew, lambda number: f"baton {scale.batons} {scale.seed * 100 + number}")
        complaints += wrong(answers, "batons")
        found.add(crew, answers)
    among = found.quantile("theirs", "theirs", 0.5)
    for giver, taker in (("theirs", "ours"), ("ours", "theirs")):
        middle = found.quantile(giver, taker, 0.5)
        if (middle or 0) > WOKEN_MS:
            complaints.append(f"{giver} do not wake {taker}: {middle:.0f} ms")
        if scale.judges_time and not (among and middle and middle <= among + NEAR_MS):
            complaints.append(f"{giver} to {taker} is slower than two of theirs among themselves")
    quantiles = {f"{giver}_{taker}_p{int(part * 100)}_ms": found.quantile(giver, taker, part)
                 for giver, taker in (("theirs", "theirs"), ("theirs", "ours"), ("ours", "theirs")) for part in (0.5, 0.99)}
    return Outcome(f"p50 / p99: two of theirs {found.words('theirs', 'theirs')}; to us {found.words('theirs', 'ours')}; "
                   f"to them {found.words('ours', 'theirs')}", complaints, **quantiles)
