# SPDX-License-Identifier: MIT
"""What there is to run, and in which order a soak of a seed runs it."""

import itertools
import random
import subprocess

from programs import Piece

LARGE = ("delayed-replies", "swallowed-renewals", "silent-subscribers", "orphans")  # with counts of the issue's own
OWN_MODES = ("kills", "pauses", "stale", "hold", "loss")
CHUNK = {"kills": 1000, "pauses": 250, "stale": 250, "seeds": 20000, "near": 20}
RINGS = ("--count", 250, "--runs", 2500, "--slack-ms", 3000)
LEAST_S = 8  # of a torture that takes seconds
SLICE_S = 4  # of the simulator beside a test with real servers


class Pieces:
    def __init__(self, build):
        self.tests = build / "tests"

    def holders(self, campaign, count, seed):
        command = (self.tests / "torture", campaign, "--count", count, "--seed", seed)
        return Piece(campaign, command, f"./dev soak {campaign} --count {count} --seed {seed}", campaign != "stale")

    def fault(self, name, seed, full=False):
        words = (name, "--seed", seed) + (("--full",) if full else ())
        return Piece("fault", (self.tests / "fault/fault", *words), "./dev fault " + " ".join(map(str, words)))

    def torture(self, mode, options, seed):
        options = list(options)
        if "--seconds" in options:
            seconds = options.index("--seconds") + 1
            options[seconds] = max(int(options[seconds]), LEAST_S)
        words = (mode, *(RINGS if mode == "rings" else options), "--seed", seed)
        return Piece("torture", (self.tests / "torture", *words), "./dev torture " + " ".join(map(str, words)))

    def near(self, minutes, seed):
        words = ("near", "--seconds", minutes * 60, "--seed", seed)
        return Piece("near", (self.tests / "torture", *words), "./dev torture " + " ".join(map(str, words)),
                     patience_s=minutes * 60 + 300)

    def leases(self, kind, *words):
        return Piece(kind, (self.tests / "torture", *words), "./dev torture " + " ".join(map(str, words)), True)

    def loss(self, busy):
        return self.leases("loss, busy", "loss", "--load") if busy else self.leases("loss", "loss")

    def seeds(self, start, count, workers=2):
        words = ("--seeds", count, "--from", start)
        return Piece("simulator", (self.tests / "sim/sim", *words, "--workers", workers),
                     "./dev sim " + " ".join(map(str, words)))

    def slice_of_seeds(self, start):
        return Piece("simulator", (self.tests / "sim/sim", "--from", start, "--seeds", 10**9, "--seconds", SLICE_S,
                                   "--workers", 1), f"./dev sim --from {start} --seconds {SLICE_S}")

    def witness(self):
        return Piece("witness", (self.tests / "soak/witness",), "./dev soak --minutes 1", patience_s=float("inf"))

    def listed(self, program):
        """By the first word of each line the others."""
        listed = subprocess.run([self.tests / program, "--list"], capture_output=True, text=True, check=True).stdout
        return {words[0]: words[1:] for words in map(str.split, listed.splitlines())}

    def fault_names(self):
        return self.listed("fault/fault")

    def torture_modes(self):
        """Those of many processes, with the options of a short run; the others are campaigns of their own here."""
        return {mode: options for mode, options in self.listed("torture").items() if mode not in OWN_MODES}

    def mixture(self, seed):
        """For ever: every fault and every campaign once before any of them again, in an order of the seed's."""
        rng = random.Random(seed)

        def shuffled(makers):
            while True:
                rng.shuffle(makers)
                yield from makers

        faults = shuffled([lambda s, name=name: self.fault(name, s) for name in self.fault_names()])
        others = shuffled(
            [lambda s, mode=mode: self.torture(*mode, s) for mode in self.torture_modes().items()]
            + [lambda s: self.holders("kills", 300, s), lambda s: self.holders("kills", 300, s),
               lambda s: self.holders("pauses", 100, s), lambda s: self.holders("stale", 100, s),
               lambda s: self.loss(False), lambda s: self.loss(True),
               lambda s: self.leases("hold, busy", "hold", "--seconds", 8, "--load")])
        for turn in itertools.count():
            yield next(others if turn % 4 == 3 else faults)(rng.randrange(1, 100000))

    def campaign(self, name, count, seed):
        """One kind of piece until there were `count` of what it counts. `seed`: the first one."""
        if name in CHUNK:
            for done in range(0, count, CHUNK[name]):
                some = min(CHUNK[name], count - done)
                if name == "seeds":
                    yield self.seeds(seed + done, some)
                elif name == "near":
                    yield self.near(some, seed + done)
                else:
                    yield self.holders(name, some, seed + done // CHUNK[name])
            return
        for i in range(count):
            if name == "losses":
                yield from (self.loss(False), self.loss(True))
            elif name == "faults":
                yield from (self.fault(fault, seed + i) for fault in self.fault_names())
            elif name == "large":
                yield from (self.fault(fault, seed + i, full=True) for fault in LARGE)
            else:
                yield from (self.torture(*mode, seed + i) for mode in self.torture_modes().items())


CAMPAIGNS = {  # word: what is counted, and how many the issue wants
    "kills": ("holders killed -9", 10000),
    "pauses": ("holders stopped for two leases", 1000),
    "stale": ("stale holders that write", 1000),
    "seeds": ("histories in the simulator", 1000000),
    "near": ("minutes of values from memory under faults", 60),
    "losses": ("times a thousand leases are lost, idle and busy", 1),
    "faults": ("times every fault", 1),
    "large": ("times " + ", ".join(LARGE) + " with --full", 1),
    "torture": ("times every torture, 8 s each or more", 1),
}
