#!/bin/bash
# SPDX-License-Identifier: MIT
# operators_test.sh - holdfast ls, show, break, doctor, help and --version.
. "${BASH_SOURCE%/*}/sentences.sh"

# labels COUNT SHOW-ARGUMENTS...: so many holders are heard: a label is what the holder answers. What was shown then stays in heard.txt,
# for the holders of a busy machine may miss the next question.
labels() {
    local count=$1
    shift
    "$hf" show "$@" >heard.txt
    [ "$(grep -c '^label ' heard.txt)" = "$count" ]
}

# told_label ARGUMENTS...: what holdfast says of them in JSON has a holder's label; it stays in told.json.
told_label() {
    "$hf" "$@" >told.json
    grep -q '"label": *"' told.json
}

hold() { # hold NAME LABEL [LEASE]
    "$hf" run --lease "${3:-5}" --label "$2" "$1" -- sh -c 'echo up >up.txt; exec sleep 1000' 2>/dev/null &
    pid=$!
    until_true test -s up.txt
    rm -f up.txt
    until_true labels 1 "$1"
}

let_go() {
    kill -TERM "$pid"
    wait "$pid"
}

a_free_lock_is_shown_as_free_and_1() {
    same output "nobody-has-it is free" "$("$hf" show nobody-has-it)"
    "$hf" show nobody-has-it >/dev/null
    same code 1 $?
}

a_holder_is_shown_with_all_that_is_known() {
    hold invoice:42 'nightly job'
    local shown
    shown=$(cat heard.txt)
    field() { echo "$shown" | awk -v key="$1" '$1 == key {$1 = ""; print substr($0, 2)}'; }
    same name invoice:42 "$(field name)"
    same host "$(hostname)" "$(field host)"
    same pid $pid "$(field pid)"
    same label 'nightly job' "$(field label)"
    same waiting 0 "$(field waiting)"
    contains since "$(date +%Y)" "$(field since)"
    same "digits of the fence" 19 "$(printf %s "$(field fence)" | wc -c)"
    case $(field remaining) in [1-5].[0-9]s) ;; *) wrong "remaining $(field remaining)" ;; esac
    "$hf" show invoice:42 >/dev/null
    same code 0 $?
    "$hf" run -w 20 invoice:42 -- true &
    local second=$!
    until_true waits_for invoice:42 1
    local seconds
    seconds=$("$hf" show invoice:42 | sed -n "s/^ *1[.] process $second on $(hostname), for \([0-9]*\)[.][0-9]s$/\1/p")
    [ "${seconds:-20}" -lt 20 ] || wrong "who waits: $("$hf" show invoice:42)"
    same "who waits in JSON" "$second $(hostname) True" \
        "$("$hf" show --json invoice:42 | value '"%d %s %s" % (it["waiters"][0]["pid"], it["waiters"][0]["host"], 0 < it["waiters"][0]["waits_ms"] < 60000)')"
    let_go
    wait $second
}

lists() { "$hf" ls | grep -q "$1"; }

ls_lists_what_is_held_and_matches() {
    same "output when nothing is held" "" "$("$hf" ls)"
    hold ls:one first
    local one=$pid listed
    hold ls:two second
    listed=$("$hf" ls)
    same code 0 $?
    contains list ls:one "$listed"
    contains list ls:two "$listed"
    until_true lists second
    contains titles NAME "$(echo "$listed" | head -1)"
    same lines 3 "$(echo "$listed" | wc -l)"
    same "lines of ls *:one" 2 "$("$hf" ls '*:one' | wc -l)"
    same "lines of ls x*" 0 "$("$hf" ls 'x*' | wc -l)"
    let_go
    pid=$one let_go
}

