# SPDX-License-Identifier: MIT
"""ending_test.py BUILD: however the demo is ended, none of its processes is left, and no folder if it can help it."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ALL = 13  # three servers, their loads, the origin, three of Redis, three sentinels
PATIENCE_S = 30


def children(pid):
    try:
        return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def folder_of(pid):
    """Where a redis-server of the demo lives."""
    try:
        folder = Path(f"/proc/{pid}/cwd").resolve().parent
        return folder if folder.name.startswith("holdfast-demo-") else None
    except OSError:
        return None


def until(ready):
    end = time.monotonic() + PATIENCE_S
    while not (found := ready()):
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.02)
    return found


class Endings(unittest.TestCase):
    def end_by(self, how, status, folder_stays=False, server=False):
        with tempfile.TemporaryDirectory() as output:
            command = [sys.executable, "-B", HERE / "demo.py", "--quick", "--engine", "sentinel", "--build", BUILD]
            demo = subprocess.Popen([*command, "--output", output], stdout=subprocess.DEVNULL)
            started = until(lambda: len(c := children(demo.pid)) >= ALL and c)
            [folder] = {folder_of(pid) for pid in started} - {None}
            os.kill(next(pid for pid in started if folder_of(pid)) if server else demo.pid, how)
            self.assertEqual(demo.wait(PATIENCE_S), status)
            until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started))
            self.assertEqual(folder.exists(), folder_stays)
            if folder_stays:
                subprocess.run(["rm", "-rf", folder], check=True)

    def test_apaches_by_kill_9(self):
        """Their children are not the demo's, and would not notice that their parent has died."""
        if not (Path(BUILD) / "modules" / "apache" / "mod_holdfast.so").exists():
            self.skipTest("no module for Apache")
        with tempfile.TemporaryDirectory() as output:
            command = [sys.executable, "-B", HERE / "demo.py", "--apache", "--quick", "--build", BUILD, "--output", output]
            demo = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            of_apache = lambda: [p for c in children(demo.pid) for p in children(c) if name_of(p) in ("apache2", "httpd")]
            served = until(lambda: len(c := of_apache()) >= 3 and children(demo.pid) + c)
            [folder] = {folder_of(pid) for pid in served} - {None}
            demo.kill()
            demo.wait(PATIENCE_S)
            until(lambda: not any(map(is_alive, served)))
            subprocess.run(["rm", "-rf", folder], check=True)

    def test_by_ctrl_c(self):
        self.end_by(signal.SIGINT, 130)

    def test_politely(self):
        self.end_by(signal.SIGTERM, 143)

    def test_by_the_death_of_a_server(self):
        self.end_by(signal.SIGKILL, 2, server=True)

    def test_by_kill_9(self):
        self.end_by(signal.SIGKILL, -9, folder_stays=True)


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
