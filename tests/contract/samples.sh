#!/bin/sh
# SPDX-License-Identifier: MIT
# samples.sh SOURCE BUILD: every C sample of README.md, docs/ and the READMEs of the folders builds with the public headers
# and the library: as a program, or, without a main(), as a part of one.
set -eu
source=$1 build=$2
work=$(mktemp -d /tmp/holdfast-test-XXXXXX)
trap 'rm -rf "$work"' EXIT

cd "$source"
number=0
for page in README.md docs/*.md */README.md; do
    awk -v base="$work/$number" '/^```c$/ { name = sprintf("%s-%d.c", base, ++count); next }
                                 /^```/   { name = "" }
                                 name     { print > name }' "$page"
    for sample in "$work/$number"-*.c; do
        [ -e "$sample" ] || continue
        part=
        grep -q '^int main(' "$sample" || part=-shared\ -fPIC\ -Wno-unused-parameter
        gcc -std=c11 -Wall -Wextra -Wpedantic -Werror $part -I include "$sample" -o "$work/sample" -L "$build" -lholdfast \
            -Wl,--no-undefined,-rpath,"$build" || { echo "a sample of $page does not build" >&2; exit 1; }
    done
    number=$((number + 1))
done
[ -e "$work/0-1.c" ] && [ -e "$work/0-2.c" ] || { echo "README.md has lost its samples" >&2; exit 1; }
