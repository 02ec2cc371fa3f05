# SPDX-License-Identifier: MIT
"""The processes of the demo: Redis, the origin, the servers and their loads. None outlives the demo."""

import ctypes
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from claims import HOT, Wrk, read_log

PAGES = 20  # besides the hot one
HOT_PERCENT = 70
THINK_MS = 50
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


class Trouble(Exception):
    """The demo cannot go on; the text says why."""


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Child:
    """A process that dies with us (the kernel sees to it); its output is kept for the case of trouble."""

    def __init__(self, name, folder, *command):
        self.name, self.log = name, folder / f"{name}.log"
        parent = os.getpid()

        def die_with_parent():
            LIBC.prctl(
                PR_SET_PDEATHSIG, signal.SIGKILL
            )  # when the starting *thread* ends: start from the main one
            if os.getppid() != parent:
                os._exit(1)

        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(
                [str(c) for c in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    @property
    def pid(self):
        return self.process.pid

    def says(self):
        return self.log.read_text(errors="replace")

    def check(self):
        if self.process.poll() is not None:
            last = "\n".join(self.says().splitlines()[-5:])
            raise Trouble(f"{self.name} ended by itself ({self.process.returncode})\n{last}")

    def end(self, how=signal.SIGTERM, patience=15):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(patience)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


class Page:
    """A keep-alive connection to one server."""

    def __init__(self, port, timeout=10):
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def get(self, path):
        try:
            self.http.request("GET", path)
            answer = self.http.getresponse()
            return answer.status, answer.getheader("X-Source", ""), answer.read()
        except (OSError, http.client.HTTPException):
            self.http.close()
            return 0, "", b""


class Server:
    """A stampede_server and the wrk that loads it. Counters go on over a restart."""

    def __init__(self, fleet, number, port):
        self.fleet, self.number, self.port = fleet, number, port
        self.total, self.base, self.gauges = {}, {}, {}
        self.generation = 0
        self.child = self.wrk = None

    def start(self):
        flags = [] if self.fleet.lock else ["--no-lock"]
        self.generation += 1
        self.child = Child(
            f"server{self.number + 1}",
            self.fleet.folder,
            self.fleet.binary("stampede_server"),
            *flags,
            self.port,
            self.fleet.redis_url,
            "127.0.0.1",
            self.fleet.origin_port,
            self.fleet.setup.ttl_ms,
        )
        self.page = Page(self.port, timeout=2)
        self.fleet.await_(lambda: self.page.get("/stats")[0] == 200, self.child)

    def start_load(self):
        self.wrk = Child(
            f"wrk{self.number + 1}-{self.generation}",
            self.fleet.folder,
            "wrk",
            "--threads",
            1,
            "--connections",
            self.fleet.connections,
            "--duration",
            "3600s",
            "--timeout",
            "10s",
            "--script",
            Path(__file__).with_name("load.lua"),
            f"http://127.0.0.1:{self.port}",
            "--",
            HOT_PERCENT,
            PAGES,
            THINK_MS,
            100 * self.generation + self.number,
        )

    def end_load(self, killed=False):
        """SIGINT makes wrk stop and count."""
        if self.wrk is None:
            return
        self.wrk.end(signal.SIGINT)
        found = re.search(r"wrk-result (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)", self.wrk.says())
        if not found:
            raise Trouble(f"{self.wrk.name} gave no result\n{self.wrk.says()}")
        requests, status, *sockets = map(int, found.groups())
        self.fleet.wrks.append(Wrk(self.number, requests, status, sum(sockets), killed))
        self.wrk = None

    def read_stats(self):
        if self.child is None:
            return
        status, _, text = self.page.get("/stats")
        if status != 200:
            return
        words = text.decode().split()
        now = dict(zip(words[::2], map(int, words[1::2])))
        self.gauges = {name: now.pop(name) for name in ("waiting", "held")}
        self.total = {name: value + self.base.get(name, 0) for name, value in now.items()}

    def kill(self):
        self.child.process.kill()
        self.child.process.wait()
        self.child, self.gauges, self.base = None, {}, dict(self.total)


class Fleet:
    """A private Redis, an origin, some servers: with hf_fetch, or (lock=False) without. A context manager."""

    def __init__(self, build, setup, processes, connections, lock, origin_log):
        self.build, self.setup, self.lock, self.origin_log = build, setup, lock, origin_log
        self.connections = max(1, connections // processes)  # for each server
        self.servers = [Server(self, n, port) for n, port in enumerate(free_ports(processes))]
        self.wrks, self.children, self.frozen = [], [], False
        self.origin_lines = None

    def binary(self, name):
        return self.build / "examples" / "demo" / name

    def await_(self, ready, *children, seconds=10):
        end = time.monotonic() + seconds
        while not ready():
            for child in children:
                child.check()
            if time.monotonic() > end:
                raise Trouble(f"{children[0].name} does not answer\n{children[0].says()}")
            time.sleep(0.01)

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-", dir="/tmp"))
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        path = self.folder / "redis.sock"
        self.redis = Child(
            "redis",
            self.folder,
            "redis-server",
            "--port",
            0,
            "--unixsocket",
            path,
            "--unixsocketperm",
            700,
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            self.folder,
        )
        self.children.append(self.redis)
        self.redis_url = f"unix://{path}?lease_ms={self.setup.lease_ms}"
        self.await_(lambda: self.redis_answers(path), self.redis)
        [self.origin_port] = free_ports(1)
        self.origin = Child(
            "origin",
            self.folder,
            self.binary("origin"),
            self.origin_port,
            self.origin_log,
            self.setup.load_ms,
        )
        self.children.append(self.origin)
        self.await_(lambda: self.under_way() is not None, self.origin)
        self.loads_read, self.origin_lines = [], open(self.origin_log, encoding="ascii")
        for server in self.servers:
            server.start()

    @staticmethod
    def redis_answers(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(1)
            try:
                s.connect(str(path))
                s.sendall(b"PING\r\n")
                return s.recv(16).startswith(b"+PONG")
            except OSError:
                return False

    def under_way(self):
        """(page, pid, start) of each load that the origin works on; None if it does not answer."""
        status, _, text = Page(self.origin_port, timeout=2).get("/now")
        if status != 200:
            return None
        rows = (line.split() for line in text.decode().splitlines())
        return [(page, int(pid), int(start)) for page, pid, start in rows]

    def loader_of_hot(self, setup):
        """The server whose load of the hot page has just begun, or None."""
        for page, pid, start in self.under_way() or []:
            if page == HOT and now_ns() - start < setup.load_ms * 1_000_000 // 2:
                return next((s for s in self.servers if s.child and s.child.pid == pid), None)
        return None

    def freeze(self):
        os.kill(self.redis.pid, signal.SIGSTOP)
        self.frozen = True
        stat = Path(f"/proc/{self.redis.pid}/stat")
        while stat.read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.001)
        return now_ns()

    def thaw(self):
        at = now_ns()
        os.kill(self.redis.pid, signal.SIGCONT)
        self.frozen = False
        return at

    def check(self):
        for child in [self.redis, self.origin] + [c for s in self.servers for c in (s.child, s.wrk) if c]:
            child.check()

    def total(self, name):
        return sum(s.total.get(name, 0) for s in self.servers)

    def loads(self):
        """All that the origin has written down so far."""
        self.loads_read += read_log(self.origin_lines.readlines())
        return self.loads_read

    def stop_servers(self):
        """Their exit codes."""
        ended = [s.child for s in self.servers if s.child]
        for child in ended:
            child.process.terminate()
        codes = [child.end() for child in ended]
        for server in self.servers:
            server.child = None
        return codes

    def __exit__(self, *_):
        if self.frozen:
            self.thaw()
        loads = [s.wrk for s in self.servers if s.wrk]
        servers = [s.child for s in self.servers if s.child]
        for child in loads + servers + self.children[::-1]:
            child.end(signal.SIGKILL)
        if self.origin_lines:
            self.origin_lines.close()
        shutil.rmtree(self.folder, ignore_errors=True)
