# SPDX-License-Identifier: MIT
"""upkeep_test.py MODULE: pages from a child's own memory, ends that are spread, pages that are still good, tags."""

import re
import sys
import unittest

sys.dont_write_bytecode = True

from stand import Page, Stand, await_, module_of

STALE_S = 300
LINES = [
    f"HoldfastStale {STALE_S}",
    "HoldfastTagHeader X-Tags",
    '<Location "/page/near">\nHoldfastNear 60\n</Location>',
    '<Location "/page/spread">\nHoldfastTTL 100\nHoldfastStale 0\nHoldfastJitter 0.5\n</Location>',
]


def fill(folder):
    files = folder / "files"
    files.mkdir()
    (files / "a.txt").write_text("file a")
    return [*LINES, f"Alias /files {files}", f"<Directory {files}>\nRequire all granted\n</Directory>"]


class Upkeep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        query = "lease_ms=1000&near_lag_ms=3000"  # a proof may be late on a busy machine
        cls.stand = Stand(MODULE, fill, ("alias",), query=query, cache="/page /files", children=1)
        cls.stand.__enter__()
        cls.addClassCleanup(cls.stand.__exit__)

    def grow_old(self, path):
        """For a server that has not seen another end of it."""
        self.stand.ask_redis("PEXPIRE", self.stand.key(path), str(1000 * STALE_S - 1))

    def loaded_long_ago(self, path):
        """And old."""
        page = re.sub(r"\nDate: [^\r]*", "\nDate: Wed, 01 Jan 2025 00:00:00 GMT", self.stand.value(path))
        quoted = page.replace("\\", "\\\\").replace('"', '\\"').replace("\r\n", "\\r\\n")
        self.stand.ask_redis("SET", self.stand.key(path), f'"{quoted}"', "PX", str(1000 * STALE_S - 1))

    def commands(self):
        return int(re.search(r"^holdfast_remote_commands_total\S* (\d+)$", self.stand.get("/holdfast").body, re.MULTILINE)[1])

    def test_a_page_from_memory_costs_no_command_and_a_change_is_told(self):
        stand, path = self.stand, self.stand.page("near", Page())
        await_(lambda: stand.get(path).source == "NEAR", *stand.httpds)
        before = self.commands()
        answers = [stand.get(path) for _ in range(200)]
        self.assertEqual({a.body for a in answers}, {"page 1"})
        self.assertGreater([a.source for a in answers].count("NEAR"), 190)
        self.assertLess(self.commands() - before, 100)  # proofs, and what a late one costs
        stand.ask_redis("DEL", stand.key(path))
        await_(lambda: stand.get(path).body == "page 2", *stand.httpds)

    def test_ends_are_spread(self):
        stand, ends = self.stand, []
        for n in range(30):
            path = f"/page/spread/{n}"
            stand.get(path)
            ends.append(self.stand.ttl_ms(path))
        self.assertTrue(all(0 < end <= 100000 for end in ends), ends)
        self.assertGreater(max(ends) - min(ends), 10000)

    def test_a_page_that_is_still_good_is_not_sent_again(self):
        stand = self.stand
        path = self.stand.page("same", Page(headers={"ETag": '"v"', "Cache-Control": "max-age=50", "X-Which": "{n}"}))
        self.assertEqual(stand.get(path).body, "page 1")
        self.loaded_long_ago(path)
        same = stand.get(path, server=1, headers={"If-None-Match": '"other"'})
        self.assertEqual(stand.origin.requests[path][1]["If-None-Match"], '"v"')
        self.assertEqual((same.status, same.body, same.source, same.headers["age"]), (200, "page 1", "LOADED", "0"))
        self.assertEqual((same.headers["x-which"], same.headers["cache-control"]), ("1", "max-age=50"))
        self.assertTrue(1000 * STALE_S < self.stand.ttl_ms(path) <= 1000 * (STALE_S + 50))
        self.assertEqual((stand.get(path).body, stand.loads(path)), ("page 1", 2))

    def test_a_page_that_has_changed_is_loaded_whole(self):
        stand = self.stand
        path = self.stand.page("changed", Page(headers={"ETag": '"v{n}"'}))
        stand.get(path)
        self.grow_old(path)
        self.assertEqual(stand.get(path, server=1).body, "page 2")
        self.assertEqual(stand.origin.requests[path][1]["If-None-Match"], '"v1"')

    def test_a_client_that_has_it_hears_so(self):
        stand = self.stand
        path = self.stand.page("same-304", Page(headers={"ETag": '"v"'}))
        stand.get(path)
        self.grow_old(path)
        self.assertEqual(stand.get(path, server=1, headers={"If-None-Match": '"v"'}).status, 304)
        self.assertEqual(stand.get(path, server=1).body, "page 1")

    def test_a_page_that_is_still_good_keeps_its_tags(self):
        stand, tag = self.stand, "hf:tag:{green}"
        path = stand.page("same-tagged", Page(headers={"ETag": '"v"', "X-Tags": "green"}, again={}))
        stand.get(path)
        for key in (stand.key(path), tag):
            stand.ask_redis("PEXPIRE", key, "20000")
        self.assertEqual((stand.get(path, server=1).source, stand.get(path).body), ("LOADED", "page 1"))
        self.assertGreater(int(stand.ask_redis("PTTL", tag)), 20000)
        self.assertIn(stand.key(path), stand.ask_redis("ZRANGE", tag, "0", "-1"))

    def test_a_page_that_may_not_be_kept_any_more_is_left_alone(self):
        stand = self.stand
        path = self.stand.page("same-private", Page(headers={"ETag": '"v"'}, again={"Cache-Control": "private"}))
        stand.get(path)
        stand.ask_redis("PEXPIRE", stand.key(path), "20000")
        self.assertEqual(stand.get(path, server=1).body, "page 1")
        self.assertEqual([stand.get(path, server=1).body for _ in range(2)], ["page 3", "page 4"])
        self.assertLessEqual(stand.ttl_ms(path), 20000)  # nor does it live longer for the other servers

    def test_an_error_keeps_its_headers_where_no_page_was_kept(self):
        stand = self.stand
        path = stand.page("passed", Page(headers={"Set-Cookie": "a=b"}))
        stand.get(path)
        self.assertEqual(stand.value(path), "pass")
        self.grow_old(path)
        stand.page("passed", Page(status=503, headers={"Retry-After": "7"}))
        answer = stand.get(path, server=1)
        self.assertEqual((answer.status, answer.headers.get("retry-after")), (503, "7"))

    def test_a_file_that_is_still_good_is_not_read_again(self):
        stand, path = self.stand, "/files/a.txt"
        stand.get(path)
        self.grow_old(path)
        self.assertEqual((stand.get(path, server=1).source, stand.get(path).body), ("LOADED", "file a"))
        self.assertIn("holdfast_loads_same_total", stand.get("/holdfast", server=1).body)
        self.assertGreater(self.stand.ttl_ms(path), 1000 * STALE_S)

    def test_tags_are_named_and_hidden(self):
        stand = self.stand
        path = self.stand.page("tagged", Page(headers={"X-Tags": "red, big"}))
        answers = [stand.get(path, n) for n in (0, 1)]
        self.assertEqual([a.headers.get("x-tags") for a in answers], [None, None])
        self.assertNotIn("X-Tags", stand.value(path))
        passed = stand.get(stand.page("tagged-passed", Page(headers={"X-Tags": "red", "Set-Cookie": "a=b"})))
        self.assertIsNone(passed.headers.get("x-tags"))
        for tag in ("red", "big"):
            self.assertIn(stand.key(path), stand.ask_redis("ZRANGE", f"hf:tag:{{{tag}}}", "0", "-1"))

    def test_a_page_with_a_tag_that_cannot_be_named_is_not_stored(self):
        stand = self.stand
        path = self.stand.page("too-many", Page(headers={"X-Tags": " ".join(f"t{n}" for n in range(9))}))
        self.assertEqual([stand.get(path).body for _ in range(2)], ["page 1", "page 2"])
        self.assertIsNone(stand.value(path))


if __name__ == "__main__":
    MODULE = module_of(sys.argv)
    unittest.main()
