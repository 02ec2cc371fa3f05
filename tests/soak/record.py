# SPDX-License-Identifier: MIT
"""Where a soak writes what came of it: a page's table between two marks, and a line in the record of runs."""

import datetime
import subprocess

BEGIN, END = "<!-- soak -->", "<!-- /soak -->"


def git(tree, *words):
    found = subprocess.run(["git", "-C", tree, *words], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else ""


def commit(tree):
    """The commit; with a + when what is tested differs from it."""
    dirty = git(tree, "status", "--porcelain", "--", "base", "pool", "watchdog", "core", "include")
    return (git(tree, "rev-parse", "--short", "HEAD") or "?") + ("+" if dirty else "")


def core(tree):
    """Names the content of core/: runs with the same one add up."""
    return git(tree, "rev-parse", "--short", "HEAD:core") or "?"


def today():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")


def put_into_page(path, text):
    page = path.read_text()
    before, mark, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"soak: {path} has no {BEGIN} ... {END}")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def append(path, tree, command, load, result):
    with open(path, "a", encoding="utf-8") as record:
        record.write(f"| {today()} | {commit(tree)} | {core(tree)} | `{command}` | {load} | {result} |\n")
