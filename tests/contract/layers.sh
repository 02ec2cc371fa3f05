#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh SOURCE BUILD: a floor includes only floors below it, a room of core only rooms below it; what decides includes
# neither; of pool core sees the front door alone; everything else includes only the public headers; and within a room
# no more than three files include each other in a circle.
set -eu
cd "$1"
failed=0

# climbs FOLDERS FORBIDDEN: no file in FOLDERS includes what begins as FORBIDDEN (an alternation) does.
climbs() {
    # shellcheck disable=SC2086,SC2038 # folders are words on purpose, and no name has a blank
    found=$(find $1 -name '*.[ch]' -o -name '*.hpp' -o -name '*.cpp' 2>/dev/null |
        xargs grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*[\"<]($2)/" /dev/null || true)
    [ -z "$found" ] && return 0
    printf '%s\n' "climbs: $found" >&2
    failed=1
}

climbs "base" "pool|watchdog|core|tests|tools|modules|examples"
climbs "pool" "watchdog|core|tests|tools|modules|examples"
climbs "watchdog" "pool|core|tests|tools|modules|examples"
climbs "core" "tests|tools|modules|examples"
climbs "include tools modules examples bench" "base|pool|watchdog|core|tests"

# The rooms of core, lowest first: none includes one above it. Policy is pure, and sees no other floor than base.
above=client
for room in fetch lock context protocol policy; do
    climbs "core/$room" "core/($above)"
    above="$above|$room"
done
climbs "core/policy" "pool|watchdog"
climbs "core/protocol" "watchdog"

# The rest of pool is its back room.
door='borrow|command|embedded|lane|pool|replies|script|uri'
behind=$(grep -rnE --include='*.[ch]' '#include "pool/' core | grep -vE "\"pool/($door)\.h\"" || true)
if [ -n "$behind" ]; then
    echo "behind pool's front door: $behind" >&2
    failed=1
fi

# circles ROOM MOST: no more than MOST files of the room include each other in a circle. x.c and x.h are one file.
circles() {
    found=$(grep -HE '^#include "' "$1"/*.[ch] | awk -F '[":]' -v room="$1" -v most="$2" '
        { from = $1; to = $3; sub(/\.[ch]$/, "", from); sub(/\.[ch]$/, "", to) }
        from != to && to ~ "^" room "/[^/]*$" { files[from]; files[to]; reaches[from, to] }
        END {
            for (via in files)
                for (from in files)
                    if ((from, via) in reaches)
                        for (to in files)
                            if ((via, to) in reaches)
                                reaches[from, to]
            for (from in files) {
                if (from in told)
                    continue
                members = ""
                count = 0
                for (to in files)
                    if ((from, to) in reaches && (to, from) in reaches) {
                        told[to]
                        members = members " " to
                        count++
                    }
                if (count > most)
                    print count " files:" members
            }
        }')
    [ -z "$found" ] && return 0
    printf '%s\n' "circle: $found" >&2
    failed=1
}

for room in base pool watchdog tools modules/apache core/policy core/protocol core/context core/lock core/fetch core/client; do
    circles $room 3
done

up=$(grep -rnE --include='*.[ch]' '#[[:space:]]*include[[:space:]]*"\.\.?/' base pool watchdog core include tools modules examples bench tests || true)
if [ -n "$up" ]; then
    echo "paths begin at the top of the tree: $up" >&2
    failed=1
fi
exit $failed
