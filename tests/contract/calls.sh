#!/bin/sh
# SPDX-License-Identifier: MIT
# calls.sh SOURCE BUILD: every function that the library exports is called by the steps of tests/fault/calls.c, and
# every step stands in its table, so that the faults of allocations and system calls leave none out.
set -eu
list=$1/tests/fault/calls.c
library=$2/libholdfast.so
failed=0

exported=$(nm -D --defined-only "$library" | awk '{ sub(/@.*/, "", $NF); print $NF }')
[ -n "$exported" ]
for name in $exported; do
    spelt=${name%_sized} # a macro stands before it
    grep -qE "(^|[^a-z_])$spelt\(" "$list" || { echo "tests/fault/calls.c calls no $name" >&2; failed=1; }
done
for step in $(sed -nE 's/^static hf_status (call_[a-z_]+)\(.*/\1/p' "$list"); do
    grep -qE "\{\".*\", [a-z_]+, $step\}|\{\".*\", NULL, $step\}" "$list" ||
        { echo "$step is in no table" >&2; failed=1; }
done
exit $failed
