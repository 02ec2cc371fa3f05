# SPDX-License-Identifier: MIT
"""apache_test.py MODULE: mod_holdfast in real Apaches, two servers of one site: what is loaded once, what is never kept nor
shared, what clients get."""

import http.client
import itertools
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest

sys.dont_write_bytecode = True

from stand import PATIENCE_S, SITE, Page, Stand, Trouble, apache, await_, module_of

NEVER_KEPT = {
    "cookie": Page(headers={"Set-Cookie": "id={n}"}),
    "private": Page(headers={"Cache-Control": "max-age=60, private"}),
    "no-store": Page(headers={"Cache-Control": "no-store"}),
    "no-cache": Page(headers={"Cache-Control": "No-Cache"}),
    "max-age-0": Page(headers={"Cache-Control": "max-age=0"}),
    "s-maxage-0": Page(headers={"Cache-Control": "max-age=60, s-maxage=0"}),
    "old": Page(headers={"Cache-Control": "max-age=60", "Age": "61"}),
    "expired": Page(headers={"Expires": "Thu, 19 Nov 1981 08:52:00 GMT"}),
    "expires-0": Page(headers={"Expires": "0"}),
    "vary-cookie": Page(headers={"Vary": "Accept-Encoding, Cookie"}),
    "vary-all": Page(headers={"Vary": "*"}),
    "redirect": Page(status=302, headers={"Location": "/elsewhere"}),
    "forbidden": Page(status=403),
    "gone": Page(status=410),
    "long": Page(body="x" * 70000 + "{n}"),
    "strict": Page(headers={"Cache-Control": "max-age=60, must-revalidate"}),
    "s-maxage": Page(headers={"Cache-Control": "s-maxage=300"}),
}
KEPT = {
    "plain": (Page(), 60),
    "max-age": (Page(headers={"Cache-Control": "public, max-age=7"}), 7),
    "s-maxage": (Page(headers={"Cache-Control": "max-age=7, s-maxage=309"}), 9),
    "strict": (Page(headers={"Cache-Control": "max-age=307, must-revalidate"}), 7),
    "strict-proxy": (Page(headers={"Cache-Control": "max-age=308, proxy-revalidate"}), 8),
    "aged": (Page(headers={"Cache-Control": "max-age=20", "Age": "5"}), 15),
    "vary": (Page(headers={"Vary": "Accept-Encoding"}), 60),
    "moved": (Page(status=301, headers={"Location": "/elsewhere"}), 60),
    "missing": (Page(status=404), 10),
    "empty": (Page(body=""), 60),
}
STALE_S = 300
LINES = [
    f"HoldfastStale {STALE_S}",
    "HoldfastMaxSize 64K",
    '<Location "/page/locked">\nRequire ip 127.0.0.9\n</Location>',
    '<Location "/page/links">\nProxyPreserveHost On\n</Location>',
    '<Location "/page/off">\nHoldfastCache off\n</Location>',
    '<Location "/page/brief">\nHoldfastTTL 1500ms\nHoldfastStale 0\n</Location>',
    '<Location "/page/said">\nHeader set Cache-Control private\n</Location>',
    '<Location "/page/timed">\nHeader always set Cache-Control max-age=33\n</Location>',
    '<Location "/page/packed">\nSetOutputFilter DEFLATE\n</Location>',
    "RewriteEngine on",
    '<Location "/page/internal">\nRequire ip 127.0.0.9\n</Location>',
]
ALIASES = (("127.0.0.1", "one.example"), ("127.0.0.2", "other.example"))
INSIDE = "RewriteCond %{REMOTE_ADDR} =127.0.0.9"


