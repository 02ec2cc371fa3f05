#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh SOURCE BUILD: a floor includes only floors below it, and everything else only the public headers.
set -eu
cd "$1"
failed=0

# climbs FOLDERS FORBIDDEN: no file in FOLDERS includes a file of a floor in FORBIDDEN (an alternation).
climbs() {
    # shellcheck disable=SC2086,SC2038 # folders are words on purpose, and no name has a blank
    found=$(find $1 -name '*.[ch]' -o -name '*.hpp' -o -name '*.cpp' 2>/dev/null |
        xargs grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]($2)/" /dev/null || true)
    [ -z "$found" ] && return 0
    printf '%s\n' "climbs: $found" >&2
    failed=1
}

climbs "base" "pool|watchdog|core|tests|tools|examples"
climbs "pool" "watchdog|core|tests|tools|examples"
climbs "watchdog" "pool|core|tests|tools|examples"
climbs "core" "tests|tools|examples"
climbs "include tools examples bench" "base|pool|watchdog|core|tests"

up=$(grep -rnE --include='*.[ch]' '#[[:space:]]*include[[:space:]]*"\.\.?/' base pool watchdog core include tools examples bench tests || true)
if [ -n "$up" ]; then
    echo "paths begin at the top of the tree: $up" >&2
    failed=1
fi
exit $failed
