# SPDX-License-Identifier: MIT
"""Adds up what the pieces of a soak say, and shows it as one table."""

COLUMNS = ("what", "runs", "faults", "operations", "violations", "false losses", "wait after a death",
           "LOST told p50 / p99 / max")


class Row:
    def __init__(self):
        self.runs = self.faults = self.operations = self.violations = self.false_losses = 0
        self.wait, self.bound, self.late, self.tells = None, None, None, True

    def add(self, result):
        get = result.summary.get
        self.runs += 1
        self.faults += int(get("faults", 1 if result.piece.kind == "fault" else 0))
        self.operations += int(get("operations", 0))
        self.violations += result.violations
        self.false_losses += int(get("false_losses", 0))
        self.tells = self.tells and "false_losses" in result.summary
        if "wait_ms" in result.summary and (self.wait is None or get("wait_ms") / get("wait_bound_ms") >
                                            self.wait / self.bound):
            self.wait, self.bound = get("wait_ms"), get("wait_bound_ms")
        if "lost_ms" in result.summary:  # of several runs the worst of each
            late = (get("lost_p50_ms"), get("lost_p99_ms"), get("lost_ms"))
            self.late = tuple(map(max, late, self.late or late))

    def cells(self, name):
        wait = f"{self.wait:.0f} of {self.bound:.0f} ms" if self.wait is not None else ""
        late = " / ".join(f"{ms:.1f}" for ms in self.late) + " ms" if self.late else ""
        return (name, f"{self.runs}", f"{self.faults:,}", f"{self.operations:,}" if self.operations else "",
                f"{self.violations}", f"{self.false_losses}" if self.tells else "", wait, late)


class Tally:
    def __init__(self):
        self.rows, self.failures, self.digest, self.seeds = {}, [], 0, []

    def add(self, result):
        self.rows.setdefault(result.piece.kind, Row()).add(result)
        self.digest = (self.digest + int(result.summary.get("digest", 0))) % 2**64
        if "histories" in result.summary and result.summary["histories"]:
            start = result.summary["from"]
            self.seeds.append((start, start + result.summary["histories"] - 1))
        if result.violations:
            self.failures.append(result)

    def sum(self, field):
        return sum(getattr(row, field) for row in self.rows.values())

    @property
    def violations(self):
        return self.sum("violations")

    @property
    def histories(self):
        return sum(last - first + 1 for first, last in self.seeds)

    def table(self):
        rows = [row.cells(name) for name, row in sorted(self.rows.items())]
        rows.append(("all", f"{self.sum('runs')}", f"{self.sum('faults'):,}", f"{self.sum('operations'):,}",
                     f"{self.violations}", f"{self.sum('false_losses')}", "", ""))
        return [COLUMNS] + rows

    def text(self):
        table = self.table()
        widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table)

    def markdown(self):
        head, *rows = ("| " + " | ".join(row) + " |" for row in self.table())
        return "\n".join([head, "| " + " | ".join("---" for _ in COLUMNS) + " |"] + rows)

    def seeds_text(self):
        if not self.seeds:
            return ""
        first, last = min(s[0] for s in self.seeds), max(s[1] for s in self.seeds)
        return f"seeds {first} .. {last}" + (f", digest {self.digest:016x}" if self.digest else "")
