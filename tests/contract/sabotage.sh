#!/bin/sh
# SPDX-License-Identifier: MIT
# sabotage.sh SOURCE BUILD: every sabotage applies to today's sources, every rule has two; every mutant that counts as
# equivalent is one of today's sources. Builds nothing.
set -eu
python3 -B "$1/tests/sabotage/sabotage.py" --check
python3 -B "$1/tests/sabotage/mutate.py" --check
