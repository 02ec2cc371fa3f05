# SPDX-License-Identifier: MIT
# sentences.sh - what the tool's tests share. A test is a function whose name is a sentence of four words or
# more; it fails by calling `wrong`.
# Sourced by X_test.sh TOOL [SENTENCE...], in with_redis.sh's environment; the sentences are those to try, else all.
hf=$(realpath "$1")
chosen=${*:2}
script=$(realpath "$0")
cd "$FOLDER" || exit 1
failures=0
sentence=

wrong() {
    echo "FAILED $sentence: $*"
    failures=$((failures + 1))
}

same() { # same WHAT EXPECTED ACTUAL
    [ "$2" = "$3" ] || wrong "$1 should be \"$2\", is \"$3\""
}

contains() { # contains WHAT PART WHOLE
    case $3 in
    *"$2"*) ;;
    *) wrong "$1 should contain \"$2\": $3" ;;
    esac
}

until_true() { # until_true CONDITION...: waits for it, at most 10 s
    local n=0
    until "$@" >/dev/null 2>&1; do
        n=$((n + 1))
        [ $n -lt 500 ] || { wrong "never came true: $*"; return 1; }
        sleep 0.02
    done
}

# Gone, or dead and only not reaped.
is_gone() {
    local state
    state=$(ps -o stat= -p "$1") || return 0
    case $state in Z*) return 0 ;; esac
    return 1
}

# It must go, at the latest within 10 s; and what does not go by itself goes with the test.
must_go() {
    until_true is_gone "$1" || kill -KILL "$1"
}

has_lines() { [ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ]; }
cli() { redis-cli -s "$REDIS_SOCKET" "$@"; }
is_free() { ! "$hf" show "$1"; }
waits_for() { [ "$("$hf" show "$1" | awk '$1 == "waiting" {print $2}')" = "$2" ]; }

# The functions of the script, in its order.
tell_all() {
    local test
    for test in ${chosen:-$(awk -F'[ (]' '/^[a-z0-9]+_[a-z0-9]+_[a-z0-9]+_[a-z0-9_]+\(\) \{/ {print $1}' "$script")}; do
        sentence=$test
        rm -f ./*.txt
        local before=$failures
        "$test"
        [ "$failures" = "$before" ] && echo "ok     $test"
    done
    [ "$failures" = 0 ]
}
