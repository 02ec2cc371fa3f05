#!/bin/bash
# SPDX-License-Identifier: MIT
# guard_test.sh - holdfast run and the process that guards its command: who they are, what befalls the guard, whom it can
# stop and whom it cannot, and both as process 1.
. "${BASH_SOURCE%/*}/sentences.sh"

begin() { # begin [OPTION...] -- COMMAND...: in the background; sets pid, guard and child
    "$hf" run "$@" >said.txt 2>&1 &
    pid=$!
    until_true test -s child.txt
    child=$(cat child.txt)
    guard=$(pgrep -P "$pid" guard)
}
slow_exec=${hf%/*}/../tests/cli/libslow_exec.so
beats='echo $$ >child.txt; while :; do echo beat >>beats.txt; sleep 0.02; done'

waits_in_open() { # for a server that does not answer
    kill -0 "$1" && [ "$(ls -l "/proc/$1/fd" 2>/dev/null | grep -c socket:)" -ge 3 ]
}

the_guard_has_another_name_and_another_group() {
    begin g -- sh -c "$beats"
    same words hf-guard "$(tr '\0' ' ' <"/proc/$guard/cmdline" | sed 's/ *$//')"
    same name hf-guard "$(cat "/proc/$guard/comm")"
    same "number of groups" 3 "$(ps -o pgid= -p "$pid,$guard,$child" | sort -u | wc -l)"
    same session "$(ps -o sid= -p "$pid")" "$(ps -o sid= -p "$child")"
    kill -KILL "$child"
    wait "$pid"
    same code 137 $?
}

a_killed_guard_ends_the_command_and_is_named() {
    begin g -- sh -c "$beats"
    kill -KILL "$guard"
    wait "$pid"
    same code 76 $?
    must_go "$child"
    contains message "the command's guard was killed" "$(cat said.txt)"
    until_true is_free g
}

# They are children of the process that holdfast is now; one has left the session.
what_a_shell_started_before_it_became_us_outlives_the_guard() {
    local helper
    sh -c "sleep 1000 & echo \$! >>helpers.txt
        setsid sh -c 'sleep 1000 & echo \$! >>helpers.txt; wait' &
        until [ \$(wc -l <helpers.txt) = 2 ]; do sleep 0.02; done
        exec '$hf' run g -- sh -c 'echo \$\$ >child.txt; exec sleep 1000'" >said.txt 2>&1 &
    pid=$!
    until_true test -s child.txt
    guard=$(pgrep -P "$pid" guard)
    kill -KILL "$guard"
    wait "$pid"
    same code 76 $?
    must_go "$(cat child.txt)"
    for helper in $(cat helpers.txt); do
        is_gone "$helper" && wrong "a helper that was there before was killed"
        kill -KILL "$helper"
    done
}

a_guard_that_stands_still_is_set_going_and_kills_nobody() {
    local i
    begin --lease 1 g -- sh -c "$beats"
    for i in 1 2 3 4 5 6 7 8 9 10; do
        kill -STOP "$guard"
        sleep 0.2 # so that it stands still for two leases together, if nobody minds
    done
    until_true is_going "$guard"
    local had
    had=$(wc -l <beats.txt)
    until_true has_lines beats.txt $((had + 10))
    same message "" "$(cat said.txt)"
    kill -STOP "$guard"
    kill -KILL "$child"
    wait "$pid"
    same code 137 $?
}
is_going() { case $(ps -o stat= -p "$1") in T*) return 1 ;; esac }

# While it stands still it is told of more renewals than a socket holds: what it reads first then is long over.
a_guard_judges_by_the_lease_and_not_by_what_it_heard_last() {
    local i had
    begin --lease 2 g -- sh -c "$beats" # a busy machine renews a shorter one too late
    mkfifo clock && exec 9<>clock
    for i in {1..900}; do
        kill -STOP "$guard" # again and again, whoever sets it going
        kill -CONT "$pid"   # it looks at its lease
        read -r -t 0.006 -u 9
    done
    exec 9>&- && rm clock
    kill -CONT "$guard"
    had=$(wc -l <beats.txt)
    until_true has_lines beats.txt $((had + 50))
    same message "" "$(cat said.txt)"
    kill -KILL "$child"
    wait "$pid"
    same code 137 $?
}

a_slow_exec_outlives_no_lease_and_is_outlived_by_it() {
    local -x ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
    same output "ran" "$(SLOW_EXEC_MS=2500 LD_PRELOAD=$slow_exec "$hf" run --lease 1 g -- echo ran 2>&1)"
    local said
    SLOW_EXEC_MS=60000 LD_PRELOAD=$slow_exec "$hf" run --lease 1 g -- echo ran >said.txt 2>&1 &
    pid=$!
    until_true is_held g
    cli del 'hf:{g}' >/dev/null
    wait "$pid"
    same code 76 $?
    contains message "had not begun" "$(cat said.txt)"
}
is_held() { "$hf" show "$1"; }

# begin_held SIGNAL...: a run that gets them, and has read them, while its guard has not started the command yet; let_go.
begin_held() {
    local signal
    mkfifo held.fifo
    HELD_FORK=held.fifo LD_PRELOAD=${hf%/*}/../tests/cli/libheld_fork.so ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 \
        env --default-signal=INT,QUIT "$hf" run g -- sh -c 'echo ran >>ran.txt' >said.txt 2>&1 &
    pid=$!
    same word held "$(cat held.fifo)"
    for signal in "$@"; do
        kill -"$signal" "$pid"
        until_true nothing_pends "$pid"
    done
}
let_go() {
    echo go >held.fifo
    rm held.fifo
    wait "$pid"
}
nothing_pends() { grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$1/status"; }

a_signal_that_comes_before_the_command_is_not_lost() {
    local signal code
    for signal in TERM INT HUP QUIT USR1 USR2; do
        begin_held $signal
        let_go
        code=$?
        same "code after $signal" $((128 + $(kill -l $signal))) $code
        [ ! -e ran.txt ] || wrong "the command ran after $signal"
    done
}

a_stop_that_comes_before_the_command_is_taken_back() {
    begin_held TSTP CONT
    let_go
    same code 0 $?
    same output ran "$(cat ran.txt)"
}

# sudo, in short: a program that makes itself root's, started by somebody who may not signal root.
as_another_user() {
    chmod 777 "$FOLDER" "$REDIS_SOCKET"
    cp "$(command -v setpriv)" become && chmod 4755 become
    printf '%s\n' "trap '' TERM" "$beats" >beats.sh
    touch beats.txt child.txt && chmod 666 beats.txt child.txt
}

what_cannot_be_stopped_is_said_at_once_and_is_77() {
    [ "$(id -u)" = 0 ] || { echo "       ($sentence needs root)"; return; }
    as_another_user
    setpriv --reuid=65534 --clear-groups "$hf" run --lease 2 --grace 1 g -- \
        bash -c './become --reuid=0 --regid=0 --clear-groups bash beats.sh & wait' 2>said.txt &
    pid=$!
    until_true has_lines beats.txt 3
    child=$(cat child.txt)
    kill -STOP "$REDIS_PID"
    until_true test -s said.txt
    is_gone "$pid" && wrong "it was said only at the end"
    contains message " of the command belongs to another user (0)" "$(cat said.txt)" # the child, or one of its own
    wait "$pid"
    same code 77 $?
    contains message "not all of the command was stopped" "$(cat said.txt)"
    is_gone "$child" && wrong "it could be stopped: this test proves nothing"
    kill -KILL "$child"
    kill -CONT "$REDIS_PID"
    until_true is_free g
}

what_is_hidden_is_not_said_to_be_stopped() {
    unshare --mount sh -c 'mount -t proc -o hidepid=2 proc /proc' 2>/dev/null || { echo "       ($sentence needs root)"; return; }
    as_another_user
    unshare --mount sh -c 'mount -t proc -o hidepid=2 proc /proc && exec "$@"' -- setpriv --reuid=65534 --regid=65534 --clear-groups \
        "$hf" run --lease 2 --grace 1 g -- bash -c './become --reuid=0 --regid=0 --clear-groups bash beats.sh & wait' \
        2>said.txt &
    pid=$!
    until_true has_lines beats.txt 3
    cli del 'hf:{g}' >/dev/null
    wait "$pid"
    same code 76 $?
    contains message "as far as can be seen" "$(cat said.txt)"
    kill -KILL "$(cat child.txt)"
}

# A cgroup of one's own, as a user's session has it.
what_cannot_be_signalled_is_killed_by_its_cgroup_where_there_is_one() {
    [ "$(id -u)" = 0 ] || { echo "       ($sentence needs root)"; return; }
    local mount=/sys/fs/cgroup own
    [ -d $mount/unified ] && mount=$mount/unified
    own=$mount$(sed -n 's/^0:://p' /proc/self/cgroup)/hf-test-$$
    mkdir "$own" 2>/dev/null && [ -e "$own/cgroup.kill" ] ||
        { echo "       ($sentence needs a cgroup of version 2)"; rmdir "$own" 2>/dev/null; return; }
    chown 65534 "$own" "$own/cgroup.procs"
    as_another_user
    bash -c 'echo 0 >"$1/cgroup.procs"; shift; exec "$@"' -- "$own" \
        setpriv --reuid=65534 --clear-groups "$hf" run --lease 2 --grace 1 g -- \
        ./become --reuid=0 --regid=0 --clear-groups bash beats.sh 2>said.txt &
    pid=$!
    until_true has_lines beats.txt 3
    child=$(cat child.txt)
    contains "cgroup of the command" "/hf-test-$$/holdfast-" "$(cat "/proc/$child/cgroup")"
    cli del 'hf:{g}' >/dev/null
    wait "$pid"
    same code 76 $?
    is_gone "$child" || { wrong "the command lives on"; kill -KILL "$child"; }
    same "cgroups that are left" "" "$(ls -d "$own"/*/ 2>/dev/null)"
    # What a command leaves behind lives on, but not in a cgroup of ours.
    : >child.txt
    bash -c 'echo 0 >"$1/cgroup.procs"; shift; exec "$@"' -- "$own" \
        setpriv --reuid=65534 --clear-groups "$hf" run g -- bash -c 'sleep 1000 >/dev/null 2>&1 & echo $! >child.txt'
    same code 0 $?
    child=$(cat child.txt)
    same "cgroups that are left" "" "$(ls -d "$own"/*/ 2>/dev/null)"
    is_gone "$child" && wrong "what the command left behind is gone"
    kill -KILL "$child"
    # Nor is one left where there cannot be a guard.
    bash -c 'echo 0 >"$1/cgroup.procs"; shift; exec "$@"' -- "$own" \
        env ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" \
        setpriv --reuid=65534 --clear-groups prlimit --nproc=0 "$hf" run g -- true 2>said.txt
    same code 71 $?
    same "cgroups that are left" "" "$(ls -d "$own"/*/ 2>/dev/null)"
    until_true rmdir "$own"
}

