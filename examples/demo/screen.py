# SPDX-License-Identifier: MIT
"""What a run shows: a table updated in place on a terminal, a line every five seconds elsewhere."""

import os
import shutil
import sys
import textwrap

LINE_EVERY = 5


class Screen:
    def __init__(self, out=sys.stdout):
        self.out, self.live = out, out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.colors = self.live and not os.environ.get("NO_COLOR")
        self.drawn, self.last_line = 0, None

    def paint(self, text, code):
        return f"\x1b[{code}m{text}\x1b[0m" if self.colors else text

    def bold(self, text):
        return self.paint(text, "1")

    def dim(self, text):
        return self.paint(text, "2")

    def good(self, text):
        return self.paint(text, "32")

    def bad(self, text):
        return self.paint(text, "1;31")

    def erase(self):
        if self.drawn:
            self.out.write(f"\x1b[{self.drawn}A\x1b[J")
            self.drawn = 0

    def say(self, text=""):
        """A line that stays."""
        self.erase()
        print(text, file=self.out, flush=True)

    def say_wrapped(self, text, indent, painter=None):
        """A line that stays, and is broken where a terminal would break it."""
        width = self.width() if self.live else len(text) + 1
        for line in textwrap.wrap(text, width, subsequent_indent=" " * indent):
            self.say(painter(line) if painter else line)

    def width(self):
        return shutil.get_terminal_size().columns - 1

    def show(self, second, rows, short):
        """rows: (plain text, painter or None), redrawn in place; short: the same in one line for a log."""
        if not self.live:
            if self.last_line is None or second < self.last_line or second - self.last_line >= LINE_EVERY:
                self.last_line = second
                self.say(short)
            return
        width = self.width()
        lines = [painter(text[:width]) if painter else text[:width] for text, painter in rows]
        self.erase()
        self.out.write("\n".join(lines) + "\n")
        self.out.flush()
        self.drawn = len(lines)
