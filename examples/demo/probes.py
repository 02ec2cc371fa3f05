# SPDX-License-Identifier: MIT
"""Our own requests beside the load: wrk tells latencies only when it ends, these tell them as they happen."""

import random
import threading

from claims import HOT, Probe
from fleet import HOT_PERCENT, PAGES
from processes import now_ns

THREADS = 4  # for each server
PAUSE = 0.04


class Probes:
    """list.append is atomic, so the threads share `taken` without more ado."""

    def __init__(self, servers):
        self.servers, self.taken, self.stopping = servers, [], threading.Event()
        self.threads = [
            threading.Thread(target=self.run, args=(s, seed), daemon=True)
            for s in servers
            for seed in range(THREADS)
        ]
        for thread in self.threads:
            thread.start()

    def ask(self, connection, server, page):
        start = now_ns()
        status, source, _ = connection.get(f"/page/{page}")
        self.taken.append(Probe(server.number, page, start, now_ns(), status, source))

    def run(self, server, seed):
        connection, choice = server.connect(), random.Random(100 * server.number + seed)
        while not self.stopping.wait(PAUSE * choice.uniform(0.5, 1.5)):
            page = HOT if choice.randrange(100) < HOT_PERCENT else f"p{choice.randint(1, PAGES)}"
            self.ask(connection, server, page)

    def ask_once(self, page):
        """Twice at each server at the same time, in threads of their own."""
        for server in self.servers:
            for _ in range(2):
                thread = threading.Thread(
                    target=lambda s=server: self.ask(s.connect(), s, page), daemon=True
                )
                self.threads.append(thread)
                thread.start()

    def recent(self, seconds):
        """Latencies in ms of what was answered in the last seconds."""
        since = now_ns() - int(seconds * 1e9)
        latencies = []
        for probe in reversed(self.taken):
            if probe.end < since - 5_000_000_000:
                break
            if probe.end >= since and probe.status == 200:
                latencies.append((probe.end - probe.start) / 1e6)
        return latencies

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(12)
        return list(self.taken)
