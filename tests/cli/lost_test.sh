#!/bin/bash
# SPDX-License-Identifier: MIT
# lost_test.sh - holdfast run when it goes wrong: a frozen server, a lock taken away, ourselves killed.
. "${BASH_SOURCE%/*}/sentences.sh"

# A command that says it lives, over and over, and notes TERM without obeying.
stubborn='trap "echo TERM >>beats.txt" TERM; echo $$ >pid.txt
while :; do echo beat >>beats.txt; sleep 0.02; done'

start() { # start OPTION...: the stubborn command under the lock `l`
    "$hf" run "$@" l -- bash -c "$stubborn" 2>said.txt &
    pid=$!
    until_true has_lines beats.txt 3
    child=$(cat pid.txt)
}

# One TERM, and at least so many signs of life after it.
check_term() {
    same "number of TERMs" 1 "$(grep -c TERM beats.txt)"
    local after
    after=$(sed '1,/TERM/d' beats.txt | wc -l)
    [ "$after" -ge "$1" ] || wrong "only $after beats between TERM and KILL"
}

a_frozen_server_gives_term_then_kill_then_76() {
    start --lease 2 --grace 1
    kill -STOP "$REDIS_PID"
    wait "$pid"
    same code 76 $?
    must_go "$child"
    check_term 5
    contains message "lease on l" "$(cat said.txt)"
    kill -CONT "$REDIS_PID"
    until_true is_free l
}

a_command_that_obeys_term_ends_by_it() {
    "$hf" run --lease 2 --grace 1 l -- bash -c 'trap "echo undone >undone.txt; exit 0" TERM; echo up >up.txt
        while :; do sleep 0.02; done' 2>/dev/null &
    local pid=$!
    until_true test -s up.txt
    kill -STOP "$REDIS_PID"
    wait "$pid"
    same code 76 $?
    same note undone "$(cat undone.txt)"
    kill -CONT "$REDIS_PID"
    until_true is_free l
}

a_server_frozen_for_half_a_lease_is_not_noticed() {
    start --lease 3 --grace 0.5
    kill -STOP "$REDIS_PID"
    sleep 1.5 # that long is what is tested
    kill -CONT "$REDIS_PID"
    local beats
    beats=$(wc -l <beats.txt)
    until_true has_lines beats.txt $((beats + 60))
    same "number of TERMs" 0 "$(grep -c TERM beats.txt)"
    kill -TERM "$pid"
    until_true grep -q TERM beats.txt # forwarded
    kill -KILL "$child"
    wait "$pid"
    same code 137 $?
    same "messages of ours" 0 "$(grep -c holdfast said.txt)"
    until_true is_free l
}

a_deleted_key_stops_the_command() {
    start --lease 2
    cli del 'hf:{l}' >/dev/null
    wait "$pid"
    same code 76 $?
    must_go "$child"
}

a_broken_lock_stops_the_command() {
    start --lease 3
    "$hf" break l
    same "code of break" 0 $?
    wait "$pid"
    same code 76 $?
    must_go "$child"
    until_true is_free l
}

the_command_and_its_children_die_with_us() {
    "$hf" run --lease 2 l -- sh -c 'sleep 1000 & echo $! >grandchild.txt; echo $$ >child.txt; wait' &
    local pid=$!
    until_true test -s child.txt
    kill -KILL $pid
    must_go "$(cat child.txt)"
    must_go "$(cat grandchild.txt)"
    wait $pid 2>/dev/null
    until_true is_free l
}

# The key outlives the lease by five seconds, so that a busy machine has time to look.
the_command_is_killed_in_time_when_we_are_stopped() {
    HOLDFAST_URL="unix://$REDIS_SOCKET?guard_ms=5000" start --lease 1
    kill -STOP $pid
    must_go "$child"
    local left
    left=$(cli pttl 'hf:{l}')
    [ "$left" -gt 0 ] || wrong "the key had ended (pttl $left) when the command did"
    until_true is_free l # the lease is over for certain
    kill -CONT $pid
    wait "$pid"
    same code 76 $?
}

what_a_command_leaves_behind_outlives_a_slow_release() {
    "$hf" run --lease 1 slow -- bash -c 'sleep 1000 >/dev/null 2>&1 & echo $! >child.txt; kill -STOP "$REDIS_PID"'
    same code 0 $?
    kill -CONT "$REDIS_PID"
    is_gone "$(<child.txt)" && wrong "it was killed"
    kill -KILL "$(<child.txt)"
    until_true is_free slow
}

those_that_a_lost_command_leaves_behind_are_killed() {
    "$hf" run --lease 2 --grace 1 l -- bash -c \
        '(trap "" TERM; echo $BASHPID >grandchild.txt; exec sleep 1000) & wait' 2>/dev/null &
    local pid=$!
    until_true test -s grandchild.txt
    kill -STOP "$REDIS_PID"
    wait "$pid" # TERM ends bash, but not sleep
    same code 76 $?
    must_go "$(cat grandchild.txt)"
    kill -CONT "$REDIS_PID"
    until_true is_free l
}

a_dead_holders_lock_is_had_after_its_lease() {
    start --lease 1
    kill -KILL $pid
    wait $pid 2>/dev/null
    "$hf" run -w 5 l -- true
    same code 0 $?
}

tell_all
