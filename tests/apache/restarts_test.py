# SPDX-License-Identifier: MIT
"""restarts_test.py MODULE [RESTARTS KILLS]: graceful restarts and killed children under load. No request fails besides
those of a killed child, and nothing is left: no process, thread or descriptor, no connection to Redis, no lease."""

import os
import re
import signal
import sys
import unittest

sys.dont_write_bytecode = True

from stand import ADDRESSES, PATIENCE_S, SITE, SOURCE, Child, Stand, await_, module_of

CONNECTIONS = 200
PAGES, HOT_PERCENT, THINK_MS = 20, 50, 5
LINES = ["HoldfastTTL 200ms", "KeepAlive off", "MaxConnectionsPerChild 0", "GracefulShutdownTimeout 5"]


def count(path):
    return len(os.listdir(path))


class Restarts(unittest.TestCase):
    def setUp(self):
        self.stand = Stand(MODULE, LINES, query="lease_ms=1000", threads=128)
        self.stand.__enter__()
        self.addCleanup(self.stand.__exit__)
        self.httpd = self.stand.httpds[0]

    def load(self, number):
        words = ["--threads", 1, "--connections", CONNECTIONS, "--duration", "3600s", "--timeout", "10s"]
        words += ["--header", f"Host: {SITE}", "--header", "Connection: close"]
        words += ["--script", SOURCE / "examples" / "demo" / "load.lua", f"http://{ADDRESSES[0]}:{self.stand.port}"]
        words += ["--", HOT_PERCENT, PAGES, THINK_MS, number]
        return Child(f"wrk{number}", self.stand.folder, "wrk", *words)

    def end(self, wrk):
        """(requests, bad answers, connections that failed)"""
        wrk.end(signal.SIGINT)
        requests, status, *sockets = map(int, re.search(r"wrk-result" + r" (\d+)" * 6, wrk.says()).groups())
        return requests, status, sum(sockets)

    def replace(self, old, by):
        by()
        await_(lambda: len(self.httpd.children()) >= 2 and not old & set(self.httpd.children()), self.httpd, seconds=PATIENCE_S)

    def names_at_redis(self):
        names = re.findall(r" name=(\S+) ", self.stand.ask_redis("CLIENT", "LIST"))
        return [name for name in names if name.startswith("apache2")]

    def state(self):
        """Of the server, when nothing is under way: descriptors and threads of the parent, threads of each child."""
        parent, children = f"/proc/{self.httpd.pid}", self.httpd.children()
        return count(f"{parent}/fd"), count(f"{parent}/task"), {count(f"/proc/{pid}/task") for pid in children}

    def leases(self):
        keys = self.stand.ask_redis("KEYS", "hf:*")
        return [key for key in keys if key != "hf:fence"]

    def goes_on(self, wrk):
        loads = self.stand.loads("/page/hot")
        await_(lambda: self.stand.loads("/page/hot") > loads, wrk)

    def test_restarts_and_kills_under_load(self):
        stand, httpd = self.stand, self.httpd
        wrk = self.load(1)
        await_(lambda: stand.loads("/page/hot") > 1, wrk)
        before = self.state()
        for _ in range(RESTARTS):
            self.replace(set(httpd.children()), httpd.restart)
        self.goes_on(wrk)
        requests, bad, failed = self.end(wrk)
        print(f"{RESTARTS} restarts: {requests} requests, {bad + failed} failed")
        self.assertEqual((bad, failed), (0, 0))
        self.assertGreater(requests, 0)

        wrk = self.load(2)
        for _ in range(KILLS):
            self.goes_on(wrk)
            victim = httpd.children()[0]
            self.replace({victim}, lambda: os.kill(victim, signal.SIGKILL))
        self.goes_on(wrk)
        requests, bad, failed = self.end(wrk)
        print(f"{KILLS} kills: {requests} requests, {bad} bad answers, {failed} connections of killed children")
        self.assertEqual(bad, 0)
        self.assertLessEqual(failed, KILLS * CONNECTIONS)
        self.assertGreater(requests, 0)

        await_(lambda: self.leases() == [], httpd)
        alive = {f"apache2-{pid}" for each in stand.httpds for pid in each.children()}
        await_(lambda: set(self.names_at_redis()) <= alive, httpd)
        await_(lambda: self.state() == before, httpd)
        log = httpd.says()
        self.assertEqual(re.findall(r".*(?:exit signal (?!Killed)|did not exit|could not make child).*", log), [])
        children = [pid for each in stand.httpds for pid in each.children()]
        self.assertEqual([each.end() for each in stand.httpds], [0, 0])
        self.assertEqual([pid for pid in children if os.path.exists(f"/proc/{pid}")], [])
        await_(lambda: self.names_at_redis() == [], stand.redis)


if __name__ == "__main__":
    MODULE = module_of(sys.argv)
    RESTARTS, KILLS = map(int, sys.argv[1:3] or (20, 5))
    unittest.main(argv=sys.argv[:1])
