#!/bin/bash
# SPDX-License-Identifier: MIT
# lead_test.sh - holdfast lead: stands, leads, resigns, is deposed and stands again; and holdfast watch, who sees it.
. "${BASH_SOURCE%/*}/sentences.sh"

# A command that notes its fence when it begins, and TERM when it comes, and stays.
steady='trap "echo TERM >>terms.txt; exit 3" TERM; echo "$HOLDFAST_FENCE $$" >>terms_of_office.txt
while :; do sleep 0.02; done'

start() { # start OPTION...: the steady command leads `l`
    "$hf" lead "$@" l -- bash -c "$steady" 2>>said.txt &
    pid=$!
    until_true has_lines terms_of_office.txt 1
}

stop() { # tells it to end; its exit code is that of the command
    kill -TERM "$pid"
    wait "$pid"
    same code 3 $?
    until_true is_free l
}

watch() { # watch OPTION...: of `l`, into seen.txt
    "$hf" watch "$@" l >seen.txt 2>>said.txt &
    watcher=$!
    until_true has_lines seen.txt 1
}

unwatch() {
    kill -TERM "$watcher" # bash lets its background ignore INT
    wait "$watcher"
    watched=$?
}

a_leader_resigns_when_its_command_ends() {
    "$hf" lead l -- sh -c 'echo "$HOLDFAST_NAME $HOLDFAST_FENCE" >is.txt; exit 7'
    same code 7 $?
    is_free l >/dev/null || wrong "still held"
    contains environment "l " "$(cat is.txt)"
    "$hf" lead -c 'exit 8' l
    same code 8 $?
}

the_next_one_leads_when_the_first_resigns() {
    start
    "$hf" lead l -- sh -c 'echo second >second.txt' &
    local second=$!
    until_true waits_for l 1
    [ ! -e second.txt ] || wrong "two lead"
    stop
    wait "$second"
    same code 0 $?
    same "who came" second "$(cat second.txt)"
}

a_deposed_leader_is_stopped_and_stands_again() {
    start --label chief
    watch
    "$hf" break l
    until_true has_lines terms_of_office.txt 2
    stop
    unwatch
    same "terms of office" 2 "$(wc -l <terms_of_office.txt)"
    same "fences in order" "$(sort -n terms_of_office.txt)" "$(cat terms_of_office.txt)"
    contains message "was lost" "$(cat said.txt)"
    contains first chief "$(head -n 1 seen.txt)"
    grep -q 'l: nobody$' seen.txt || wrong "nobody has led in between: $(cat seen.txt)"
}

a_leader_cut_off_stands_again_when_the_server_is_back() {
    start --lease 1 --grace 0.3
    local command
    command=$(awk '{print $2}' terms_of_office.txt)
    kill -STOP "$REDIS_PID"
    must_go "$command"
    kill -CONT "$REDIS_PID"
    until_true has_lines terms_of_office.txt 2
    stop
}

a_shell_line_is_run_again_too() {
    "$hf" lead -v -c "$steady" l 2>said.txt &
    pid=$!
    until_true has_lines terms_of_office.txt 1
    "$hf" break l
    until_true has_lines terms_of_office.txt 2
    stop
    contains narration "stands again" "$(cat said.txt)"
}

who_stands_ends_by_a_signal() {
    start
    local signal second
    for signal in 15 1; do # TERM, HUP: there is no command to pass it on to
        "$hf" lead l -- true &
        second=$!
        until_true waits_for l 1
        kill -"$signal" "$second"
        wait "$second"
        same code $((128 + signal)) $?
        until_true waits_for l 0
    done
    stop
}

a_hangup_while_it_leads_is_the_commands() {
    "$hf" lead l -- bash -c 'trap "echo HUP >>hangups.txt" HUP; trap "exit 3" TERM; echo 1 >>terms_of_office.txt
        while :; do sleep 0.02; done' 2>said.txt &
    pid=$!
    until_true has_lines terms_of_office.txt 1
    kill -HUP "$pid"
    until_true has_lines hangups.txt 1
    "$hf" break l
    until_true has_lines terms_of_office.txt 2
    stop
}

