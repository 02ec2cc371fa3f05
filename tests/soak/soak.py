#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs everything that tries to break the library, mixed by a seed, for as long as one likes; or one campaign until it
has counted enough. Ends with one table. 1: a promise was broken."""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True

import record
from growth import Growth
from pieces import CAMPAIGNS, SLICE_S, Pieces
from programs import SKIPPED, Program
from tally import Tally

TREE = Path(__file__).resolve().parent.parent.parent
RECORD = TREE / "tests/soak/record.md"


class Simulator:
    """Histories one after the other on one core, in short runs, so that it can make room."""

    def __init__(self, soak, seed):
        self.soak, self.seed, self.program = soak, seed, None

    def go_on(self, end):
        if self.program and self.program.is_over():
            self.add_up()
        if not self.program and time.monotonic() < end - SLICE_S:
            self.program = self.soak.start(self.soak.pieces.slice_of_seeds(self.seed))

    def add_up(self):
        self.seed += int(self.soak.finish(self.program, quiet=True).summary.get("histories", 1))
        self.program = None

    def settle(self):
        if self.program:
            self.soak.wait(self.program)
            self.add_up()


class Soak:
    def __init__(self, pieces):
        self.pieces, self.tally, self.running, self.notes = pieces, Tally(), [], []
        self.began, self.growth, self.load = time.monotonic(), None, os.getloadavg()[0]

    def say(self, words):
        at = int(time.monotonic() - self.began)
        print(f"{at // 60:3d}:{at % 60:02d}  {self.tally.violations} violations  {words}", flush=True)

    def start(self, piece, **how):
        program = Program(piece, **how)
        self.running.append(program)
        return program

    def finish(self, program, quiet=False, note=False):
        """What it said is added up. A failure tells how to see it again."""
        self.running.remove(program)
        result = program.result()
        self.tally.add(result)
        if result.violations:
            print(result.output[-6000:])
            self.say(f"BROKEN: {result.piece.replay}")
        elif not quiet:
            how = "skipped" if result.status == SKIPPED else f"{result.seconds:.0f} s"
            self.say(f"{result.piece.kind:12} {result.piece.replay}: {how}")
            if note:
                print(f"        {result.note}", flush=True)
        return result

    def wait(self, program, beside=lambda: None):
        while not program.is_over():
            beside()
            if self.growth:
                self.growth.sample()
            time.sleep(0.05)

    def campaign(self, pieces):
        for piece in pieces:
            program = self.start(piece, progress=True)
            self.wait(program)
            self.notes.append(self.finish(program, note=True).note)

    def mix(self, seed, minutes):
        """The simulator on one core beside what has servers of its own, but for what measures time."""
        witness = self.start(self.pieces.witness(), talks=True)
        self.growth = Growth(witness)
        simulator, end = Simulator(self, seed * 1_000_000), self.began + minutes * 60
        for piece in self.pieces.mixture(seed):
            if time.monotonic() >= end:
                break
            if piece.alone:
                simulator.settle()
            program = self.start(piece)
            self.wait(program, (lambda: None) if piece.alone else lambda: simulator.go_on(end))
            self.finish(program)
            if witness.is_over():
                break
        simulator.settle()
        if not witness.is_over():
            witness.process.send_signal(signal.SIGTERM)
        self.wait(witness)
        self.finish(witness, quiet=True)

    def stop(self):
        """Everything that still runs is gone afterwards; what belongs to the servers goes with them."""
        for program in self.running:
            program.kill()
        self.running = []


def read_arguments():
    words = "; ".join(f"{name}: {what}, {count:,}" for name, (what, count) in CAMPAIGNS.items())
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__, epilog=f"campaigns: {words}")
    parser.add_argument("campaign", nargs="?", choices=CAMPAIGNS, help="only this, until --count is reached")
    parser.add_argument("--minutes", type=float, default=10, help="without a campaign: how long (10)")
    parser.add_argument("--count", type=int, help="with a campaign: how many (what the issue wants)")
    parser.add_argument("--seed", type=int, help="the first one (1 for seeds, else the time)")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="write the table into this page, between "
                                                                      f"{record.BEGIN} and {record.END}")
    parser.add_argument("--record", action="store_true", help=f"add a line to {RECORD.relative_to(TREE)}")
    parser.add_argument("--build", type=Path, default=TREE / "build/dev", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = 1 if options.campaign == "seeds" else int(time.time()) % 90000 + 1
    if options.campaign and options.count is None:
        options.count = CAMPAIGNS[options.campaign][1]
    if (options.count or 1) < 1 or options.seed < 1 or options.minutes <= 0:
        parser.error("numbers above 0, please")
    return options


def command_of(options):
    what = f"{options.campaign} --count {options.count}" if options.campaign else f"--minutes {options.minutes:g}"
    return f"./dev soak {what} --seed {options.seed}"


def conclude(soak, options, stopped):
    """The table, and what is written down of it."""
    tally, took = soak.tally, time.monotonic() - soak.began
    loads = " ".join(f"{load:.1f}" for load in os.getloadavg())
    growth = soak.growth.text() if soak.growth else ""
    how = f"`{command_of(options)}`, {record.today()}, commit {record.commit(TREE)}, {took / 60:.1f} minutes" \
          f"{', stopped early' if stopped else ''}, load average at the end {loads}"
    print(f"\n{tally.text()}\n{how.replace('`', '')}" + "".join(f"\n{line}" for line in (tally.seeds_text(), growth)
                                                                if line))
    for failure in tally.failures:
        print(f"BROKEN, see it again with: {failure.piece.replay}")
    if options.markdown:
        notes = [how + ".", tally.seeds_text() and f"Simulator: {tally.seeds_text()}.", growth and f"{growth}."]
        record.put_into_page(options.markdown, tally.markdown() + "\n\n" + "\n".join(note for note in notes if note))
    if options.record:
        result = f"{tally.violations} violations, {tally.sum('false_losses')} false losses; " \
                 f"{tally.sum('faults'):,} faults, {tally.sum('operations'):,} operations"
        waits = [f"next holder after {row.wait:.0f} of {row.bound:.0f} ms at most" for row in tally.rows.values()
                 if row.wait is not None and options.campaign]
        lates = [f"{name} told p50 / p99 / max {' / '.join(f'{ms:.1f}' for ms in row.late)} ms"
                 for name, row in tally.rows.items() if row.late and options.campaign]
        notes = soak.notes if options.campaign == "large" else []
        histories = [f"{tally.histories:,} histories, {tally.seeds_text()}"] if tally.seeds else []
        record.append(RECORD, TREE, command_of(options), f"{soak.load:.1f}, {os.getloadavg()[0]:.1f}",
                      "; ".join(([] if not stopped else ["stopped early"]) + histories + [result] + waits + lates + notes))


def main():
    options = read_arguments()
    soak, stopped = Soak(Pieces(options.build)), False
    for number in (signal.SIGINT, signal.SIGTERM):  # also where a shell had us ignore it
        signal.signal(number, signal.default_int_handler)
    print(f"{command_of(options)}: load average {' '.join(f'{load:.1f}' for load in os.getloadavg())} on "
          f"{os.cpu_count()} cores", flush=True)
    try:
        if options.campaign:
            soak.campaign(soak.pieces.campaign(options.campaign, options.count, options.seed))
        else:
            soak.mix(options.seed, options.minutes)
    except KeyboardInterrupt:
        stopped = True
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        soak.stop()
    conclude(soak, options, stopped)
    return 1 if soak.tally.violations else 130 if stopped else 0


if __name__ == "__main__":
    sys.exit(main())
