#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""table.py FOLDER PAGE - puts what FOLDER/*.json say between PAGE's lines <!-- measured --> and <!-- end -->."""
import json
import os
import sys

ORDER = ("own_lock crowded linger one_lock processes hand_off killed far held waiters hits stampede names size "
         "neighbours").split()


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def rows(folder):
    for question in ORDER:
        path = os.path.join(folder, question + ".json")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        yield f"\n**`./dev bench {question} --{run['mode']}`**, {run['when'][:10]}, " \
              f"load average {run['load_before']:.1f} before, {run['load_after']:.1f} after\n"
        yield "| row | measured | against | ratio (lowest .. highest) | goal | |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for row in run["rows"]:
            against = ratio = ""
            if "ratio" in row:
                against = f"{row['yardstick']} {number(row['yardstick_value'])}"
                ratio = f"**{row['ratio']:.3g}** ({row['lowest']:.3g} .. {row['highest']:.3g})"
            verdict = "" if "met" not in row else "met" if row["met"] else "**missed**"
            yield f"| {row['row']} | {number(row['value'])} {row['unit']} | {against} | {ratio} " \
                  f"| {row.get('goal', '')} | {verdict} |"


def main():
    folder, page = sys.argv[1:3]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split("<!-- measured -->\n", 1)
    after = rest.split("<!-- end -->", 1)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + "<!-- measured -->\n" + "\n".join(rows(folder)) + "\n\n<!-- end -->" + after)


main()