a_signal_that_cannot_be_passed_on_is_said() {
    [ "$(id -u)" = 0 ] || { echo "       ($sentence needs root)"; return; }
    as_another_user
    setpriv --reuid=65534 --clear-groups "$hf" run g -- \
        ./become --reuid=0 --regid=0 --clear-groups bash beats.sh 2>said.txt &
    pid=$!
    until_true has_lines beats.txt 3
    kill -TERM "$pid"
    until_true grep -q "Terminated cannot be passed on" said.txt
    kill -KILL "$(cat child.txt)"
    wait "$pid"
    same code 137 $?
}

as_process_1="unshare --pid --fork --mount-proc"
inner() { pgrep -P "$1" -x holdfast; } # of the unshare that was started last

orphans='for i in {1..50}; do (sleep 0.05 & ) ; done
    while pgrep -r D,R,S -fx "sleep 0.05" >/dev/null; do sleep 0.02; done'

process_1_has_no_zombies() {
    $as_process_1 true 2>/dev/null || { echo "       (no PID namespaces here)"; return; }
    # Orphans of the command, which are its guard's; and those of somebody who came from elsewhere, which are process 1's.
    $as_process_1 "$hf" run g -- bash -c 'for i in {1..50}; do (sleep 0.05 & ) ; done; echo up >child.txt
        until [ -e done.txt ]; do sleep 0.02; done
        until [ -z "$(pgrep -x sleep)" ]; do sleep 0.02; done; ps -eo stat= | grep -c ^Z; exit 0' >zombies.txt &
    pid=$!
    until_true test -s child.txt
    nsenter -t "$(inner "$pid")" --pid --mount bash -c "$orphans"
    $as_process_1 "$hf" run g -- true & # and one that still waits
    local second=$!
    until_true waits_for g 1
    nsenter -t "$(inner "$second")" --pid --mount bash -c "$orphans"
    until_true no_zombies "$second"
    touch done.txt
    wait "$pid"
    same code 0 $?
    wait "$second"
    same zombies 0 "$(cat zombies.txt)"
}
no_zombies() { ! nsenter -t "$(inner "$1")" --pid --mount ps -eo stat= | grep -q ^Z; }

process_1_ends_when_told_also_while_it_connects() {
    $as_process_1 true 2>/dev/null || { echo "       (no PID namespaces here)"; return; }
    kill -STOP "$REDIS_PID"
    $as_process_1 "$hf" run --url "unix://$REDIS_SOCKET?connect_ms=60000" g -- true &
    pid=$!
    until_true inner "$pid"
    until_true waits_in_open "$(inner "$pid")"
    kill -TERM "$(inner "$pid")"
    until_true is_gone "$pid"
    kill -CONT "$REDIS_PID"
    wait "$pid"
    same code 143 $?
}

tell_all
