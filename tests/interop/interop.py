#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Holdfast beside the lock libraries and recipes that fleets already use, on the same keys: both directions, under contention,
killed, woken, with garbage. 1: a promise of docs/interop.md was broken; 77: nothing could be tested here."""
import argparse
import asyncio
import json
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

sys.dont_write_bytecode = True

from garbage import garbage
from kill import kill
from neighbours import BY_NAME, KNOWN, version
from questions import Outcome, count, look, move, turn, wake
from stage import Gone, Stage

QUESTIONS = {"count": count, "look": look, "move": move, "kill": kill, "wake": wake, "turn": turn, "garbage": garbage}
SKIPPED = 77


@dataclass(frozen=True)
class Scale:
    sections: int      # of all processes together
    crew: int          # processes of each side
    pages: int
    kills: int         # of each side in each role
    seats: int         # locks whose holders and waiters are killed at the same time
    batons: int        # sections of each process
    judges_time: bool
    turns: int         # of one of theirs beside all of ours
    side_by_side: int  # neighbours
    seed: int = 1


QUICK = Scale(sections=240, crew=2, pages=8, kills=1, seats=1, batons=4, judges_time=False, turns=1, side_by_side=8)
USUAL = Scale(sections=1200, crew=4, pages=50, kills=8, seats=4, batons=25, judges_time=False, turns=1, side_by_side=1)
FULL = Scale(sections=10000, crew=4, pages=200, kills=100, seats=8, batons=100, judges_time=True, turns=3, side_by_side=1)


class Report:
    def __init__(self, as_json):
        self.as_json, self.failed, self.asked, self.skipped = as_json, 0, 0, []

    def say(self, question, neighbour, tested, outcome):
        self.asked += 1
        self.failed += bool(outcome.complaints)
        if self.as_json:
            print(json.dumps({"question": question, "neighbour": neighbour.name, "tested": tested, **outcome.fields,
                              "ok": not outcome.complaints, "complaints": outcome.complaints}), flush=True)
            return
        verdict = "FAILED" if outcome.complaints else "ok"
        print(f"interop {neighbour.name:<17} {question:<7} {verdict:<6} {outcome.words}", flush=True)
        for complaint in outcome.complaints[:8]:
            print(f"        {complaint}", flush=True)

    def skip(self, neighbour, why):
        self.skipped.append(neighbour.name)
        if self.as_json:
            print(json.dumps({"neighbour": neighbour.name, "skipped": why}), flush=True)
        else:
            print(f"interop {neighbour.name:<17} skipped: {why}", flush=True)


async def ask_one(neighbour, arguments, scale, report):
    tested = version(neighbour, arguments.node_path)
    if not tested:
        report.skip(neighbour, f"{neighbour.package} is not installed here (./dev interop installs it)")
        return
    stage = Stage(neighbour, arguments.ours, arguments.node_path)
    try:
        for word in arguments.questions:
            try:
                outcome = await QUESTIONS[word](stage, scale)
            except Gone as gone:
                outcome = Outcome("did not come to its end", [str(gone)])
                await stage.start_anew()
            if outcome:
                report.say(word, neighbour, tested, outcome)
    finally:
        await stage.close()


async def ask_all(neighbours, arguments, scale, report):
    places = asyncio.Semaphore(scale.side_by_side)

    async def in_a_place(neighbour):
        async with places:
            await ask_one(neighbour, arguments, scale, report)

    me = asyncio.current_task()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, me.cancel)
    await asyncio.gather(*(in_a_place(neighbour) for neighbour in neighbours))


def read_arguments():
    names = ", ".join(neighbour.name for neighbour in KNOWN)
    parser = argparse.ArgumentParser(prog="./dev interop", description=__doc__, epilog=f"neighbours: {names}")
    parser.add_argument("neighbours", nargs="*", metavar="NEIGHBOUR", help="only these")
    parser.add_argument("--full", action="store_true", help="10,000 sections, 100 deaths of each kind; half an hour and more")
    parser.add_argument("--quick", action="store_true", help="the test's: some seconds for all of them")
    parser.add_argument("--ask", action="append", dest="questions", choices=QUESTIONS, help="only this question; may be repeated")
    parser.add_argument("--kills", type=int, help="another number of deaths of each kind")
    parser.add_argument("--sections", type=int, help="another number of sections")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="a line of JSON for each question")
    parser.add_argument("--list", action="store_true", help="the neighbours, and what is tested of each")
    parser.add_argument("--ours", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--node-path", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.neighbours if name not in BY_NAME]:
        parser.error(f"there is no neighbour {unknown[0]}; there are: {names}")
    arguments.questions = arguments.questions or list(QUESTIONS)
    return arguments


def main():
    arguments = read_arguments()
    chosen = [BY_NAME[name] for name in arguments.neighbours] or [neighbour for neighbour in KNOWN if neighbour.in_quick or not arguments.quick]
    if arguments.list:
        for neighbour in chosen:
            print(f"{neighbour.name:<17} {version(neighbour, arguments.node_path) or 'not installed here'}")
        return 0
    scale = FULL if arguments.full else QUICK if arguments.quick else USUAL
    scale = replace(scale, seed=arguments.seed, **{key: value for key in ("kills", "sections") if (value := getattr(arguments, key))})
    report = Report(arguments.json)
    try:
        asyncio.run(ask_all(chosen, arguments, scale, report))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    if not arguments.json:
        print(f"interop: {report.asked - report.failed} of {report.asked} answers as promised, seed {arguments.seed}" +
              (f"; skipped: {', '.join(report.skipped)}" if report.skipped else ""))
    return 1 if report.failed else 0 if report.asked else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