def configure(stand):
    return [
        *LINES,
        INSIDE,
        "RewriteRule ^/page/item$ /page/internal [PT]",
        INSIDE,
        "RewriteRule ^/page/query$ /page/query?inside [PT]",
        INSIDE,
        f"RewriteRule ^/page/origin$ http://127.0.0.1:{stand.origin.server_port}/page/internal [P]",
        "RewriteCond %{HTTP_USER_AGENT} Mobile",
        "RewriteRule ^/page/two$ /page/two-mobile [PT]",
    ]


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        modules = ("headers", "deflate", "filter", "rewrite", "dir", "alias", "cgid", "authz_host")
        cls.stand = Stand(MODULE, lambda _: configure(cls.stand), modules)
        cls.stand.__enter__()
        cls.addClassCleanup(cls.stand.__exit__)

    def test_one_load_for_a_crowd_at_two_servers(self):
        stand, gate = self.stand, threading.Event()
        path = self.stand.page("crowd", Page(gate=gate))
        crowd = stand.crowd(path, 60)
        stand.await_loads(path, 1)
        gate.set()
        answers = [stand.finish(c) for c in crowd]
        self.assertEqual({(a.status, a.body) for a in answers}, {(200, "page 1")})
        self.assertEqual(stand.loads(path), 1)
        self.assertEqual([a.source for a in answers].count("LOADED"), 1)

    def test_what_may_not_be_kept_is_neither_kept_nor_shared(self):
        stand = self.stand
        for name, page in NEVER_KEPT.items():
            with self.subTest(name):
                path = self.stand.page(f"never-{name}", page)
                answers = [stand.finish(c) for c in stand.crowd(path, 8)]
                answers.append(stand.get(path))
                self.assertEqual(stand.loads(path), 9)
                self.assertEqual({a.status for a in answers}, {page.status})
                self.assertEqual({a.body for a in answers}, {page.body.format(n=n) for n in range(1, 10)})
                self.assertEqual(len({a.headers.get("set-cookie") for a in answers}), 9 if name == "cookie" else 1)
                self.assertEqual(stand.value(path), "pass")

    def test_what_may_be_kept_is_kept_for_as_long_as_it_says(self):
        stand = self.stand
        for name, (page, seconds) in KEPT.items():
            with self.subTest(name):
                path = self.stand.page(f"kept-{name}", page)
                one, other = stand.get(path), stand.get(path, server=1)
                self.assertEqual((one.source, other.source, stand.loads(path)), ("LOADED", "CACHED", 1))
                self.assertEqual((one.status, one.body), (page.status, page.body.format(n=1)))
                self.assertEqual((other.status, other.body), (one.status, one.body))
                self.assertEqual(other.headers.get("location"), page.headers.get("Location"))
                left = int(self.stand.ttl_ms(path)) - 1000 * STALE_S
                self.assertTrue(1000 * seconds - PATIENCE_S * 1000 < left <= 1000 * seconds, left)

    def test_requests_that_are_never_looked_up(self):
        stand, path = self.stand, self.stand.page("asked", Page())
        stand.get(path)
        for words in (
            {"headers": {"Authorization": "Basic eDp5"}},
            {"method": "POST", "body": "x"},
            {"method": "GET", "body": "x"},
            {"method": "GET", "headers": {"Upgrade": "h2c"}},
        ):
            with self.subTest(str(words)):
                before = stand.loads(path)
                self.assertEqual(stand.get(path, **words).source, "")
                self.assertEqual(stand.loads(path), before + 1)
        self.assertEqual(stand.get(path).body, "page 1")

    def test_a_page_that_is_not_shared_is_not_served_one_by_one(self):
        """Whoever waits for it is let go together, in both servers; the origin answers none of them before all are there."""
        stand, gate, count = self.stand, threading.Event(), 24
        path = self.stand.page("together", Page(headers={"Set-Cookie": "id={n}"}))
        first = threading.Event()
        stand.origin.pages[path].gate = first
        crowd = stand.crowd(path, count)
        stand.await_loads(path, 1)
        stand.origin.pages[path] = Page(headers={"Set-Cookie": "id={n}"}, gate=gate)
        first.set()
        stand.await_loads(path, count)
        gate.set()
        self.assertEqual(len({stand.finish(c).headers["set-cookie"] for c in crowd}), count)

    def test_a_stream_is_let_through_and_nobody_waits_for_its_end(self):
        stand, tail = self.stand, threading.Event()
        path = self.stand.page("stream", Page(headers={"Cache-Control": "no-store"}, body="ab{n}", tail_gate=tail))
        stream = stand.send(path)
        stand.await_loads(path, 1)
        response = stream.getresponse()
        self.assertEqual(response.read(1), b"a")
        stand.origin.pages[path] = Page(headers={"Cache-Control": "no-store"})
        self.assertEqual([stand.get(path, server=n % 2).status for n in range(4)], [200] * 4)
        tail.set()
        self.assertEqual(response.read(), b"b1")

    def test_a_stream_has_no_waiters_in_its_own_process(self):
        stand, gate, tail = self.stand, threading.Event(), threading.Event()
        path = self.stand.page("stream-late", Page(headers={"Cache-Control": "no-store"}, body="ab{n}", gate=gate, tail_gate=tail))
        crowd = stand.crowd(path, 12)
        stand.await_loads(path, 1)
        gate.set()
        stand.await_loads(path, 12)
        tail.set()
        self.assertEqual(len({stand.finish(c).body for c in crowd}), 12)

    def test_a_late_stream_does_not_take_the_place_of_a_newer_page(self):
        stand, gate, tail = self.stand, threading.Event(), threading.Event()
        path = self.stand.page("late", Page(headers={"Set-Cookie": "a=b"}, body="ab{n}", gate=gate, tail_gate=tail))
        stream = stand.send(path)
        stand.await_loads(path, 1)
        self.assertEqual(stand.ask_redis("DEL", f"hf:fetch:{{{stand.key(path)}}}"), "1")  # its lease
        self.stand.page("late", Page())
        self.assertEqual(stand.get(path, server=1).source, "LOADED")
        gate.set()
        response = stream.getresponse()
        self.assertEqual(response.read(1), b"a")
        self.assertIn("page 2", stand.value(path))
        tail.set()
        response.read()
        self.assertEqual(stand.get(path, server=1).body, "page 2")

    def test_conditional_requests(self):
        stand = self.stand
        modified = "Wed, 01 Jan 2025 00:00:00 GMT"
        path = self.stand.page("tagged", Page(headers={"ETag": '"v{n}"', "Last-Modified": modified}))
        mine, theirs = {"If-None-Match": '"v1"'}, {"If-None-Match": '"v0"'}
        self.assertEqual(stand.get(path, headers=mine).status, 304)  # loaded whole, by this very request
        for server in (0, 1):
            self.assertEqual(stand.get(path, server, headers=mine).status, 304)
            self.assertEqual(stand.get(path, server, headers=mine).headers["etag"], '"v1"')
            self.assertEqual(stand.get(path, server, headers={"If-Modified-Since": modified}).status, 304)
            self.assertEqual(stand.get(path, server, headers=theirs).body, "page 1")
            self.assertEqual(stand.get(path, server, headers={"If-Match": '"v0"'}).status, 412)
        self.assertEqual(stand.loads(path), 1)
        self.assertIsNone(stand.origin.requests[path][1]["If-None-Match"])

    def test_head_loads_the_page_and_says_no_body(self):
        stand, path = self.stand, self.stand.page("head", Page())
        for server in (0, 1):
            answer = stand.get(path, server, method="HEAD")
            self.assertEqual((answer.status, answer.body, answer.headers["content-length"]), (200, "", "6"))
        self.assertEqual(stand.get(path).body, "page 1")
        self.assertEqual(stand.loads(path), 1)
        path = self.stand.page("head-private", Page(headers={"Cache-Control": "private"}))
        self.assertEqual([stand.get(path, method="HEAD").body for _ in range(3)], [""] * 3)
        self.assertEqual(stand.origin.requests[path][0], "HEAD")

    def test_a_range_is_cut_from_the_whole_page(self):
        stand, path = self.stand, self.stand.page("range", Page())
        for server in (0, 1):
            answer = stand.get(path, server, headers={"Range": "bytes=0-3"})
            self.assertEqual((answer.status, answer.body), (206, "page"))
        self.assertEqual((stand.get(path).body, stand.loads(path)), ("page 1", 1))

    def test_each_query_each_host_and_each_spelling_is_a_page(self):
        stand = self.stand
        for path in ("/page/q?a=1", "/page/q?a=2", "/page/q", "/page/%71"):
            self.assertEqual([stand.get(path, server).source for server in (0, 1)], ["LOADED", "CACHED"], path)
        self.assertEqual(stand.get("/page/q", headers={"Host": "other.example"}).source, "LOADED")

    def test_what_a_client_says_beside_the_name_is_in_nobody_elses_page(self):
        """The origin is told the whole Host."""
        stand, path = self.stand, self.stand.page("links", Page(headers={"Link": "http://{host}/"}))
        for host in (f"{SITE}:6666", f"{SITE}:{stand.port}", f"{SITE}.", SITE.upper(), SITE):
            got = [stand.get(path, n, headers={"Host": host}) for n in (0, 1)]
            self.assertEqual([(a.source, a.headers["link"]) for a in got], [(s, f"http://{host}/") for s in ("LOADED", "CACHED")])

    def test_what_mod_rewrite_makes_of_it_is_a_page_of_its_own(self):
        """Its reasons may be the client's address, its target another page, query, origin, or file."""
        stand, insider = self.stand, {"client": "127.0.0.9"}
        self.assertEqual(stand.get("/page/internal").status, 403)
        for path in ("/page/item", "/page/query", "/page/origin"):
            got = [stand.get(path, n, **who).source for who in (insider, {}) for n in (0, 1)]
            self.assertEqual(got, ["LOADED", "CACHED"] * 2, path)
        self.assertEqual(stand.loads("/page/internal"), 2)

    def test_what_has_varied_before_anybody_answers_is_not_looked_up(self):
        stand = self.stand
        got = [stand.get("/page/two", headers={"User-Agent": agent}) for agent in ("Desk", "Mobile", "Mobile", "Desk")]
        self.assertEqual([a.source for a in got], ["LOADED", "", "", "CACHED"])
        self.assertEqual((stand.loads("/page/two"), stand.loads("/page/two-mobile")), (1, 2))

    def test_gzip_is_a_page_of_its_own(self):
        stand = self.stand
        path = self.stand.page("packed", Page(headers={"Content-Type": "text/html"}, body="page {n} " * 50))
        plain = stand.get(path)
        for accepts in ("gzip", "br, GZIP;q=0.5, deflate"):
            packed = stand.get(path, headers={"Accept-Encoding": accepts})
            self.assertEqual((packed.headers["content-encoding"], packed.headers["vary"]), ("gzip", "Accept-Encoding"))
            self.assertLess(int(packed.headers["content-length"]), int(plain.headers["content-length"]))
        for accepts in ("identity", "gzip;q=0"):
            self.assertEqual(stand.get(path, server=1, headers={"Accept-Encoding": accepts}).body, plain.body)
        self.assertEqual(stand.loads(path), 2)

    def test_nobody_gets_a_page_that_he_has_no_access_to(self):
        stand, path = self.stand, self.stand.page("locked", Page())
        self.assertEqual([stand.get(path, n, client="127.0.0.9").source for n in (0, 1)], ["LOADED", "CACHED"])
        self.assertEqual([stand.get(path, n).status for n in (0, 1)], [403, 403])

    def test_directives_of_a_location(self):
        stand = self.stand
        self.assertEqual([stand.get("/page/off/x").source for _ in range(2)], ["", ""])
        self.assertEqual(stand.get("/page/brief").source, "LOADED")
        self.assertTrue(0 < int(self.stand.ttl_ms("/page/brief")) <= 1500)

    def test_what_mod_headers_says_counts(self):
        stand = self.stand
        self.assertEqual([stand.get("/page/said").body for _ in range(2)], ["page 1", "page 2"])
        self.assertEqual([stand.get("/page/timed").headers["cache-control"] for _ in range(2)], ["max-age=33"] * 2)
        self.assertLessEqual(int(self.stand.ttl_ms("/page/timed")), 1000 * (33 + STALE_S))

    def test_an_error_is_no_page_and_an_old_page_is_better(self):
        stand = self.stand
        path = self.stand.page("broken", Page(status=503))
        self.assertEqual([(a.status, a.body) for a in (stand.get(path), stand.get(path))], [(503, "page 1"), (503, "page 2")])
        self.assertIsNone(stand.value(path))
        self.stand.page("broken", Page(headers={"X-Which": "good"}))
        self.assertEqual(stand.get(path).body, "page 3")
        self.stand.page("broken", Page(status=500, headers={"X-Which": "bad"}))
        stand.ask_redis("PEXPIRE", stand.key(path), str(1000 * STALE_S - 1))  # the other server has not seen another end
        old = stand.get(path, server=1)
        self.assertEqual((old.status, old.body, old.source, old.headers["x-which"]), (200, "page 3", "STALE", "good"))
        self.assertEqual(stand.loads(path), 4)

    def test_an_answer_that_breaks_off_is_not_kept(self):
        stand, path = self.stand, self.stand.page("short", Page(body="x" * 1000, short=500))
        for _ in range(2):
            try:
                self.assertNotEqual(len(stand.get(path).body), 1000)
            except Exception as error:  # http.client's IncompleteRead, or a connection that was cut
                self.assertNotIsInstance(error, AssertionError)
        self.assertEqual(stand.loads(path), 2)
        self.assertIsNone(stand.value(path))

    def test_an_origin_that_breaks_off_leaves_the_old_page(self):
        """mod_proxy would end the connection of a client who has asked before, where the origin has ended its own."""
        stand, long = self.stand, "x" * 1000
        broken = {"mute": Page(mute=True), "empty": Page(body=long, short=1000), "half": Page(body=long, short=500)}
        for name, lasting in itertools.product(broken, (False, True)):
            with self.subTest(name, lasting=lasting):
                warm, path = stand.page("off/warm", Page(lasting=lasting)), stand.page(f"breaks-{name}-{lasting}", Page())
                stand.get(path)
                stand.ask_redis("PEXPIRE", stand.key(path), str(1000 * STALE_S - 1))
                stand.origin.pages[path] = broken[name]
                answers = list(stand.converse(1, warm, path, warm))
                old = answers[1]
                self.assertEqual([(a.status, a.headers.get("connection")) for a in answers], [(200, None)] * 3)
                self.assertEqual((old.body, old.source, stand.loads(path)), ("page 1", "STALE", 2))
                self.assertNotIn("expires", old.headers)
                self.assertIn("page 1", stand.value(path))

    def test_an_origin_that_breaks_off_is_not_left_alone(self):
        stand = self.stand
        warm, path = stand.page("off/warm", Page(lasting=True)), stand.page("breaks", Page(mute=True))
        with self.assertRaises(http.client.RemoteDisconnected):  # as without the module
            list(stand.converse(1, warm, path))
        stand.page("breaks", Page())
        self.assertEqual([stand.get(path, server=1).source for _ in range(2)], ["LOADED", "CACHED"])

    def test_somebody_elses_value_is_left_alone(self):
        stand, path = self.stand, self.stand.page("foreign", Page())
        for value in ("HTTP/1.1", "HTTP/1.1 200\r\nNo end", "HTTP/1.1 500\r\nA: b\r\n\r\nbody", "hello"):
            stand.ask_redis("SET", stand.key(path), f'"{value}"'.replace("\r\n", "\\r\\n"))
            self.assertEqual((stand.get(path).status, stand.get(path, server=1).source), (200, ""), value)

    def test_the_origin_is_told_the_fence_of_its_load_and_nobody_elses(self):
        stand, fences = self.stand, []
        path = self.stand.page("fence", Page(headers={"Cache-Control": "no-store"}))
        for n in range(3):
            stand.get(path, headers={"Holdfast-Fence": "7"})
            fences.append(stand.origin.requests[path][1]["Holdfast-Fence"])
        self.assertGreater(int(fences[0]), 10**18)
        self.assertEqual(fences[1:], [None, None])

    def test_counters(self):
        self.assertIn("holdfast_loads_total", self.stand.get("/holdfast").body)


