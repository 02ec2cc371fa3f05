# SPDX-License-Identifier: MIT
"""Apache servers with mod_holdfast in a folder of their own. All listen on one port, each at a loopback address of its own, as
the machines of a fleet do: the port is a part of a page's key."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from processes import Child, Trouble, await_, free_ports

BASIC = ("mpm_{mpm}", "authz_core", "unixd", "proxy", "proxy_http")
PATIENCE_S = 20


def apache():
    """The program; None: it is not installed."""
    return shutil.which("apache2", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or shutil.which("httpd")


def module_folder():
    return Path(subprocess.run(["apxs", "-q", "LIBEXECDIR"], capture_output=True, text=True, check=True).stdout.strip())


def free_port(addresses):
    """One that is free at all of them."""
    for [port] in (free_ports(1) for _ in range(50)):
        try:
            for address in addresses:
                with socket.socket() as s:
                    s.bind((address, port))
            return port
        except OSError:
            continue
    raise Trouble("no port is free at " + ", ".join(addresses))


class Httpd(Child):
    """`lines`: of its configuration, after the beginning that all have. module None: without mod_holdfast."""

    def __init__(self, name, folder, module, address, port, lines, mpm="event", modules=(), threads=128, children=2):
        home = folder / name
        home.mkdir()
        where = module_folder()
        own = [f"ServerRoot {home}", f"PidFile {home}/pid", f"ErrorLog {home}/error.log", f"Listen {address}:{port}"]
        own += ["ServerName localhost", "Timeout 30", f"DefaultRuntimeDir {home}", "Mutex pthread"]
        for each in (*(m.format(mpm=mpm) for m in BASIC), *modules):
            own += [f"<IfModule !{each}_module>", f"LoadModule {each}_module {where}/mod_{each}.so", "</IfModule>"]
        if os.getuid() == 0:
            own += ["User www-data", "Group www-data"]
        if mpm != "prefork":
            own += [f"ThreadsPerChild {threads}", f"ThreadLimit {threads}"]
        workers = children * (1 if mpm == "prefork" else threads)
        own += [f"StartServers {children}", f"ServerLimit {4 * children}", f"MaxRequestWorkers {workers}"]
        own += [f"MaxSpareThreads {workers}"] if mpm != "prefork" else [f"MaxSpareServers {workers}"]
        if module is not None:
            own.append(f"LoadModule holdfast_module {module}")
        config = home / "httpd.conf"
        config.write_text("\n".join([*own, *lines, ""]))
        self.home, self.address, self.port = home, address, port
        super().__init__(name, folder, apache(), "-f", config, "-DFOREGROUND")
        # However we end, its children are ended too: they are of its session, and do not notice its death.
        watch = ["sh", "-c", 'read _; kill -9 "-$1" 2>/dev/null', "sh", str(self.pid)]
        self.guard = subprocess.Popen(watch, stdin=subprocess.PIPE, start_new_session=True)
        try:
            await_(self.answers, self, seconds=PATIENCE_S)
        except BaseException:
            self.end(signal.SIGKILL)
            raise

    def answers(self):
        try:
            with socket.create_connection((self.address, self.port), 1) as s:
                s.sendall(b"OPTIONS * HTTP/1.0\r\n\r\n")
                return s.recv(1) != b""
        except OSError:
            return False

    def says(self):
        errors = self.home / "error.log"
        return super().says() + (errors.read_text(errors="replace") if errors.exists() else "")

    def children(self):
        """The processes that serve."""
        try:
            return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]
        except OSError:
            return []

    def restart(self):
        """Gracefully: requests under way are answered by the old children."""
        os.kill(self.pid, signal.SIGUSR1)

    def end(self, how=signal.SIGTERM, patience=15):
        code = super().end(how, patience)
        self.guard.stdin.close()
        self.guard.wait()
        return code
