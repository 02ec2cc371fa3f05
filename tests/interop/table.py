# SPDX-License-Identifier: MIT
"""table.py FILE: the table of docs/interop.md from what `./dev interop --full --json` printed."""
import json
import sys

COUNT = "| neighbour | sections | lost | the side changed | next one in after a holder's death: ours, theirs | after a waiter's | mended by hand | garbage |"
WAKE = "| p50 / p99, ms | two of theirs | theirs to us | us to theirs |"


def ms(value):
    return "-" if value is None else f"{value:.0f}" if abs(value) >= 10 else f"{max(value, 0):.1f}"


def pair(row, sides):
    return f"{ms(row[f'{sides}_p50_ms'])} / {ms(row[f'{sides}_p99_ms'])}"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    by_name = {}
    for row in rows:
        by_name.setdefault(row["neighbour"], {})[row.get("question")] = row
    print(COUNT + "\n|" + " --- |" * COUNT.count(" | ") + " --- |")
    for name, found in by_name.items():
        if {"count", "kill", "garbage"} <= set(found):
            count, kill, garbage = found["count"], found["kill"], found["garbage"]
            lost = f"at most {count['most']} inside" if name.endswith("-3") else count["lost"]
            waiters = max(kill["ours_waiter_ms"], kill["theirs_waiter_ms"])
            print(f"| {name} | {count['sections']:,} | {lost} | {count['changes']:,} | "
                  f"{ms(kill['ours_holder_ms'])}, {ms(kill['theirs_holder_ms']) if kill['theirs_holder_ms'] else 'shut'} ms | "
                  f"{ms(waiters)} ms | {kill['mended']} | "
                  f"{garbage['met']} of {garbage['cases']} |")
    print("\n" + WAKE + "\n|" + " --- |" * WAKE.count(" | ") + " --- |")
    for name, found in by_name.items():
        if "wake" in found:
            print(f"| {name} | " + " | ".join(pair(found["wake"], sides) for sides in ("theirs_theirs", "theirs_ours", "ours_theirs")) + " |")


main()
