# SPDX-License-Identifier: MIT
"""stage.py - a private server and the processes that are told what to do. All of them end with the driver, whatever ends it."""
import asyncio
import os
import shutil
import signal
import subprocess
import tempfile
import time

import redis

CREW = "crew"
SETTLE_S = 20  # a process that is not ready by then never will be


class Gone(Exception):
    """A process ended, or did not answer."""


class Stalls:
    """How long this machine let one that wanted to run stand still: a process of ours can lose its lease by that, and be late."""

    STEP_S = 0.02

    def __init__(self):
        self.seen, self.task = [], asyncio.ensure_future(self.watch())

    async def watch(self):
        before = time.monotonic()
        while True:
            await asyncio.sleep(self.STEP_S)
            now = time.monotonic()
            if now - before > 3 * self.STEP_S:
                self.seen.append((now, now - before - self.STEP_S))
            before = now

    def worst_ms(self, since):
        return 1000 * max([length for at, length in self.seen if at >= since], default=0)

    def stop(self):
        self.task.cancel()


class Server:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="holdfast-interop-", dir="/tmp")
        self.socket = f"{self.folder}/redis.sock"
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.folder,
             "--save", "", "--appendonly", "no", "--logfile", f"{self.folder}/log"])
        self.redis = redis.Redis(unix_socket_path=self.socket)
        end = time.monotonic() + SETTLE_S
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                raise Gone("redis-server does not start: " + open(f"{self.folder}/log").read()[-400:])
            time.sleep(0.01)

    def answers(self):
        try:
            return self.redis.ping()
        except redis.RedisError:
            return False

    def url(self, query=""):
        return f"unix://{self.socket}" + (f"?{query}" if query else "")

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Actor:
    """One process; `ask` says a line and waits for the answer, `say` only says it and `answer` waits."""

    def __init__(self, process, side):
        self.process, self.side = process, side

    def say(self, line):
        self.process.stdin.write(f"{line}\n".encode())

    async def answer(self, within_s):
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), within_s)
        except asyncio.TimeoutError:
            raise Gone(f"{self.side} did not answer within {within_s:.0f} s") from None
        if not line:
            raise Gone(f"{self.side} ended")
        return line.decode(errors="replace").rstrip("\n")

    async def ask(self, line, within_s=30):
        self.say(line)
        return await self.answer(within_s)

    async def kill(self):
        """Returns when it was killed."""
        at = time.monotonic_ns()
        os.kill(self.process.pid, signal.SIGKILL)  # send_signal would take the exit status from asyncio
        await self.process.wait()
        return at


class Stage:
    """The server and the actors of one neighbour."""

    def __init__(self, neighbour, ours, node_path):
        self.neighbour, self.ours_program, self.actors, self.crew = neighbour, ours, [], {"ours": [], "theirs": []}
        self.environment = {**os.environ, "NODE_PATH": node_path, "PYTHONDONTWRITEBYTECODE": "1", "NODE_NO_WARNINGS": "1"}
        self.server = Server()
        self.redis = self.server.redis

    def line(self, side, name, lease_ms):
        """What starts one of: theirs; ours, in their dialect; moving, in theirs and then in our own; moved, in our own alone."""
        dialect = self.neighbour.dialect
        if side == "theirs":
            return self.neighbour.line(self.server.url(f"lease_ms={lease_ms}&permits={self.neighbour.permits}"), name)
        url = self.server.url(f"lease_ms={lease_ms}" + (f"&dialect={dialect}" if side == "ours" else ""))
        return [self.ours_program, url, name] + ([dialect] if side == "moving" else [])

    async def actor(self, side, name, lease_ms):
        process = await asyncio.create_subprocess_exec(
            "setpriv", "--pdeathsig", "KILL", *self.line(side, name, lease_ms), env=self.environment,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 24)
        actor = Actor(process, side)
        self.actors.append(actor)
        ready = await actor.answer(SETTLE_S)
        if ready != "ready":
            raise Gone(f"{side}: {ready}")
        return actor

    async def together(self, ours, theirs):
        """So many of ours and so many of theirs, all with the lock CREW; those that are there already work again."""
        for side, count in (("ours", ours), ("theirs", theirs)):
            missing = count - len(self.crew[side])
            self.crew[side] += await asyncio.gather(*(self.actor(side, CREW, self.neighbour.crew_lease_ms) for _ in range(missing)))
        return self.crew["ours"][:ours] + self.crew["theirs"][:theirs]

    async def dismiss(self, actors):
        for actor in actors:
            if actor.process.returncode is None:
                await actor.kill()
            self.actors.remove(actor)

    async def start_anew(self):
        """What is left of a question that did not come to its end is no part of the next one."""
        await self.dismiss(list(self.actors))
        self.crew = {"ours": [], "theirs": []}
        self.redis.flushall()

    async def close(self):
        await self.dismiss(list(self.actors))
        self.server.close()
