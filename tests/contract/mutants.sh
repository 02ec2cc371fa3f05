#!/bin/sh
# SPDX-License-Identifier: MIT
# mutants.sh SOURCE BUILD: every mutant of a rule applies to today's sources, every rule has two; every mutant of the code
# that counts as equivalent is one of today's sources. Builds nothing.
set -eu
python3 -B "$1/tests/mutation/rule_mutants.py" --check --build "$2"
python3 -B "$1/tests/mutation/code_mutants.py" --check
