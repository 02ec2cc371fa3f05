# SPDX-License-Identifier: MIT
"""coverage.py BUILD: runs the unit and integration tests of a build with --coverage, and says which lines of core/,
watchdog/ and pool/ they ran: per file, and what is left."""

import gzip
import json
import os
import subprocess
import sys

FOLDERS = ("core", "watchdog", "pool")
AT_LEAST = 92.0


def objects(build):
    for folder, _, files in os.walk(build):
        for name in files:
            if name.endswith(".gcda"):
                yield os.path.join(folder, name)


def counts(build, source):
    """{file: {line: times}}, added up over all objects."""
    lines = {}
    for path in objects(build):
        if not any(f"hf_{floor}.dir" in path for floor in FOLDERS):
            continue
        told = subprocess.run(["gcov", "--json-format", "--stdout", path], cwd=build, capture_output=True, check=True)
        text = gzip.decompress(told.stdout) if told.stdout[:2] == b"\x1f\x8b" else told.stdout
        for file in json.loads(text)["files"]:
            name = os.path.relpath(os.path.join(build, file["file"]), source)
            if name.split(os.sep)[0] not in FOLDERS:
                continue
            seen = lines.setdefault(name, {})
            for line in file["lines"]:
                seen[line["line_number"]] = seen.get(line["line_number"], 0) + line["count"]
    return lines


def ranges(numbers):
    """Neighbouring numbers as first-last."""
    runs = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def report(lines):
    total = run = 0
    for name in sorted(lines):
        missed = [number for number, times in lines[name].items() if times == 0]
        total += len(lines[name])
        run += len(lines[name]) - len(missed)
        share = 100 * (1 - len(missed) / max(1, len(lines[name])))
        print(f"{name:28} {share:6.1f} %  of {len(lines[name]):4}   left: {ranges(missed)}")
    share = 100 * run / max(1, total)
    print(f"{'all':28} {share:6.1f} %  of {total:4}   wanted: {AT_LEAST:.0f} %")
    return share >= AT_LEAST


def main():
    build = os.path.abspath(sys.argv[1])
    source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for path in list(objects(build)):
        os.remove(path)  # of earlier runs
    tests = subprocess.run(["ctest", "--test-dir", build, "--output-on-failure", "-j1", "-L", "unit|integration"])
    good = report(counts(build, source))
    sys.exit(tests.returncode or (0 if good else 1))


main()