class Files(unittest.TestCase):
    """Apache's own handlers, and what redirects within the server."""

    def test_files_scripts_and_redirects(self):
        modules = ("dir", "alias", "rewrite", "cgid", "authz_host")
        with Stand(MODULE, self.fill, modules, cache="/files /cgi") as stand:
            for path, body in (("/files/a.txt", "file a"), ("/files/", "index"), ("/files/rewritten", "file a"), ("/cgi/once", "1")):
                got = [stand.get(path, n % 2) for n in range(4)]
                self.assertEqual([(a.status, a.body) for a in got], [(200, body)] * 4, path)
                self.assertEqual([a.source for a in got], ["LOADED"] + ["CACHED"] * 3, path)
            self.assertEqual([stand.get("/cgi/cookie").body for _ in range(3)], ["1", "2", "3"])
            missing = [stand.get("/files/none", n) for n in (0, 1)]
            self.assertEqual([(a.status, a.body) for a in missing], [(404, "sorry")] * 2)
            self.assertIsNone(stand.value("/files/none"))
            self.assertEqual(stand.get("/files/a.txt", headers={"Range": "bytes=5-"}).body, "a")

            self.redirects(stand)

    def redirects(self, stand):
        """What is rewritten, or found otherwise, by the client's address; and what not all have access to."""
        clients = [(client, n) for client in ("127.0.0.9", "0.0.0.0") for n in (0, 1)]
        for path in ("/files/by-client", "/files/typed", "/cgi/asked"):
            got = [stand.get(path, n, client=client) for client, n in clients]
            self.assertEqual([a.source for a in got], ["LOADED", "CACHED"] * 2, path)
        got = [stand.get("/files/inner", n, client=client) for client, n in clients]
        self.assertEqual([(a.status, a.source) for a in got[:2]], [(200, "LOADED"), (200, "CACHED")])
        self.assertEqual([a.status for a in got[2:]], [403] * 2)
        self.assertEqual([stand.get("/cgi/moved", n, client=client).status for client, n in clients], [200, 200, 403, 403])
        self.assertEqual(stand.value("/cgi/moved"), "pass")

    @staticmethod
    def fill(folder):
        files, scripts = folder / "files", folder / "cgi"
        scripts.mkdir(), files.mkdir()
        for name, text in (("a.txt", "file a"), ("index.html", "index"), ("sorry.html", "sorry"), ("in.txt", "inside"), ("typed", "")):
            (files / name).write_text(text)
        for name, head in (("once", ""), ("asked", ""), ("cookie", "Set-Cookie: a=b\\n"), ("moved", "Location: /files/in.txt\\n")):
            count = folder / f"{name}-count"
            count.touch()
            count.chmod(0o666)
            say = f"printf 'Content-Type: text/plain\\n{head}\\n'; wc -c <{count} | tr -d ' \\n'"
            (scripts / name).write_text(f"#!/bin/sh\nprintf x >>{count}\n{say}\n")
            (scripts / name).chmod(0o755)
        return [
            f"Alias /files {files}",
            f"ScriptAlias /cgi {scripts}",
            "ErrorDocument 404 /files/sorry.html",
            f"<Directory {files}>\nRequire all granted\nRewriteEngine on\nRewriteRule ^rewritten$ a.txt",
            f"RewriteRule ^inner$ in.txt\n{INSIDE}\nRewriteRule ^by-client$ in.txt\nRewriteRule ^by-client$ a.txt\n</Directory>",
            '<Location "/files/in.txt">\nRequire ip 127.0.0.9\n</Location>',
            f"<Directory {scripts}>\nRequire all granted\nOptions +ExecCGI\n</Directory>",
            "DirectoryIndex index.html",
            f"RewriteEngine on\n{INSIDE}\nRewriteRule ^/cgi/asked$ /cgi/asked?inside [PT]",
            "<Location /files/typed>\n<If \"%{REMOTE_ADDR} == '127.0.0.9'\">\nForceType text/inside\n</If>\n</Location>",
        ]


