# SPDX-License-Identifier: MIT
"""The demo's servers as Apaches: event MPM, the slow origin behind ProxyPass, with mod_holdfast or without."""

import re
from collections import defaultdict

from fleet import Fleet, Server
from httpd import Httpd, apache, free_port
from processes import Trouble, await_

SITE = "shop.example"
COUNTERS = {  # of /holdfast, by the names of the table
    "cached": "hits",
    "near": "hits_near",
    "shared": "hits_shared",
    "stale": "hits_stale",
    "loaded": "loads",
    "failed": "load_failures",
    "acquired": "acquired",
    "lost": "lost",
    "commands": "remote_commands",
}
METRIC = re.compile(r'^holdfast_(\w+?)(?:_total)?\{client="[^"]*-(\d+)"\} (\d+)$', re.MULTILINE)


class Apache(Server):
    """One child that serves; the next one after each graceful restart, so counters are kept by pid."""

    says_empty = False  # it has no page that costs nothing
    headers = {"Host": SITE, "Connection": "close"}  # a restart closes idle connections, which a request may meet

    def __init__(self, fleet, number, port):
        super().__init__(fleet, number, port)
        self.address, self.seen = f"127.0.0.{number + 1}", defaultdict(dict)

    @property
    def counts(self):
        return self.fleet.way.lock

    @property
    def pid(self):
        children = self.child.children() if self.child else []
        return children[-1] if children else None

    def lines(self):
        setup, folder = self.fleet.setup, self.fleet.folder
        uri = self.fleet.engine.uri(lease_ms=setup.lease_ms)
        ours = [
            f"HoldfastServer {uri}",
            "HoldfastCache /page",
            f"HoldfastTTL {setup.ttl_ms}ms",
            f"HoldfastStale {setup.ttl_ms}ms",
            f"HoldfastNear {setup.ttl_ms}ms",
            "HoldfastStatus /holdfast",
        ]
        return [
            f'ProxyPass /page "unix:{folder}/origin.sock|http://origin/page" disablereuse=on',
            "GracefulShutdownTimeout 10",
            "LogLevel crit",
            *(ours if self.fleet.way.lock else []),
        ]

    def start(self):
        self.generation += 1
        name = f"httpd{self.number + 1}-{self.generation}"
        sizes = {"threads": max(64, 2 * self.fleet.connections), "children": 1}
        module = self.fleet.build / "modules" / "apache" / "mod_holdfast.so" if self.fleet.way.lock else None
        self.child = Httpd(name, self.fleet.folder, module, self.address, self.port, self.lines(), **sizes)
        self.page = self.connect(timeout=2)

    def restart(self):
        """Gracefully; returns when the next child serves."""
        old = self.child.children()
        self.child.restart()
        await_(lambda: set(self.child.children()) - set(old), self.child)

    def read_stats(self):
        if self.child is None or not self.counts:
            return
        status, _, text = self.page.get("/holdfast")
        if status != 200:
            return
        found = METRIC.findall(text.decode())
        now = {name: int(value) for name, _, value in found}
        self.seen[found[0][1]] = {name: sum(now[m] for m in metrics.split()) for name, metrics in COUNTERS.items()}
        self.gauges = {name: now[name] for name in ("waiting",)}
        self.total = {name: sum(counters[name] for counters in self.seen.values()) for name in COUNTERS}


class Apaches(Fleet):
    def make_servers(self, count):
        port = free_port([f"127.0.0.{n + 1}" for n in range(count)])
        return [Apache(self, n, port) for n in range(count)]

    def start(self):
        if apache() is None:
            raise Trouble("apache2 is not installed")
        self.folder.chmod(0o711)  # where root starts Apache, its children are somebody else
        super().start()
