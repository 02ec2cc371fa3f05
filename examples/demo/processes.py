# SPDX-License-Identifier: MIT
"""What the demo's processes have in common: a child that does not outlive us, ports, time, trouble."""

import ctypes
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1
LOWEST_PORT, OUTGOING_PORTS = 10_000, Path("/proc/sys/net/ipv4/ip_local_port_range")


class Trouble(Exception):
    """The demo cannot go on; the text says why."""


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def free_ports(count):
    """Below those that outgoing connections get, if there are such: between now and the server's start one may be taken."""
    sockets, end = [], int(OUTGOING_PORTS.read_text().split()[0])
    while len(sockets) < count:
        s = socket.socket()
        try:
            s.bind(("127.0.0.1", random.randrange(LOWEST_PORT, end) if end > LOWEST_PORT else 0))
            sockets.append(s)
        except OSError:
            s.close()
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class InFolder:
    """A context manager with a temporary folder; whatever ends start(), __exit__ cleans up."""

    def begin(self, prefix, mode):
        self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
        try:
            self.folder.chmod(mode)
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self


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


def await_(ready, *children, seconds=10):
    end = time.monotonic() + seconds
    while not ready():
        for child in children:
            child.check()
        if time.monotonic() > end:
            raise Trouble(f"{children[0].name} does not answer\n{children[0].says()}")
        time.sleep(0.01)
