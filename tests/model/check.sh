#!/bin/sh
# SPDX-License-Identifier: MIT
# check.sh [MODEL]: explores each model completely: its promise holds; and each variant in which one rule is broken is
# caught. Models are tests/model/*.pml.
set -u
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
only=${1:-}
work=$(mktemp -d /tmp/holdfast-model-XXXXXX)
trap 'rm -rf "$work"' EXIT
failed=0

# explore MODEL CLAIM DEFINITION...: says what the search found: holds, broken, or unfinished. CLAIM -: assertions only.
explore() {
    model=$1 claim=$2
    shift 2
    cp "$folder/$model.pml" "$work/"
    options=-DSAFETY
    arguments=-E
    if [ "$claim" != - ]; then
        options=-DNFAIR=3
        arguments="-a -f -N $claim"
    fi
    (
        cd "$work" && spin -a "$@" "$model.pml" && {
            [ "$claim" != - ] || options="$options -DNOCLAIM"
            # shellcheck disable=SC2086 # words on purpose
            gcc -O2 -w $options -DCOLLAPSE -DMEMLIM=6000 -o pan pan.c && ./pan $arguments -m3000000
        }
    ) >"$work/log" 2>&1
    if grep -q 'errors: 0$' "$work/log" && ! grep -qE 'not completed|too small|out of memory' "$work/log"; then
        found=holds
    elif grep -qE 'assertion violated|acceptance cycle' "$work/log"; then
        found=broken
    else
        found=unfinished
    fi
}

expect() { # expect holds|broken MODEL CLAIM DEFINITION...
    expected=$1
    shift
    [ -z "$only" ] || [ "$only" = "$1" ] || return 0
    start=$(date +%s)
    explore "$@"
    what=$*
    if [ "$found" = "$expected" ]; then verdict=ok; else verdict=FAILED failed=1; fi
    printf '%-6s %-60s %-10s %12s states %4d s\n' $verdict "$what" "$found" \
        "$(sed -n 's/^ *\([0-9]*\) states, stored.*/\1/p' "$work/log")" $(($(date +%s) - start))
    [ $verdict = ok ] || tail -n 30 "$work/log"
}

expect holds lease -
for rule in GUARD_FOR_ONE_CLOCK DATES_BY_ARRIVAL WITHDRAWS_LATE RENEWAL_CREATES RAISES_THE_DEAD RELEASE_COMPARES_NOTHING; do
    expect broken lease - -D$rule
done

expect holds hand_off -
expect holds hand_off first_gets_it -DCOPIES=1 -DPAUSES=0
for rule in GRANT_WITHOUT_KEY DATES_BY_ARRIVAL RELEASE_COMPARES_NOTHING TOKEN_IS_USED_AGAIN; do
    expect broken hand_off - -D$rule
done
for rule in NOBODY_ASKS_AGAIN LAST_COMES_FIRST; do
    expect broken hand_off first_gets_it -DCOPIES=1 -DPAUSES=0 -D$rule
done

expect holds unknown - -DCUTS=6
expect holds unknown nobody_is_blocked -DCUTS=6
for rule in ONE_RELEASE_IS_ENOUGH NO_NOT_AFTER YOURS_WITHOUT_EXTENDING NATIVE_AGAIN FRESH_TOKEN_AFTER_DOUBT; do
    expect broken unknown - -D$rule
done
exit $failed
