# SPDX-License-Identifier: MIT
"""terminal.py - an interactive shell at a terminal, and somebody who types: terminal.py STEP..., each `type TEXT` (with \\n, \\x03 and
such) or `await FILE`, till it is not empty. Prints what the terminal showed if that takes longer than 10 s, and exits with 1."""
import os
import pty
import select
import subprocess
import sys
import time

LONG_S = 10


def main(steps):
    shell, terminal = pty.fork()
    if shell == 0:
        os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
    shown, until, over = b"", time.monotonic() + LONG_S, False
    for verb, what in zip(steps[::2], steps[1::2]):
        if verb == "type":
            os.write(terminal, what.encode().decode("unicode_escape").encode())
        while verb == "await" and not over and not (os.path.exists(what) and os.path.getsize(what)):
            over = time.monotonic() > until
            if select.select([terminal], [], [], 0.02)[0]:
                shown += os.read(terminal, 4096)
        if over:
            print(f"{what} did not come; shown:", shown.decode(errors="replace"))
            break
    if over:  # nothing of it stays
        subprocess.run(["pkill", "-KILL", "-s", str(shell)], check=False)
    os.kill(shell, 9)  # a hang-up ends its jobs
    os.close(terminal)
    os.waitpid(shell, 0)
    return over


sys.exit(main(sys.argv[1:]))
