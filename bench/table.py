#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""table.py FOLDER PAGE - puts what FOLDER/*.json say between PAGE's lines <!-- measured --> and <!-- end -->."""
import glob
import json
import os
import re
import sys

def files(folder):
    """Question and path, in the order of README.md's table; of the curves, those that have rows."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md"), encoding="utf-8") as page:
        questions = re.findall(r"^\| `(\w+)` \|", page.read(), re.M)
    for question in questions:
        names = sorted(glob.glob("curve-*.json", root_dir=folder)) if question == "curves" else \
            [question + ".json", question + "-dear.json"]
        for path in (os.path.join(folder, name) for name in names):
            if os.path.exists(path):
                yield path


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def command(run):
    """Curves are drawn with any number of rounds, which their rows know."""
    name, how = run["question"].replace("curve-", "curves "), run["mode"]
    turns = [row["turns"] for row in run["rows"] if "turns" in row]
    if name != run["question"] and turns:
        how = f"rounds {max(turns)}"
    return f"./dev bench {name} --{how}" + (" --dear" if run.get("wakeups") == "dear" else "")


def rows(folder):
    for path in files(folder):
        with open(path, encoding="utf-8") as file:
            run = json.load(file)
        if not run["rows"]:
            continue
        yield f"\n**`{command(run)}`**, {run['when'][:10]}, load average {run['load_before']:.1f} before, {run['load_after']:.1f} after\n"
        if run.get("void"):
            yield f"**VOID**, nothing of it counts: {run['void']}\n"
        yield "| row | measured | against | ratio (95 % interval) | goal | |"
        yield "| --- | --- | --- | --- | --- | --- |"
        for row in run["rows"]:
            if "skipped" in row:
                yield f"| {row['row']} | {row['skipped']} | | | | |"
                continue
            against, ratio = row.get("context", ""), ""
            if "ratio" in row:
                against = f"{row['yardstick']} {number(row['yardstick_value'])}"
                ratio = f"**{number(row['ratio'])}**"
                if "low" in row:
                    ratio += f" ({number(row['low'])} .. {number(row['high'])})"
                if row.get("drift", 1) > 1:
                    ratio += f", yardstick moved x {row['drift']:.3g}"
            verdict = row.get("verdict", "")
            if verdict in ("missed", "void"):
                verdict = f"**{verdict}**"
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
