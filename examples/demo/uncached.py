# SPDX-License-Identifier: MIT
"""What mod_holdfast costs a page that it must not keep: the CPU time of such a request, with the module and without, in turns."""

import re
import shutil
import signal
import time
from pathlib import Path

from engines import ENGINES
from httpd import Httpd, free_port
from processes import Child, InFolder, Trouble

CONNECTIONS = 8


def cpu_s(pids):
    """Time that the threads of processes have spent on a core."""
    threads = (task for pid in pids for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(int((task / "schedstat").read_text().split()[0]) for task in threads) / 1e9


class Bench(InFolder):
    """Two Apaches with the same page, a file with a cookie; one of them has the module, and would cache it. A context manager."""

    def __init__(self, build):
        self.module, self.children, self.engine = build / "modules" / "apache" / "mod_holdfast.so", [], None

    def __enter__(self):
        return self.begin("holdfast-demo-", 0o711)

    def start(self):
        self.engine = ENGINES["plain"](self.folder)
        self.engine.start()
        pages = self.folder / "pages"
        pages.mkdir()
        (pages / "cookie.html").write_text("x" * 4096)
        lines = [
            f"DocumentRoot {pages}",
            f"<Directory {pages}>\nRequire all granted\nAllowOverride None\n</Directory>",
            "Header set Set-Cookie id=1",
            "LogLevel crit",
        ]
        ours = [f"HoldfastServer {self.engine.uri()}", "HoldfastCache /"]
        for name, address, module, more in (("with", "127.0.0.1", self.module, ours), ("without", "127.0.0.2", None, [])):
            port = free_port([address])
            sizes = {"modules": ("headers",), "threads": 32, "children": 1}
            self.children.append(Httpd(name, self.folder, module, address, port, lines + more, **sizes))

    def cost(self, httpd, seconds):
        """CPU seconds of one request."""
        words = ["--threads", 1, "--connections", CONNECTIONS, "--duration", "3600s"]
        words += ["--script", Path(__file__).with_name("cookie.lua")]
        pids, name = httpd.children(), f"wrk-{time.monotonic_ns()}"
        wrk = Child(name, self.folder, "wrk", *words, f"http://{httpd.address}:{httpd.port}/cookie.html")
        before = cpu_s(pids)
        time.sleep(seconds)
        spent = cpu_s(pids) - before
        wrk.end(signal.SIGINT)
        found = re.search(r"wrk-result (\d+) (\d+) (\d+)", wrk.says())
        if not found or int(found[1]) == 0 or int(found[2]) != 0:
            raise Trouble(f"wrk failed\n{wrk.says()}")
        return spent / (int(found[1]) / int(found[3]) * 1e6 * seconds)

    def pairs(self, turns, seconds):
        """(with, without) of each turn; each begins with the one that the last one ended with."""
        with_it, without = self.children
        found = [(self.cost(with_it, seconds), self.cost(without, seconds))]  # a warm-up
        for turn in range(turns):
            first, second = (with_it, without) if turn % 2 else (without, with_it)
            costs = {first: self.cost(first, seconds), second: self.cost(second, seconds)}
            found.append((costs[with_it], costs[without]))
        return found[1:]

    def __exit__(self, *_):
        for child in self.children:
            child.end()
        if self.engine:
            self.engine.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