# value EXPRESSION: of the JSON on standard input, read by somebody else's parser.
value() { python3 -c 'import json, sys; it = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

json_says_what_the_tables_say() {
    local name shown
    name=$(printf 'a "b"\\ \303\244 \377\001')
    hold "$name" 'nightly job'
    "$hf" show --json "$name" >/dev/null
    same code 0 $?
    until_true told_label show --json "$name"
    shown=$(cat told.json)
    same name "$(printf 'a "b"\\ \303\244 \357\277\275\001')" "$(echo "$shown" | value 'it["name"]')"
    same "pid and label" "$pid nightly job" "$(echo "$shown" | value 'it["pid"], it["label"]' | tr -d "(),'")"
    same "digits of the fence" 19 "$(echo "$shown" | value 'len(it["fence"])')"
    same "the same from ls" "$(echo "$shown" | value 'sorted(set(it) - {"waiters"})')" "$("$hf" ls --json | value 'sorted(it[0])')"
    same "who waits" "[]" "$(echo "$shown" | value 'it["waiters"]')"
    same "what nobody knows" None "$(echo "$shown" | value 'it["foreign_value"]')"
    let_go
    until_true is_free "$name"
    same "a free one" null "$("$hf" show --json "$name")"
    "$hf" show --json "$name" >/dev/null
    same "code of a free one" 1 $?
    same "none at all" "[]" "$("$hf" ls --json)"
    cli set 'hf:{theirs}' 'redlock-0815' px 20000 >/dev/null
    contains "another library's" "redlock-0815" "$("$hf" ls --json | value 'it[0]["foreign_value"]')"
    same "its pid" None "$("$hf" ls --json | value 'it[0]["pid"]')"
    cli del 'hf:{theirs}' >/dev/null
    same "levels" "True" "$("$hf" doctor --json | value 'all(f["level"] in ("ok", "note", "warning", "error") for f in it)')"
}

json_says_why_nothing_could_be_examined() {
    local found code
    found=$("$hf" doctor --json --url unix:///nowhere 2>/dev/null)
    code=$?
    same code 69 $code
    same "what is found" "1 error True True" \
        "$(echo "$found" | value '"%d %s %s %s" % (len(it), it[0]["level"], "/nowhere" in it[0]["what"], it[0]["remedy"] != None)')"
}

a_holder_that_does_not_answer_is_said_to_be_so() {
    hold dead:one x 60
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    contains show "answers    no" "$("$hf" show dead:one)"
    same "its fence" None "$("$hf" show --json dead:one | value 'it["fence"]')"
    local said
    said=$("$hf" break dead:one 2>&1)
    same "code of break" 0 $?
    contains "what break says" "process $pid on $(hostname), did not answer: dead:one is free in " "$said"
    "$hf" run -n dead:one -- true
    same "code of the next one: it still stands" 1 $?
    same "what break --force says" "" "$("$hf" break --force dead:one 2>&1)"
    "$hf" run -n dead:one -- true
    same "code of the next one, at once" 0 $?
    hold alive:one x
    contains "what break --force says of a living one" "process $pid on $(hostname), was alive" "$("$hf" break --force alive:one 2>&1)"
    wait "$pid"
    same "its code" 76 $?
}

verbose_tells_what_happens_to_the_lock() {
    hold wordy x
    contains "while it is held" "wordy: held by process $pid on $(hostname)" "$("$hf" run -v -w 0.1 wordy -- true 2>&1)"
    contains "in vain" "wordy: not obtained after 0." "$("$hf" run -v -w 0.1 wordy -- true 2>&1)"
    let_go
    local said
    said=$("$hf" run --verbose wordy -- true 2>&1)
    contains "when it is free" "wordy: obtained after " "$said"
    contains "at the end" "wordy: released" "$said"
    same "without it" "" "$("$hf" run wordy -- true 2>&1)"
}

a_name_of_control_characters_cannot_harm_the_terminal() {
    hold "$(printf 'red\033[31m')" x
    contains list 'red\x1b[31m' "$("$hf" ls)"
    let_go
}

another_librarys_lock_is_shown_as_foreign() {
    cli set 'hf:{theirs}' 'redlock-0815' px 20000 >/dev/null
    contains output 'redlock-0815' "$("$hf" show theirs)"
    contains "what break says" "another library holds theirs" "$("$hf" break theirs 2>&1)"
    same "what is there still" 'redlock-0815' "$(cli get 'hf:{theirs}')"
    "$hf" break --force theirs
    same "code of break --force" 0 $?
    cli del 'hf:{theirs}' >/dev/null
}

permits_are_shown_and_broken() {
    same "what ls says of none" "" "$("$hf" ls --semaphore)"
    same "what show says of none" "gate is free" "$("$hf" show --semaphore gate)"
    "$hf" run --permits 2/3 --lease 5 --label first gate -- sh -c 'echo up >up.txt; exec sleep 1000' 2>/dev/null &
    local one=$! two
    until_true test -s up.txt
    rm -f up.txt
    "$hf" run --permits 1/3 --lease 5 --label second gate -- sh -c 'echo up >up.txt; exec sleep 1000' 2>/dev/null &
    two=$!
    until_true test -s up.txt
    rm -f up.txt
    same "locks" "" "$("$hf" ls)"
    same "lines of ls" 3 "$("$hf" ls --semaphore 'g*' | wc -l)"
    same "permits in ls" "1 2 PERMITS" "$("$hf" ls --semaphore | awk '{print $NF}' | sort | xargs)"
    same "lines of ls x*" 0 "$("$hf" ls --semaphore 'x*' | wc -l)"
    "$hf" show --semaphore gate >/dev/null
    same "code of show" 0 $?
    until_true labels 2 --semaphore gate
    local shown
    shown=$(cat heard.txt)
    same "permits in show" "1 2" "$(echo "$shown" | awk '$1 == "permits" {print $2}' | sort | xargs)"
    same "labels in show" "first second" "$(echo "$shown" | awk '$1 == "label" {print $2}' | sort | xargs)"
    same "who has how many, in JSON" "$one: 2, $two: 1" \
        "$("$hf" ls --semaphore --json | value '", ".join("%d: %d" % (i["pid"], i["permits"]) for i in sorted(it, key=lambda i: -i["permits"]))')"
    "$hf" break --semaphore gate
    same "code of break" 0 $?
    wait $one
    same "code of the first" 76 $?
    wait $two
    same "code of the second" 76 $?
    "$hf" run --permits 3/3 -w 20 gate -- true
    same "code of the next" 0 $?
    contains "what break says of none" "gate is free" "$("$hf" break --semaphore gate 2>&1)"
}

breaking_says_whether_there_was_a_holder() {
    hold broken x
    "$hf" break broken
    same code 0 $?
    wait "$pid"
    same "code of the holder" 76 $?
    until_true is_free broken
    contains message free "$("$hf" break broken 2>&1)"
    "$hf" break broken 2>/dev/null
    same code 1 $?
}

the_doctor_looks_at_the_server() {
    local said
    said=$("$hf" doctor)
    same code 0 $?
    contains findings "$(cli info server | sed -n 's/^redis_version:\([0-9.]*\).*/\1/p')" "$said"
    cli config set maxmemory 100mb maxmemory-policy allkeys-lru >/dev/null
    said=$("$hf" doctor)
    contains findings allkeys-lru "$said"
    contains remedy 'maxmemory-policy' "$said"
    cli config set maxmemory 0 maxmemory-policy noeviction >/dev/null
    contains lock "a lock was taken and given back" "$said"
    contains messages "hand-off messages arrive" "$said"
    same "lock keys afterwards" "" "$(cli keys 'hf:*doctor*')"
}

# What a server says that grants no lock: full memory, too few replicas.
the_doctor_prints_rights_and_nothing_else() {
    "$hf" doctor --acl | grep -q '^ACL SETUSER' || wrong "no rights are printed"
    for word in --json --url=bogus://x; do
        same "output with $word" "" "$("$hf" doctor --acl $word 2>said.txt)"
        "$hf" doctor --acl $word 2>/dev/null
        same "code with $word" 64 $?
        grep -q 'acl' said.txt || wrong "no word of --acl: $(<said.txt)"
    done
}

the_doctor_sees_that_no_lock_can_be_had() {
    local said trouble
    for trouble in "maxmemory 1 0" "min-replicas-to-write 1 0"; do
        set -- $trouble
        cli config set "$1" "$2" >/dev/null
        said=$("$hf" doctor)
        same "code with $1" 1 $?
        contains "$1" "error    no lock can be had" "$said"
        cli config set "$1" "$3" >/dev/null
    done
    "$hf" doctor >/dev/null
    same "code afterwards" 0 $?
}

saving_failed() { cli info persistence | grep -q rdb_last_bgsave_status:err; }
saving_works() { cli info persistence | grep -q rdb_last_bgsave_status:ok; }

# Such a server refuses PING too, and says all the same what is the matter with it.
the_doctor_knows_a_server_that_cannot_save() {
    local server said
    server=$(cli info server | tr -d '\r' | sed -n 's/^process_id://p')
    cli set something here >/dev/null
    cli config set save "3600 1" >/dev/null
    cli config set rdb-key-save-delay 10000000 >/dev/null
    cli bgsave >/dev/null
    until_true pkill -KILL -P "$server"
    until_true saving_failed
    said=$("$hf" doctor)
    same code 1 $?
    contains "what it says" "MISCONF" "$said"
    contains "the remedy" "stop-writes-on-bgsave-error" "$said"
    contains "the rest" "error    no lock can be had" "$said"
    contains "the cause" "the last background save failed" "$said"
    case $said in *overloaded*) wrong "the doctor guesses: $said" ;; esac
    cli config set save "" >/dev/null
    cli config set rdb-key-save-delay 0 >/dev/null
    cli bgsave >/dev/null
    until_true saving_works
    cli del something >/dev/null
    "$hf" doctor >/dev/null
    same "code afterwards" 0 $?
}

# It is then that an operator looks.
a_full_server_is_looked_at() {
    hold full "holds on"
    cli config set maxmemory 1 >/dev/null
    contains ls full "$("$hf" ls 2>&1)"
    contains show "fence" "$("$hf" show full 2>&1)"
    contains "show of a free one" "free" "$("$hf" show nobody 2>&1)"
    cli config set maxmemory 0 >/dev/null
    let_go
}

# Nor is it taking part.
what_cannot_be_said_of_the_queue_leaves_the_holder_shown() {
    hold queued x
    cli set 'hf:queue:{queued}:hf:{queued}' x >/dev/null
    until_true labels 1 queued # a busy machine's holder may miss one question
    "$hf" show queued >/dev/null 2>&1
    same "code of show" 0 $?
    cli del 'hf:queue:{queued}:hf:{queued}' >/dev/null
    let_go
}

who_looks_writes_no_key() {
    local word
    cli flushall >/dev/null
    for word in "ls" "ls x*" "show x" "show --json x"; do
        "$hf" $word >/dev/null 2>&1
        same "keys after $word" "" "$(cli keys '*')"
    done
}

# Looking is not configuring.
who_looks_changes_no_configuration() {
    local word
    cli config set notify-keyspace-events "" >/dev/null
    for word in "ls" "show x" "break x" "doctor"; do
        "$hf" $word >/dev/null 2>&1
        same "events after $word" "" "$(cli config get notify-keyspace-events | sed -n 2p)"
    done
}

without_a_server_all_say_69() {
    local word
    for word in "ls" "show x" "break x" "doctor"; do
        HOLDFAST_URL=unix://$FOLDER/none.sock "$hf" $word >/dev/null 2>&1
        same "code of $word" 69 $?
    done
}

the_url_may_stand_on_the_command_line() {
    HOLDFAST_URL=unix://$FOLDER/none.sock "$hf" ls --url "unix://$REDIS_SOCKET"
    same code 0 $?
}

help_is_there_for_each_command() {
    local word
    for word in run ls show break doctor; do
        contains "help $word" "usage: holdfast $word" "$("$hf" help $word)"
        contains "$word --help" "usage: holdfast $word" "$("$hf" $word --help)"
        contains overview "  $word " "$("$hf" help)"
    done
    contains version "holdfast 0." "$("$hf" --version)"
    "$hf" help nonsense >/dev/null 2>&1
    same code 64 $?
}

tell_all
