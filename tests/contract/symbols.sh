#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh SOURCE BUILD: the library exports what the headers declare HF_API, no less and no more, and calls
# nothing that prints, ends the program or runs another one by way of a shell.
set -eu
source=$1
library=$2/libholdfast.so
work=$(mktemp -d /tmp/holdfast-test-XXXXXX)
trap 'rm -rf "$work"' EXIT

for file in "$source"/include/holdfast/*.h; do
    echo "#include \"$file\""
done >"$work/all.h"
gcc -std=c11 -E -P -I "$source/include" "$work/all.h" | tr '\n' ' ' | tr ';' '\n' | grep 'visibility("default")' |
    grep -o 'visibility.*' | awk '{ match($0, /hf_[a-z0-9_]*[ ]*\(/); name = substr($0, RSTART, RLENGTH - 1);
                                    sub(/ *$/, "", name); print name }' | sort -u >"$work/declared"
nm -D --defined-only "$library" | awk '{ print $NF }' | sed 's/@.*//' | sort -u >"$work/exported"
[ -s "$work/declared" ] && [ -s "$work/exported" ]
if ! diff -u "$work/declared" "$work/exported" >&2; then
    echo "declared (-) and exported (+) differ" >&2
    exit 1
fi
if nm -D --undefined-only "$library" | awk '{ sub(/@.*/, "", $NF); print $NF }' |
    grep -xE 'stdout|stderr|printf|__printf_chk|vprintf|puts|putchar|perror|exit|quick_exit|abort|system|popen|setenv|signal' >&2; then
    echo "the library uses what it promises not to" >&2
    exit 1
fi
