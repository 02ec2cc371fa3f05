# SPDX-License-Identifier: MIT
"""The private servers that the demo's locks live on: one Redis, one that speaks TLS, or one of Sentinel's. Each engine
can be taken away for a while: a server alone is frozen, a primary that sentinels watch is killed."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from urllib.parse import urlencode

from processes import Child, Trouble, await_, free_ports, now_ns

CERTIFICATES = Path(__file__).resolve().parents[2] / "tests" / "support" / "certificates.sh"
FREEZE_S = 2
PATIENCE_S = 20
LATE_DIAL_MS = 1400  # a pause between dials (1 s), and a re-check (0.4 s) by who missed a message meanwhile


class Asking:
    """Questions to one server, over its unix socket. None: no answer."""

    def __init__(self, path):
        self.path, self.stream = path, None

    def ask(self, *words):
        try:
            if self.stream is None:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(1)
                    s.connect(str(self.path))
                    self.stream = s.makefile("rwb")
            self.stream.write((" ".join(words) + "\r\n").encode())
            self.stream.flush()
            return self.read()
        except OSError:
            self.stream = None
            return None

    def read(self):
        line = self.stream.readline().decode().rstrip()
        if not line:
            raise ConnectionResetError
        kind, rest = line[0], line[1:]
        if kind == "*":
            return [self.read() for _ in range(int(rest))]
        if kind == "$" and int(rest) >= 0:
            return self.stream.read(int(rest) + 2)[:-2].decode()
        return rest


class Redis(Child):
    """A redis-server that keeps nothing. `lines`: of its configuration."""

    def __init__(self, name, folder, *lines, sentinel=False):
        home = folder / name
        home.mkdir()
        socket_path, config = home / "redis.sock", home / "redis.conf"
        # The folder is ours alone, unless servers run as another user (apache_fleet.py).
        own = [f"dir {home}", f"unixsocket {socket_path}", "unixsocketperm 777", "bind 127.0.0.1"]
        if not sentinel:
            own += ['save ""', "appendonly no"]
        config.write_text("\n".join([*own, *lines, ""]))
        super().__init__(name, folder, "redis-server", config, *(["--sentinel"] if sentinel else []))
        self.asking = Asking(socket_path)

    def ask(self, *words):
        return self.asking.ask(*words)

    def await_answer(self):
        await_(lambda: self.ask("PING") == "PONG", self)


class Plain:
    """One Redis, on a unix socket."""

    name, where = "plain", "a private Redis"
    blow, away = "a frozen Redis", "Redis is frozen"
    times = {}  # of claims.Setup
    needs = ("redis-server",)

    def __init__(self, folder):
        self.folder, self.servers = folder, []

    def start(self):
        self.add("redis", "port 0")
        self.address, self.options = f"unix://{self.folder}/redis/redis.sock", {}

    def add(self, name, *lines, sentinel=False):
        server = Redis(name, self.folder, *lines, sentinel=sentinel)
        self.servers.append(server)
        server.await_answer()
        return server

    def uri(self, **options):
        query = urlencode({**self.options, **options}, safe="/")
        return self.address + ("?" + query if query else "")

    def check(self):
        for server in self.servers:
            server.check()

    def stop(self):
        for server in self.servers[::-1]:
            server.end(signal.SIGKILL)

    def take_away(self):
        """When that was, from when on surely nobody is served, and what to say about it."""
        [server] = self.servers
        os.kill(server.pid, signal.SIGSTOP)
        stat = Path(f"/proc/{server.pid}/stat")
        while stat.read_text().rsplit(")", 1)[1].split()[0] != "T":
            time.sleep(0.001)
        self.away_since = now_ns()
        return self.away_since, self.away_since, f"Redis is stopped for {FREEZE_S} s (SIGSTOP)"

    def look(self):
        """While it is away: until when surely nobody was served; since when it is back (0: it is not); what to say."""
        at = now_ns()
        if at - self.away_since < FREEZE_S * 1e9:
            return at, 0, ""
        os.kill(self.servers[0].pid, signal.SIGCONT)
        return at, at, "Redis goes on (SIGCONT)"


class Tls(Plain):
    """One Redis whose port speaks TLS alone, with certificates made for this run."""

    name, where = "tls", "a private Redis that speaks TLS"
    times = {"redial_ms": LATE_DIAL_MS}
    needs = ("redis-server", "openssl")

    def start(self):
        made = subprocess.run(["sh", CERTIFICATES, self.folder], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Trouble(f"no certificates\n{made.stderr}")
        [port] = free_ports(1)
        files = [("ca-cert", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")]
        lines = [f"tls-{kind}-file {self.folder}/{file}" for kind, file in files]
        self.add("redis", "port 0", f"tls-port {port}", "tls-auth-clients no", *lines)
        self.address, self.options = f"rediss://127.0.0.1:{port}", {"tls_ca_file": self.folder / "ca.pem"}


class Sentinel(Plain):
    """A primary, two replicas, and three sentinels that replace it when it is dead."""

    name, where = "sentinel", "a private Redis (a primary, two replicas, three sentinels)"
    blow, away = "the loss of the primary", "no primary"
    times = {"redial_ms": LATE_DIAL_MS, "down_after_ms": 1000}
    service = "mymaster"

    def start(self):
        ports = free_ports(6)
        watchers = ports[3:]
        quickly = "repl-diskless-sync-delay 0"
        self.primary = self.add("redis1", f"port {ports[0]}", quickly)
        for n in (1, 2):
            self.add(f"redis{n + 1}", f"port {ports[n]}", quickly, f"replicaof 127.0.0.1 {ports[0]}")
        self.replicas = self.servers[1:]
        lines = [
            f"sentinel monitor {self.service} 127.0.0.1 {ports[0]} 2",
            f"sentinel down-after-milliseconds {self.service} {self.times['down_after_ms']}",
            f"sentinel failover-timeout {self.service} 3000",
            f"sentinel parallel-syncs {self.service} 2",
        ]
        self.sentinels = [
            self.add(f"sentinel{n + 1}", f"port {port}", *lines, sentinel=True) for n, port in enumerate(watchers)
        ]
        self.port = str(ports[0])
        hosts = ",".join(f"127.0.0.1:{port}" for port in watchers)
        self.address, self.options = f"sentinel://{hosts}/{self.service}", {}
        await_(lambda: all(self.knows_all(s) for s in self.sentinels), *self.sentinels, seconds=PATIENCE_S)

    def names(self, sentinel):
        """What it knows of the primary."""
        words = sentinel.ask("SENTINEL", "MASTER", self.service)
        return dict(zip(words[::2], words[1::2])) if isinstance(words, list) else {}

    def has_moved(self):
        return any(self.names(s).get("port", self.port) != self.port for s in self.sentinels)

    def knows_all(self, sentinel):
        known = self.names(sentinel)
        return known.get("num-slaves") == "2" and known.get("num-other-sentinels") == "2"

    def take_away(self):
        if self.has_moved():
            raise Trouble("the sentinels have replaced a primary that was alive: this machine is too busy")
        self.away_since = now_ns()
        self.primary.end(signal.SIGKILL)
        self.last_none = now_ns()
        self.servers.remove(self.primary)
        return self.away_since, self.last_none, f"kill -9 of the primary (pid {self.primary.pid})"

    def look(self):
        """It is back when a sentinel names another one, which it tells its clients at once."""
        at, roles = now_ns(), [(replica.ask("ROLE") or ["silent"])[0] for replica in self.replicas]
        if roles == ["slave", "slave"]:
            self.last_none = at
        elif "master" in roles and self.has_moved():
            back = now_ns()
            return self.last_none, back, f"the sentinels name another primary after {(back - self.away_since) / 1e9:.1f} s"
        if at - self.away_since > PATIENCE_S * 1e9:
            raise Trouble("the sentinels name no other primary\n" + self.sentinels[0].says())
        return self.last_none, 0, ""


ENGINES = {engine.name: engine for engine in (Plain, Tls, Sentinel)}