HEADS = {  # and what the first client is told
    "/files/a.en": ("content-language", "en"),
    "/files/a.en.de": ("content-language", "en,de"),
    "/files/a.x-gzip": ("content-encoding", "x-gzip"),
    "/files/typed": ("content-type", "text/odd"),
    "/files/untagged": ("etag", None),
    "/page/a.en": ("content-language", "en,de"),
    "/page/other.en": ("content-language", "en"),
    "/page/twice": ("x-twice", "2"),
    "/page/plain": ("server", "origin"),
}


class Heads(unittest.TestCase):
    def test_a_hit_has_the_head_that_the_first_client_got(self):
        with Stand(MODULE, self.fill, ("alias", "headers", "mime"), cache="/files /page") as stand:
            stand.page("a.en", Page(headers={"Content-Language": "DE, EN"}))
            for path, (name, value) in HEADS.items():
                answers = [stand.get(path, n) for n in (0, 1)]
                self.assertEqual([a.source for a in answers], ["LOADED", "CACHED"], path)
                self.assertEqual(answers[0].headers.get(name), value, path)
                self.assertEqual(*map(self.head_of, answers), path)

    @staticmethod
    def head_of(answer):
        return sorted((line for line in answer.lines if line[0] not in ("date", "age", "cache-status")), key=lambda line: line[0])

    @staticmethod
    def fill(folder):
        files = folder / "files"
        files.mkdir()
        for path in HEADS:
            (files / path.rpartition("/")[2]).write_text("file")
        return [
            f"Alias /files {files}\n<Directory {files}>\nRequire all granted\n</Directory>",
            "TypesConfig /dev/null\nAddLanguage en .en\nAddLanguage de .de\nAddEncoding x-gzip .x-gzip",
            "<Location /files/typed>\nHeader add Content-Type text/odd\n</Location>",
            "<Location /files/untagged>\nFileETag None\nHeader set ETag '\"x\"'\n</Location>",
            "<Location /page/twice>\nHeader add X-Twice 2\nHeader always add X-Twice 1\n</Location>",
        ]


