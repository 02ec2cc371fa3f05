# SPDX-License-Identifier: MIT
"""Our own requests beside the load: wrk tells latencies only when it ends, these tell them as they happen."""

import random
import re
import threading

from claims import HOT, Probe
from fleet import HOT_PERCENT, PAGES
from processes import now_ns

THREADS = 4  # for each server
PAUSE = 0.04
EMPTY_PERCENT = 20  # of them ask for no page
STAMP = re.compile(rb"<!-- stamp (\d+) (\d+) -->")


class Probes:
    """list.append is atomic, so the threads share the lists without more ado."""

    def __init__(self, servers):
        self.servers, self.stopping, self.threads = servers, threading.Event(), []
        self.taken, self.empty, self.watched = [], [], []
        for server in servers:
            for seed in range(THREADS):
                self.start(self.run, server, seed)

    def start(self, run, *words):
        thread = threading.Thread(target=run, args=words, daemon=True)
        self.threads.append(thread)
        thread.start()

    def ask(self, into, connection, server, page):
        start = now_ns()
        status, source, body = connection.get(f"/page/{page}")
        end, stamp = now_ns(), STAMP.search(body)
        into.append(Probe(server.number, page, start, end, status, source, *(map(int, stamp.groups()) if stamp else ())))

    def ask_nothing(self, connection, server):
        start = now_ns()
        status, source, _ = connection.get("/stats")
        if status == 200:
            self.empty.append(Probe(server.number, "", start, now_ns(), status, source))

    def run(self, server, seed):
        connection, choice = server.connect(), random.Random(100 * server.number + seed)
        while not self.stopping.wait(PAUSE * choice.uniform(0.5, 1.5)):
            if server.says_empty and choice.randrange(100) < EMPTY_PERCENT:
                self.ask_nothing(connection, server)
                continue
            page = HOT if choice.randrange(100) < HOT_PERCENT else f"p{choice.randint(1, PAGES)}"
            self.ask(self.taken, connection, server, page)

    def ask_once(self, page):
        """Twice at each server at the same time, in threads of their own."""
        for server in self.servers:
            for _ in range(2):
                self.start(lambda s=server: self.ask(self.taken, s.connect(), s, page))

    def watch(self, page):
        """Ask for it at each server, from now on."""
        for server in self.servers:
            self.start(self.keep_asking, server, page)

    def keep_asking(self, server, page):
        connection = server.connect()
        while not self.stopping.wait(PAUSE / 2):
            self.ask(self.watched, connection, server, page)

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
