# SPDX-License-Identifier: MIT
"""The programs of a soak: how one is started, ended whatever happens, and what its last lines say."""

import ctypes
import dataclasses
import os
import re
import signal
import subprocess
import tempfile
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
SKIPPED = 77


@dataclasses.dataclass(frozen=True)
class Piece:
    """One thing to run. `alone`: it measures time, so nothing may run beside it."""

    kind: str
    command: tuple
    replay: str
    alone: bool = False
    patience_s: float = 900


@dataclasses.dataclass
class Result:
    piece: Piece
    status: int
    seconds: float
    summary: dict
    output: str

    @property
    def violations(self):
        """What the summary says; a program that failed or crashed without a word is one too."""
        said = int(self.summary.get("violations", 0))
        return said if said or self.status in (0, SKIPPED) else 1

    @property
    def note(self):
        """What it says for people."""
        lines = [line for line in self.output.splitlines() if line.strip() and not line.startswith("summary ")]
        return lines[-1].strip() if lines else ""


class Program:
    """A piece that runs. It dies with us (the kernel sees to it) and takes everything it has started along."""

    def __init__(self, piece, progress=False, talks=False):
        self.piece, self.began = piece, time.monotonic()
        parent = os.getpid()

        def die_with_parent():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)

        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [str(word) for word in piece.command],
            stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
            stdout=self.output,
            stderr=None if progress else self.output,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def is_over(self):
        if self.process.poll() is None and time.monotonic() - self.began > self.piece.patience_s:
            self.kill()
        return self.process.poll() is not None

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # a session of its own, and not reaped: the group is its own
            self.process.wait()

    def result(self):
        text = self.said()
        return Result(self.piece, self.process.returncode, time.monotonic() - self.began, read(text), text)

    def said(self):
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


def read(text):
    """All numbers of the last `summary` line, or those that the simulator's table gives."""
    lines = re.findall(r"^summary \S+ (.*)$", text, re.M)
    if lines:
        return {key: float(number) for key, number in re.findall(r"(\w+)=(-?[\d.]+)", lines[-1])}
    sim = re.search(r"^sim: (\d+) histories from seed (\d+), (\d+) violations(?:, digest ([0-9a-f]+))?", text, re.M)
    if not sim:
        return {}
    count, start, violations, digest = sim.groups()
    faults, commands = re.search(r", (\d+) faults, (\d+) commands", text).groups()
    return {"histories": int(count), "from": int(start), "violations": int(violations), "faults": int(faults),
            "operations": int(commands), "digest": int(digest or "0", 16)}
