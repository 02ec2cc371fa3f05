#!/bin/sh
# SPDX-License-Identifier: MIT
# One seed is one history: whoever ran before it in its process, however many workers there are,
# printed or not.
set -eu
sim=$1

digest() {
    "$sim" "$@" 2>/dev/null | sed -n 's/.*digest \([0-9a-f]\{16\}\).*/\1/p' | tail -n 1
}

expect_same() {
    if [ -z "$2" ] || [ "$2" != "$3" ]; then
        echo "$1: digests $2 and $3"
        exit 1
    fi
    echo "same: $1"
}

expect_same "one worker and three" "$(digest --seeds 120 --workers 1)" "$(digest --seeds 120 --workers 3)"
for seed in 17 118; do
    expect_same "seed $seed, told or not" "$(digest --seed $seed)" "$(digest --seed $seed --verbose)"
    expect_same "seed $seed, in a batch or not" "$(digest --seed $seed)" "$(digest --seeds 1 --from $seed)"
done
if [ "$(digest --seed 17)" = "$(digest --seed 18)" ]; then
    echo "two seeds have one digest"
    exit 1
fi
