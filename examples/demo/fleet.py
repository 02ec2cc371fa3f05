# SPDX-License-Identifier: MIT
"""The processes of the demo: an engine, the origin, the servers and their loads. None outlives the demo."""

import http.client
import re
import shutil
import signal
from pathlib import Path
from typing import NamedTuple

from claims import HOT, Wrk, read_log
from engines import ENGINES
from processes import Child, InFolder, Trouble, await_, free_ports, now_ns

PAGES = 20  # besides the hot one
HOT_PERCENT = 70
THINK_MS = 50
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # they wait until all is cleaned up


class Way(NamedTuple):
    """How the servers get their pages."""

    name: str
    flags: tuple = ()  # of stampede_server

    @property
    def lock(self):
        return "--no-lock" not in self.flags


class Page:
    """A keep-alive connection to one server."""

    def __init__(self, port, timeout=10, address="127.0.0.1", headers=()):
        self.http, self.headers = http.client.HTTPConnection(address, port, timeout=timeout), dict(headers)

    def get(self, path):
        try:
            self.http.request("GET", path, headers=self.headers)
            answer = self.http.getresponse()
            source = answer.getheader("X-Source") or answer.getheader("Cache-Status", "").rpartition("detail=")[2]
            return answer.status, source, answer.read()
        except (OSError, http.client.HTTPException):
            self.http.close()
            return 0, "", b""


class Server:
    """A stampede_server and the wrk that loads it. Counters go on over a restart."""

    address, headers = "127.0.0.1", {}
    says_empty = counts = True  # it has a page that costs nothing; it counts what it does

    def __init__(self, fleet, number, port):
        self.fleet, self.number, self.port = fleet, number, port
        self.total, self.base, self.gauges = {}, {}, {}
        self.generation = 0
        self.child = self.wrk = None

    def start(self):
        self.generation += 1
        self.child = Child(
            f"server{self.number + 1}",
            self.fleet.folder,
            self.fleet.binary("stampede_server"),
            *self.fleet.way.flags,
            self.port,
            self.uri(),
            "127.0.0.1",
            self.fleet.origin_port,
            self.fleet.setup.ttl_ms,
        )
        self.page = self.connect(timeout=2)
        await_(lambda: self.page.get("/stats")[0] == 200, self.child)

    def uri(self):
        setup = self.fleet.setup
        near = {"near_lag_ms": setup.near_lag_ms} if setup.near_lag_ms else {}
        return self.fleet.engine.uri(lease_ms=setup.lease_ms, **near)

    @property
    def pid(self):
        """Of the process that loads."""
        return self.child.pid if self.child else None

    def connect(self, timeout=10):
        return Page(self.port, timeout, self.address, self.headers)

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
            *(word for name, value in self.headers.items() for word in ("--header", f"{name}: {value}")),
            "--script",
            Path(__file__).with_name("load.lua"),
            f"http://{self.address}:{self.port}",
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
        self.gauges = {name: now.pop(name) for name in ("waiting",)}
        self.total = {name: value + self.base.get(name, 0) for name, value in now.items()}

    def forget(self, page):
        status, _, _ = self.page.get(f"/forget/page/{page}")
        if status != 200:
            raise Trouble(f"server {self.number + 1} cannot forget /page/{page} ({status})")

    def kill(self):
        self.child.end(signal.SIGKILL)
        self.child, self.gauges, self.base = None, {}, dict(self.total)


class Fleet(InFolder):
    """An engine, an origin, some servers that get their pages in one way. A context manager."""

    def __init__(self, build, engine, setup, processes, connections, way, origin_log):
        self.engine_name, self.engine, self.origin = engine, None, None
        self.build, self.setup, self.way, self.origin_log = build, setup, way, origin_log
        self.connections = max(1, connections // processes)  # for each server
        self.servers = self.make_servers(processes)
        self.wrks, self.is_away, self.origin_lines = [], False, None

    def make_servers(self, count):
        return [Server(self, n, port) for n, port in enumerate(free_ports(count))]

    def binary(self, name):
        return self.build / "examples" / "demo" / name

    def __enter__(self):
        return self.begin("holdfast-demo-", 0o700)

    def start(self):
        self.engine = ENGINES[self.engine_name](self.folder)
        self.engine.start()
        [self.origin_port] = free_ports(1)
        self.origin = Child(
            "origin",
            self.folder,
            self.binary("origin"),
            self.origin_port,
            self.origin_log,
            self.setup.load_ms,
            self.folder / "origin.sock",
        )
        await_(lambda: self.under_way() is not None, self.origin)
        self.loads_read, self.origin_lines = [], open(self.origin_log, encoding="ascii")
        for server in self.servers:
            server.start()

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
                return next((s for s in self.servers if s.pid == pid), None)
        return None

    def take_away(self):
        self.is_away = True
        return self.engine.take_away()

    def look(self):
        silent_until, back, words = self.engine.look()
        self.is_away = back == 0
        return silent_until, back, words

    def check(self):
        self.engine.check()
        for child in [self.origin] + [c for s in self.servers for c in (s.child, s.wrk) if c]:
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
        late = []
        before = {ending: signal.signal(ending, lambda number, _: late.append(number)) for ending in ENDINGS}
        self.end_all()
        for ending, handler in before.items():
            signal.signal(ending, handler)
        for number in late:
            signal.raise_signal(number)

    def end_all(self):
        loads = [s.wrk for s in self.servers if s.wrk]
        servers = [s.child for s in self.servers if s.child]
        for child in loads + servers + ([self.origin] if self.origin else []):
            child.end(signal.SIGKILL)
        if self.engine:
            self.engine.stop()
        if self.origin_lines:
            self.origin_lines.close()
        shutil.rmtree(self.folder, ignore_errors=True)