label_of() { # label_of LINE: under which its lock is shown, once its holder is heard
    "$hf" run --keep-url -c "$1; for i in \$(seq 50); do \"$hf\" show --json l >shown.txt; grep -q '\"label\": *null' shown.txt || break; done" l
    python3 -c 'import json; print(json.load(open("shown.txt"))["label"])'
}

the_label_of_a_shell_line_shows_none_of_its_passwords() {
    same command echo "$(label_of 'echo --password=secret >/dev/null')"
    same assignment /bin/sh "$(label_of '  PASSWORD="my secret" true')"
}

a_leader_that_is_told_to_end_does_not_stand_again() {
    "$hf" lead --lease 2 l -- bash -c 'trap "echo TERM >>terms.txt" TERM; echo 1 >>terms_of_office.txt
        while :; do sleep 0.02; done' 2>said.txt &
    pid=$!
    until_true has_lines terms_of_office.txt 1
    kill -TERM "$pid"
    until_true has_lines terms.txt 1
    "$hf" break l
    wait "$pid"
    same code 76 $?
    same "terms of office" 1 "$(wc -l <terms_of_office.txt)"
    until_true is_free l
}

a_killed_leader_takes_its_command_along() {
    start --lease 1
    local command
    command=$(awk '{print $2}' terms_of_office.txt)
    kill -KILL "$pid"
    must_go "$command"
    wait "$pid"
    until_true is_free l
}

a_command_that_is_not_there_ends_it() {
    "$hf" lead l -- /does/not/exist 2>said.txt
    same code 127 $?
    until_true is_free l
}

nonsense_is_refused_with_a_hint() {
    local words
    for words in "" "l" "l --" "-n l true" "-w 3 l true" "--timeout 3 l true" "-E 4 l true" "--lease 0 l true" \
        "--grace 6 l true" "--json l true" "--lead l true" "-c true l true"; do
        # shellcheck disable=SC2086 # words on purpose
        "$hf" lead $words >out.txt 2>said.txt
        same "code of lead $words" 64 $?
        contains "hint for lead $words" "holdfast help lead" "$(cat said.txt)"
    done
    for words in "" "a b" "--force l" "-n l" "--json=1 l" "--url"; do
        # shellcheck disable=SC2086 # words on purpose
        "$hf" watch $words >out.txt 2>said.txt
        same "code of watch $words" 64 $?
        contains "hint for watch $words" "holdfast help watch" "$(cat said.txt)"
    done
    is_free l >/dev/null || wrong "held"
}

a_watcher_says_who_leads_now_and_who_next() {
    watch
    contains "what is" "l: nobody" "$(cat seen.txt)"
    start --label 'a "label"'
    until_true has_lines seen.txt 2
    until_true grep -q 'a "label", fence' seen.txt
    stop
    until_true eval 'tail -n 1 seen.txt | grep -q nobody'
    unwatch
    same code 143 $watched
}

a_watcher_writes_an_object_a_line() {
    start --label 'a "label"'
    watch --json
    stop
    until_true grep -q '"held":false' seen.txt
    unwatch
    python3 - <<'END' || wrong "not that: $(cat seen.txt)"
import json
lines = [json.loads(line) for line in open("seen.txt")]
assert lines[0]["name"] == "l" and lines[0]["held"] and lines[0]["pid"] > 0 and lines[0]["host"]
told = [line for line in lines if line["label"] is not None]
assert told[0]["label"] == 'a "label"' and len(told[0]["fence"]) == 19 and told[0]["held_ms"] >= 0
assert lines[-1] == {"name": "l", "held": False, "host": None, "pid": None, "label": None, "held_ms": None,
                     "remaining_ms": None, "fence": None}
END
}

a_watcher_of_another_librarys_lock_says_so() {
    cli set 'hf:{l}' theirs >/dev/null
    watch
    contains line "l: another library" "$(cat seen.txt)"
    cli del 'hf:{l}' >/dev/null
    until_true has_lines seen.txt 2
    unwatch
}

a_watcher_fails_where_nobody_would_read_it() {
    "$hf" watch l >/dev/full 2>said.txt
    same code 74 $?
    "$hf" watch --url unix:///nowhere l 2>said.txt
    same code 69 $?
}

a_watcher_changes_nothing_at_the_server() {
    cli flushall >/dev/null
    watch
    unwatch
    same keys 0 "$(cli dbsize)"
}

tell_all
