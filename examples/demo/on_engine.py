# SPDX-License-Identifier: MIT
"""on_engine.py BUILD ENGINE PROGRAM...: each program once with $HOLDFAST_URL at servers of this kind, and a page that two
stampede_servers share. Exits with 1 if one fails, and says which."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

from claims import Setup
from fleet import Fleet, Way

PATIENCE_S = 60


def works(program, uri):
    environment = {**os.environ, "HOLDFAST_URL": uri}
    try:
        done = subprocess.run([program], env=environment, timeout=PATIENCE_S, capture_output=True, text=True, check=False)
    except subprocess.TimeoutExpired:
        print(f"{program} did not end")
        return False
    if done.returncode != 0:
        print(f"{program}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def share_a_page(fleet):
    got = [server.connect().get("/page/hot")[:2] for server in fleet.servers]
    codes = fleet.stop_servers()
    if got == [(200, "LOADED"), (200, "CACHED")] and codes == [0, 0]:
        return True
    print(f"stampede_server: {got}, exit codes {codes}")
    return False


def main():
    build, engine, *programs = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-", dir="/tmp") as folder:
        log = Path(folder) / "loads.log"
        with Fleet(Path(build), engine, Setup(ttl_ms=60000, lease_ms=2000), 2, 2, Way("here"), log) as fleet:
            uri = fleet.engine.uri()
            print(uri)
            worked = [works(program, uri) for program in programs] + [share_a_page(fleet)]
    print(f"{sum(worked)} of {len(worked)} work")
    return not all(worked)


if __name__ == "__main__":
    sys.exit(main())
