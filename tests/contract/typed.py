# SPDX-License-Identifier: MIT
"""typed.py SCRIPT: completes lines in an interactive bash on a terminal of its own, as somebody who types them. Each line of
standard input is `TYPED<tab>EXPECTED`; `|` in TYPED is where the cursor stands, at its end otherwise. Says what differs."""
import os
import pty
import re
import select
import sys

os.environ.update(PS1="$ ", TERM="dumb", INPUTRC="/dev/null", HISTFILE="/dev/null")
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])


def read_until(pattern):
    text = ""
    while not re.search(pattern, text, re.S):
        if not select.select([terminal], [], [], 20)[0]:
            sys.exit(f"typed.py: waited for {pattern!r} in vain; the terminal shows {text!r}")
        text += os.read(terminal, 65536).decode(errors="replace")
    return text


def say(text):
    os.write(terminal, text.encode())


# ^G shows the line as it is and throws it away.
say("bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; bind 'set completion-query-items 0'; "
    "show() { printf '<<%s>>\\n' \"$READLINE_LINE\"; READLINE_LINE=; }; bind -x '\"\\C-g\": show'; "
    f". '{sys.argv[1]}'; echo rea''dy\n")
read_until("ready\r?\n")
wrong = 0
for line in sys.stdin:
    typed, expected = line.rstrip("\n").split("\t")
    before, _, behind = typed.partition("|")
    say(before + behind + "\x1b[D" * len(behind) + "\t\x07")
    found = re.search("<<(.*?)>>\r?\n", read_until("<<.*?>>\r?\n"), re.S).group(1).rstrip(" ")
    if found != expected:
        wrong = 1
        print(f"typed: {typed!r} was completed to {found!r}, not to {expected!r}", file=sys.stderr)
say("exit\n")
os.close(terminal)
sys.exit(wrong)
