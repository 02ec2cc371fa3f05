#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""table.py FOLDER PAGE - puts what FOLDER/*.json say between PAGE's lines <!-- measured --> and <!-- end -->."""
import json
import os
import re
import sys

def questions():
    """In the order of README.md's table."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md"), encoding="utf-8") as page:
        return re.findall(r"^\| `(\w+)` \|", page.read(), re.M)


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def rows(folder):
    for question in questions():
        path = os.path.join(folder, question + ".json")
        if not os.path.exists(path):
            continue
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        yield f"\n**`./dev bench {question} --{run['mode']}`**, {run['when'][:10]}, " \
              f"load average {run['load_before']:.1f} before, {run['load_after']:.1f} after\n"
        if run.get("void"):
            yield f"**VOID**, nothing of it counts: {run['void']}\n"
        yield "| row | measured | against | ratio (middle half) | goal | |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for row in run["rows"]:
            if "skipped" in row:
                yield f"| {row['row']} | {row['skipped']} | | | | |"
                continue
            against, ratio = row.get("context", ""), ""
            if "ratio" in row:
                against = f"{row['yardstick']} {number(row['yardstick_value'])}"
                ratio = f"**{number(row['ratio'])}**"
                if "quarter" in row:
                    ratio += f" ({number(row['quarter'])} .. {number(row['three_quarters'])})"
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
