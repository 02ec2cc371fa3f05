# SPDX-License-Identifier: MIT
"""What the tests of the Apache module stand on: a Redis, two servers of one site, and an origin that counts its loads."""

import http.client
import http.server
import os
import shutil
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "examples" / "demo"))

from engines import Asking  # noqa: E402
from httpd import Httpd, apache, free_port  # noqa: E402
from processes import Child, InFolder, Trouble, await_, free_ports  # noqa: E402,F401

ADDRESSES = ("127.0.0.1", "127.0.0.2")
SITE = "shop.example"
PATIENCE_S = 15


def module_of(arguments):
    """The first one, if there are module and Apache; else the test is skipped."""
    module = os.path.abspath(arguments.pop(1))
    if apache() is None or not os.path.exists(module):
        print("no Apache, or no module for it (apache2-bin, apache2-dev)")
        sys.exit(77)
    return module


@dataclass
class Page:
    """What the origin says. `gate`: it says nothing before that is set. In texts {n} is the number of the load, {host} the Host
    that it is told."""

    status: int = 200
    headers: dict = field(default_factory=dict)
    body: str = "page {n}"
    gate: threading.Event = None
    tail_gate: threading.Event = None  # the same, before the second half of the body
    again: dict = field(default_factory=dict)  # headers of a 304, beside its ETag
    short: int = 0  # so many bytes of what Content-Length promises do not come
    mute: bool = False  # the connection ends without an answer
    lasting: bool = False  # the connection is kept for the next request


