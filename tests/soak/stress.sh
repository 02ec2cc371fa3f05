#!/bin/sh
# SPDX-License-Identifier: MIT
# stress.sh SOURCE BUILD [NAME...] [--seed S] [--seconds N]: tortures, races, what is promised to be quick and integration
# tests again and again in a build whose threads dawdle at the marks of base/perturb.h, each round with the next seed.
# Ends at the first failure with its seed, and says which marks nobody came by.
set -u
source=$1 build=$2 names= seed=$(date +%s) seconds=120
shift 2
while [ $# -gt 0 ]; do
    case $1 in
    --seed) seed=${2:?--seed wants a number}; shift 2 ;;
    --seconds) seconds=${2:?--seconds wants a number}; shift 2 ;;
    -*) echo "stress: no such option: $1" >&2; exit 64 ;;
    *) names="$names $1"; shift ;;
    esac
done
work=$(mktemp -d /tmp/holdfast-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
tortures="one hundred local"
races="cancel-storm renewed-releases passes-and-loss terminal-events closes fetch-races"
promises="prompt-posts prompt-revokes prompt-cancels prompt-notices" # at ten times what they may take
# Without the one whose bounds allow 50 ms, which threads that dawdle use up, and the one that may look while a descriptor
# is on its way to its number.
integrations=$(cd "$build/tests" && ls -d integration_* | sed 's/integration_//' | grep -vx -e orphan -e descriptors)

# once NAME: whichever kind of test that is.
once() {
    case " $tortures $races $promises " in
    *" $1 "*)
        case " $races $promises " in
        *" $1 "*) "$build/tests/fault/fault" "$1" --seed "$seed" ;;
        *) "$build/tests/torture" "$1" --seconds 3 --seed $((seed % 1000000 + 1)) ;;
        esac ;;
    *) "$build/tests/integration_$1" ;;
    esac
}

export HF_STRESS_SEED HF_STRESS_PLACES="$work/places"
began=$(date +%s) runs=0 first=$seed
: >"$HF_STRESS_PLACES"
while :; do
    for name in ${names:-$tortures $races $promises $integrations}; do
        HF_STRESS_SEED=$seed
        if ! once "$name" >"$work/log" 2>&1; then
            cat "$work/log"
            echo "stress: $name FAILED; again: ./dev stress $name --seed $seed" >&2
            exit 1
        fi
        runs=$((runs + 1))
        [ $(($(date +%s) - began)) -lt "$seconds" ] || break 2
    done
    seed=$((seed + 1))
done

cd "$source" || exit 1
grep -rhoE 'HFI_PERTURB\("[^"]*"\)' base pool watchdog core | cut -d'"' -f2 | sort >"$work/marks"
sort -u "$HF_STRESS_PLACES" | comm -23 "$work/marks" - >"$work/missed"
echo "stress ok: $runs runs in $(($(date +%s) - began)) s, seeds $first to $seed," \
    "$(($(wc -l <"$work/marks") - $(wc -l <"$work/missed"))) of $(wc -l <"$work/marks") marks passed"
[ ! -s "$work/missed" ] || echo "nobody came by: $(tr '\n' ' ' <"$work/missed")"
