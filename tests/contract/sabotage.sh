#!/bin/sh
# SPDX-License-Identifier: MIT
# sabotage.sh SOURCE BUILD: every sabotage applies to today's sources, every rule has two. Builds nothing.
set -eu
exec python3 -B "$1/tests/sabotage/sabotage.py" --check
