# SPDX-License-Identifier: MIT
"""What mod_holdfast costs a page that it must not keep: the CPU time of such a request, with the module and without, in turns."""

import os
import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

from engines import ENGINES
from httpd import Httpd, free_port
from processes import Child, Trouble

CONNECTIONS = 8
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def cpu_s(pids):
    """User and system time of processes."""
    fields = (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids)
    return sum(int(f[11]) + int(f[12]) for f in fields) * TICK_S


class Bench:
    """Two Apaches with the same page, a file with a cookie; one of them has the module, and would cache it. A context manager."""

    def __init__(self, build):
        self.module, self.children = build / "modules" / "apache" / "mod_holdfast.so", []

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-demo-", dir="/tmp"))
        self.folder.chmod(0o711)
        self.engine = ENGINES["plain"](self.folder)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
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
        """(with, without) of each turn."""
        for httpd in self.children:
            self.cost(httpd, seconds)
        return [tuple(self.cost(httpd, seconds) for httpd in self.children) for _ in range(turns)]

    def __exit__(self, *_):
        for child in self.children:
            child.end()
        self.engine.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
