#!/bin/bash
# SPDX-License-Identifier: MIT
# surroundings_test.sh - holdfast run wherever it may be run, and what may befall it there. An oracle outside looks on: the
# next holder's first sign of life is later than the last one of the command, its children, and who left its session.
. "${BASH_SOURCE%/*}/sentences.sh"
export LC_ALL=C

surroundings="plain systemd cron pid-1 another-user nohup closed terminal"

# ticker.sh FILE [alone]: notes the time over and over, deaf to all that can be refused.
cat >ticker.sh <<'END'
trap '' TERM HUP INT QUIT PIPE
if [ "$2" != alone ]; then
    bash "$0" "$1" alone &
    setsid bash "$0" "$1.left" alone &
fi
exec 9<>"${1%.left}.clock"
while :; do echo "${EPOCHREALTIME/./}" >>"$1"; read -r -t 0.05 -u 9; done
END
chmod 755 "$FOLDER" ticker.sh

# Not by script(1): stopped along with what it runs, it may miss that one's end, and wait for ever.
in_terminal='import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))'

# begin WHERE: the ticker under the lock of that name, with a lease of a second, run there.
begin() {
    local run="$hf run --lease 1 --grace 0.3 $1-$event -- bash $FOLDER/ticker.sh $FOLDER/$1.txt"
    rm -f "$1.txt.clock" "$1.code.txt"
    mkfifo -m 666 "$1.txt.clock"
    : >"$1.txt" && : >"$1.txt.left" && chmod 666 "$1.txt" "$1.txt.left"
    case $1 in
    plain) $run ;;
    systemd) setsid --wait env -i PATH="$PATH" HOLDFAST_URL="$HOLDFAST_URL" INVOCATION_ID=1 $run </dev/null ;;
    cron) env -i PATH=/usr/bin:/bin HOLDFAST_URL="$HOLDFAST_URL" setsid --wait sh -c "$run" </dev/null | cat
        (exit "${PIPESTATUS[0]}") ;;
    pid-1) unshare --pid --fork --mount-proc $run ;;
    another-user) $hf run --lease 1 --grace 0.3 "$1-$event" -- setpriv --reuid=65534 --regid=65534 --clear-groups \
        bash "$FOLDER/ticker.sh" "$FOLDER/$1.txt" ;;
    nohup) nohup $run ;;
    closed) $run <&- >&- 2>&- ;;
    terminal) python3 -c "$in_terminal" $run </dev/null ;;
    esac >"$1.said.txt" 2>&1
    echo $? >"$1.code.txt"
}

can() {
    case $1 in
    pid-1) unshare --pid --fork --mount-proc true 2>/dev/null ;;
    another-user) [ "$(id -u)" = 0 ] ;;
    esac
}

# Notes the pid, as seen from here, of the holdfast that runs there, and not in another one's test. Starts no process for
# each that it looks at: those were most of what this test cost.
note_pid() {
    local pid words
    for pid in $(pgrep -x holdfast); do
        { mapfile -d '' -t words <"/proc/$pid/cmdline"; } 2>/dev/null || continue
        [[ "${words[*]} " == *"run --lease 1 --grace 0.3 $1-$event "*"$FOLDER/"* ]] && echo "$pid" >"$1.pid.txt" && return
    done
    return 1
}
ticks() { has_lines "$1.txt" 12 && has_lines "$1.txt.left" 6 && note_pid "$1"; }

# befall EVENT STRIKE...: to all of them at once; then the next holders come, and the oracle looks.
befall() {
    local where first last wheres=
    event=$1
    shift
    for where in $surroundings; do
        can "$where" || { echo "       ($where cannot be had here)"; continue; }
        wheres="$wheres $where"
        begin "$where" &
    done
    for where in $wheres; do until_true ticks "$where"; done
    for where in $wheres; do pgrep -P "$(<"$where.pid.txt")" guard >"$where.guard.txt"; done
    for where in $wheres; do "$@" "$where"; done
    for where in $wheres; do
        "$hf" run -w 20 "$where-$event" -- bash -c 'echo "${EPOCHREALTIME/./}"; sleep 0.4' >"$where.next.txt" &
        nexts="$nexts $!"
    done
    after_all
    for next in $nexts; do wait "$next" || wrong "$event: a next holder ended with $?"; done
    nexts=
    for where in $wheres; do
        first=$(<"$where.next.txt") last=$(sort -n "$where.txt" $(left_too "$where") | tail -1)
        if [ "$last" -lt "$first" ]; then
            printf '       %-8s %-13s the last sign of life is %5d ms older than the next\n' "$event" "$where" $(((first - last) / 1000))
        else
            wrong "$event, $where: $(later_than "$first" "$where.txt") ticks under the next lock, $(later_than "$first" "$where.txt.left") of who left the group"
        fi
    done
    let_all_go
    wait
}
after_all() { :; }
left_too() { echo "$1.txt.left"; }
later_than() { awk -v first="$1" '$1 > first' "$2" | wc -l; }

# Nothing of this test stays: what it started has its folder in its command line.
let_all_go() {
    local pid
    [ "$event" != both ] || pkill -KILL -f "bash $FOLDER/ticker.sh .* alone"
    until_true nobody_ticks || for pid in $(pgrep -f "$FOLDER/ticker.sh"); do kill -KILL "$pid"; done
}
nobody_ticks() { ! pkill -CONT -f "bash $FOLDER/ticker.sh"; }

strike_stop() { kill -STOP "$(<"$1.pid.txt")"; }
strike_kill() { kill -KILL "$(<"$1.pid.txt")"; }
strike_guard() { kill -KILL "$(<"$1.guard.txt")"; }
strike_both() { kill -KILL "$(<"$1.pid.txt")" "$(<"$1.guard.txt")"; }
strike_name() { pkill -KILL -f "run --lease 1 --grace 0.3 $1-$event .*$FOLDER/"; }
strike_nothing() { :; }

codes_are() {
    local where
    for where in $surroundings; do
        [ ! -e "$where.code.txt" ] || same "code of $where" "$1" "$(<"$where.code.txt")"
    done
}

a_holdfast_that_is_stopped_is_outlived_by_nothing() {
    befall stop strike_stop
    codes_are 76
}

a_lease_that_is_lost_is_outlived_by_nothing() {
    after_all() { sleep 1.6; kill -CONT "$REDIS_PID"; } # the lease, and what the server keeps of it
    strike_once() { kill -STOP "$REDIS_PID"; }
    befall loss strike_once
    after_all() { :; }
    codes_are 76
}

a_holdfast_that_is_killed_is_outlived_by_nothing() {
    befall killed strike_kill
}

a_guard_that_is_killed_is_outlived_by_nothing() {
    befall guard strike_guard
    codes_are 76
}

both_killed_together_are_outlived_by_nothing_in_the_group() {
    left_too() { :; } # beyond the group nobody is left who could
    befall both strike_both
    left_too() { echo "$1.txt.left"; }
}

all_that_have_its_words_killed_is_outlived_by_nothing() {
    befall name strike_name
}

tell_all