class Troubles(unittest.TestCase):
    def test_without_redis_the_site_serves_and_with_it_again_it_shares(self):
        with Stand(MODULE, query="command_ms=300&connect_ms=300") as stand:
            self.assertEqual(stand.get("/page/seen").body, "page 1")
            stand.redis.end(signal.SIGKILL)
            self.assertEqual((stand.get("/page/seen").status, stand.get("/page/new").status), (200, 200))
            crowd = [stand.finish(c) for c in stand.crowd("/page/crowd", 20)]
            self.assertEqual({a.status for a in crowd}, {200})
            stand.start_redis()
            await_(lambda: stand.get("/page/later", server=0).source in ("LOADED", "CACHED"), *stand.httpds)
            await_(lambda: stand.get("/page/later", server=1).source == "CACHED", *stand.httpds)

    def test_without_redis_a_slow_page_is_loaded_once_by_a_process(self):
        with Stand(MODULE, query="command_ms=300&connect_ms=300", children=1) as stand:
            self.assertEqual(stand.get("/page/seen", server=0).body, "page 1")
            stand.redis.end(signal.SIGKILL)
            gate = threading.Event()
            stand.origin.pages["/page/slow"] = Page(gate=gate)
            threading.Timer(1.2, gate.set).start()  # it takes as long as two of the waits between which one looks around
            crowd = [stand.send("/page/slow", server=0) for _ in range(4)]
            self.assertEqual({stand.finish(c).status for c in crowd}, {200})
            self.assertEqual(stand.loads("/page/slow"), 1)

    def test_a_page_that_must_be_asked_for_again_is_not_given_out_after_its_time(self):
        with Stand(MODULE, ["HoldfastStale 1"], query="command_ms=300&connect_ms=300", children=1) as stand:
            stand.origin.pages["/page/strict"] = Page(headers={"Cache-Control": "max-age=3, must-revalidate"})
            self.assertEqual([stand.get(p).status for p in ("/page/strict", "/page/lax")], [200] * 2)
            stand.redis.end(signal.SIGKILL)
            for path in ("/page/strict", "/page/lax"):
                stand.origin.pages[path] = Page(status=500)
            await_(lambda: stand.get("/page/strict").status == 500, *stand.httpds)
            self.assertEqual(stand.get("/page/lax").source, "STALE")

    def test_a_killed_child_is_followed_by_another_loader(self):
        with Stand(MODULE) as stand:
            gate = threading.Event()
            stand.origin.pages["/page/kill"] = Page(gate=gate)
            first = stand.send("/page/kill", server=0)
            stand.await_loads("/page/kill", 1)
            second = stand.send("/page/kill", server=1)
            for pid in stand.httpds[0].children():
                os.kill(pid, signal.SIGKILL)
            stand.await_loads("/page/kill", 2)  # at the end of the killed one's lease
            gate.set()
            self.assertEqual(stand.finish(second).body, "page 2")
            self.assertEqual(stand.get("/page/kill", server=1).body, "page 2")
            first.close()

    def test_one_virtual_hosts_page_is_not_kept_under_anothers_name(self):
        """Who connects to the address of one and asks for the name of the other gets a page of the first."""
        hosts = (("127.0.0.1", "a.example", "*.a.example"), ("127.0.0.9", "b.example", "*.b.example"))
        lines = [f"<VirtualHost {at}:*>\nServerName {name}\nServerAlias {more}\n</VirtualHost>" for at, name, more in hosts]
        with Stand(MODULE, lines) as stand:
            for host in ("a.example", "x.a.example", "c.example", "b.example", "x.b.example"):
                got = [stand.get("/page/x", headers={"Host": host}).source for _ in range(2)]
                self.assertEqual(got, ["", ""] if "b" in host else ["LOADED", "CACHED"], host)

    def test_virtual_hosts_of_one_name_and_those_of_no_name_share_nothing(self):
        """Each of the two servers is at the address of one of them."""
        lines = [f"<VirtualHost {at}:*>\nServerName a.example\nServerAlias {more}\n</VirtualHost>" for at, more in ALIASES]
        with Stand(MODULE, lines) as stand:
            for host in ("a.example", "nobodys.example"):
                got = [stand.get("/page/x", n % 2, headers={"Host": host}).source for n in range(4)]
                self.assertEqual(got, ["LOADED"] * 2 + ["CACHED"] * 2, host)
            self.assertEqual([stand.get("/page/x", n, headers={"Host": "one.example"}).source for n in (0, 1)], ["LOADED", ""])

    def test_what_could_not_be_read_is_not_read_later(self):
        """The connection is the next request's by then, and so is what comes over it."""
        with socket.create_server(("127.0.0.1", 0)) as origin:
            threading.Thread(target=reset_after_some, args=(origin,), daemon=True).start()
            lines = [f"ProxyPass /scgi/ scgi://127.0.0.1:{origin.getsockname()[1]}/", "LogLevel warn"]
            with Stand(MODULE, lines, ("proxy_scgi",), cache="/scgi") as stand:
                self.assertEqual(stand.get("/scgi/x").status, 502)
                self.assertNotIn("Bad file descriptor", stand.httpds[0].says())

    def test_what_a_filter_in_front_has_kept_is_not_whole(self):
        """It has met the failure, and Apache sends no second end of the answer."""
        stalls = f"{TEXT}; head -c 200 /dev/zero | tr '\\0' x; exec sleep 5"
        lines = ["Timeout 1", "<Location /cgi>\nSetOutputFilter DEFLATE\n</Location>"]

        with Stand(MODULE, scripts(lines, x=stalls), ("alias", "cgid", "filter", "deflate"), cache="/cgi") as stand:
            self.assertEqual(stand.get("/cgi/x", headers={"Accept-Encoding": "gzip"}).status, 502)
            self.assertIsNone(stand.value("/cgi/x"))

    def test_the_other_kinds_of_apache(self):
        for mpm in ("worker", "prefork"):
            with self.subTest(mpm), Stand(MODULE, mpm=mpm, children=2 if mpm == "worker" else 12) as stand:
                gate = threading.Event()
                stand.origin.pages["/page/x"] = Page(gate=gate)
                crowd = stand.crowd("/page/x", 16)
                stand.await_loads("/page/x", 1)
                gate.set()
                self.assertEqual({stand.finish(c).body for c in crowd}, {"page 1"})
                self.assertEqual([h.end() for h in stand.httpds], [0, 0])

    def test_a_wrong_server_or_time_is_said_when_apache_starts(self):
        for line, words in (
            ("HoldfastServer nonsense://x", "HoldfastServer"),
            ("HoldfastTTL soon", "HoldfastTTL wants seconds"),
            ("HoldfastTTL 0", "HoldfastTTL wants 1ms"),
            ("HoldfastMaxSize 16M", "HoldfastMaxSize wants bytes"),
            ("HoldfastCache shop", "HoldfastCache wants a path"),
        ):
            with self.subTest(line), self.assertRaisesRegex(Trouble, words), Stand(MODULE, [line]):
                pass

    def test_what_apache_says_of_an_error_is_the_only_answer(self):
        """Behind an internal redirect it goes past our filter. The answer to the client's next request follows it."""
        moved = "printf 'Location: /none\\n\\n'"
        once = f"if mkdir seen 2>/dev/null; then {TEXT}; printf good; else {moved}; fi"
        with Stand(MODULE, scripts([f"HoldfastStale {STALE_S}"], x=once, y=moved, z=TEXT), ("alias", "cgid"), cache="/cgi") as stand:
            self.assertEqual(stand.get("/cgi/x").body, "good")
            stand.ask_redis("PEXPIRE", stand.key("/cgi/x"), str(1000 * STALE_S - 1))
            for path in ("/cgi/x", "/cgi/y"):
                self.assertEqual([a.status for a in stand.converse(1, path, "/cgi/z")], [404, 200], path)

    def test_a_wrong_server_is_said_by_a_test_of_the_configuration(self):
        with Stand(MODULE) as stand:
            config = stand.httpds[0].home / "httpd.conf"
            for line, words in (("", "Syntax OK"), ("HoldfastServer nonsense://x", "HoldfastServer")):
                config.write_text(f"{config.read_text()}{line}\n")
                test = subprocess.run([apache(), "-t", "-f", config], capture_output=True, text=True, timeout=PATIENCE_S)
                self.assertEqual(test.returncode == 0, line == "")
                self.assertIn(words, test.stderr)


TEXT = "printf 'Content-Type: text/plain\\n\\n'"


def scripts(lines, **texts):
    """What makes the configuration, and shell scripts at /cgi/NAME."""

    def fill(folder):
        home = folder / "cgi"
        home.mkdir()
        home.chmod(0o777)  # the scripts may write there, whoever runs them
        for name, text in texts.items():
            (home / name).write_text(f"#!/bin/sh\n{text}\n")
            (home / name).chmod(0o755)
        return [*lines, f"ScriptAlias /cgi {home}", f"<Directory {home}>\nRequire all granted\n</Directory>"]

    return fill


def reset_after_some(origin):
    connection, _ = origin.accept()
    connection.recv(65536)
    connection.sendall(b"Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n" + b"x" * 100)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


if __name__ == "__main__":
    MODULE = module_of(sys.argv)
    unittest.main()