class Origin(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.loads, self.requests, self.lock = {}, Counter(), {}, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # whoever asked is gone


class Handler(http.server.BaseHTTPRequestHandler):
    server_version, sys_version = "origin", ""

    def do_GET(self):
        origin = self.server
        with origin.lock:
            origin.loads[self.path] += 1
            number = origin.loads[self.path]
            origin.requests[self.path] = (self.command, self.headers)
        page = origin.pages.get(self.path, Page())
        if page.gate:
            page.gate.wait(PATIENCE_S)
        self.protocol_version, self.close_connection = "HTTP/1.1" if page.lasting else "HTTP/1.0", not page.lasting
        if page.mute:
            return
        given = {name: value.format(n=number, host=self.headers["Host"]) for name, value in page.headers.items()}
        if given.get("ETag") is not None and self.headers["If-None-Match"] == given["ETag"]:
            page, given = Page(status=304, body=""), {"ETag": given["ETag"], **page.again}
        body = page.body.format(n=number, host=self.headers["Host"]).encode()
        self.send_response(page.status)
        for name, value in given.items():
            self.send_header(name, value)
        if page.tail_gate is None:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.say(page, body)

    def say(self, page, body):
        half = len(body) // 2 if page.tail_gate else 0
        if half:
            self.wfile.write(body[:half])
            self.wfile.flush()
            page.tail_gate.wait(PATIENCE_S)
        self.wfile.write(body[half : len(body) - page.short])

    do_HEAD = do_POST = do_GET

    def log_message(self, *_):
        pass


@dataclass
class Answer:
    status: int
    lines: list  # of the head: (name, value)
    body: str

    @property
    def headers(self):
        return dict(self.lines)

    @property
    def source(self):
        """CACHED, LOADED, ...; "": the module had nothing to do with it."""
        return self.headers.get("cache-status", "").rpartition("detail=")[2]


class Stand(InFolder):
    """A context manager. `lines`: more of both servers' configuration, or what makes it, given a folder to fill."""

    def __init__(self, module, lines=(), modules=(), mpm="event", query="lease_ms=1000&command_ms=1000", cache="/", **sizes):
        self.module, self.lines, self.modules, self.mpm, self.sizes = module, lines, modules, mpm, sizes
        self.query, self.cache, self.httpds, self.redis = query, cache, [], None

    def __enter__(self):
        return self.begin("holdfast-test-", 0o755)  # the children of an Apache that root starts are not root

    def start(self):
        self.origin = Origin()
        [self.redis_port] = free_ports(1)
        self.start_redis()
        self.port = free_port(ADDRESSES)
        own = [
            f"HoldfastServer redis://127.0.0.1:{self.redis_port}?{self.query}",
            f"HoldfastCache {self.cache}",
            "HoldfastStatus /holdfast",
            "ProxyPass /holdfast !",
            f"ProxyPass /page http://127.0.0.1:{self.origin.server_port}/page",
            *(self.lines(self.folder) if callable(self.lines) else self.lines),
        ]
        for n, address in enumerate(ADDRESSES):
            name = f"httpd{n + 1}"
            self.httpds.append(
                Httpd(name, self.folder, self.module, address, self.port, own, self.mpm, self.modules, **self.sizes)
            )

    def start_redis(self):
        path = self.folder / "redis.sock"
        words = ("--port", self.redis_port, "--bind", "127.0.0.1", "--unixsocket", path, "--save", "", "--dir", self.folder)
        self.redis, self.asking = Child("redis", self.folder, "redis-server", *words), Asking(path)
        await_(lambda: self.ask_redis("PING") == "PONG", self.redis)

    def ask_redis(self, *words):
        return self.asking.ask(*(f"'{w}'" if " " in w and w[0] != '"' else w for w in words))

    def page(self, name, page):
        """The origin has it from now on. Returns its path."""
        path = f"/page/{name}"
        self.origin.pages[path] = page
        return path

    def ttl_ms(self, path):
        return int(self.ask_redis("PTTL", self.key(path)))

    def key(self, path):
        """Of a proxied page, or of a file or script in our folder."""
        to, by = f"proxy:http://127.0.0.1:{self.origin.server_port}", "proxy-server"
        if not path.startswith("/page"):
            to, by = self.folder, "cgi-script" if path.startswith("/cgi") else ""
        return f"http://{SITE}:{self.port}{path} to={to}{path} by={by}"

    def value(self, path):
        said = self.ask_redis("GET", self.key(path))
        return None if said == "-1" else said

    def send(self, path, server=0, method="GET", headers=(), body=None, address=None, client="0.0.0.0"):
        """Sends a request; what comes back ends it."""
        at = address or ADDRESSES[server]
        connection = http.client.HTTPConnection(at, self.port, timeout=PATIENCE_S, source_address=(client, 0))
        connection.request(method, path, body, {"Host": SITE, "Connection": "close", **dict(headers)})
        return connection

    @staticmethod
    def finish(connection):
        answer = Stand.hear(connection)
        connection.close()
        return answer

    @staticmethod
    def hear(connection):
        response = connection.getresponse()
        body = response.read().decode(errors="replace")
        return Answer(response.status, [(name.lower(), value) for name, value in response.getheaders()], body)

    def converse(self, server, *paths):
        """The answers to one client, who keeps his connection."""
        connection = http.client.HTTPConnection(ADDRESSES[server], self.port, timeout=PATIENCE_S)
        for path in paths:
            connection.request("GET", path, None, {"Host": SITE})
            yield self.hear(connection)
        connection.close()

    def get(self, path, server=0, **words):
        return self.finish(self.send(path, server, **words))

    def crowd(self, path, count, **words):
        """Requests at both servers in turn, all sent before the first answer is read."""
        return [self.send(path, n % len(ADDRESSES), **words) for n in range(count)]

    def loads(self, path):
        return self.origin.loads[path]

    def await_loads(self, path, count):
        await_(lambda: self.loads(path) >= count, self.redis, seconds=PATIENCE_S)

    def __exit__(self, *_):
        for child in self.httpds:
            child.end()
        if self.redis:
            self.redis.end()
        self.origin.shutdown()
        self.origin.server_close()
        if os.environ.get("HFT_KEEP") is None:
            shutil.rmtree(self.folder, ignore_errors=True)
