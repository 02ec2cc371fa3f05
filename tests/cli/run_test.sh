#!/bin/bash
# SPDX-License-Identifier: MIT
# run_test.sh - holdfast run while all is well: codes, waiting, what the command finds, signals, bad words.
. "${BASH_SOURCE%/*}/sentences.sh"

the_exit_code_is_the_commands() {
    "$hf" run a -- sh -c 'exit 7'
    same code 7 $?
    "$hf" run a -- true
    same code 0 $?
}

a_command_ended_by_a_signal_gives_128_and_the_signal() {
    "$hf" run a -- sh -c 'kill -KILL $$'
    same code 137 $?
    "$hf" run a -- sh -c 'kill -TERM $$'
    same code 143 $?
}

unread() { # its standard error is a pipe without a reader
    python3 -c 'import os, subprocess, sys
ends = os.pipe()
os.close(ends[0])
sys.exit(subprocess.run(sys.argv[1:], stderr=ends[1]).returncode)' "$@"
}

a_code_is_the_same_if_nobody_reads_what_is_said() {
    unread "$hf" run -v a -- sh -c 'exit 3'
    same code 3 $?
    until_true is_free a
    unread "$hf" run a -- ./nowhere
    same code 127 $?
    "$hf" run a -- sh -c 'kill -PIPE $$' # what ends a command of a pipeline still ends it
    same code 141 $?
}

nothing_is_printed_on_success() {
    same output "" "$("$hf" run a -- true 2>&1)"
    same output "" "$("$hf" run -w 1.5 --lease 3 --grace 0.5 --label me a -- true 2>&1)"
}

as_many_commands_run_as_there_are_permits() {
    mkfifo go.fifo
    for i in 1 2; do
        "$hf" run --permits 1/2 p -- sh -c "echo in >in$i.txt; read line <go.fifo" &
    done
    until_true test -s in1.txt -a -s in2.txt
    "$hf" run -n --permits 1/2 p -- true
    same "code, all permits taken" 1 $?
    "$hf" run -n -p 1/3 p -- true
    same "code, a greater limit" 0 $?
    "$hf" run -n p -- true
    same "code, a lock of that name" 0 $?
    printf 'a\nb\n' >go.fifo
    wait
    "$hf" run -n --permits 2/2 p -- true
    same "code, all back" 0 $?
    for bad in 0/3 4/3 x 3 1/ /3 1/3x 1/100001; do
        "$hf" run --permits "$bad" p -- true 2>bad.txt
        same "code of --permits $bad" 64 $?
        grep -q 'N/LIMIT' bad.txt || wrong "no word of N/LIMIT: $(cat bad.txt)"
    done
    "$hf" run --shared --permits 1/3 p -- true 2>/dev/null
    same "code, shared permits" 64 $?
    "$hf" lead --permits 1/3 p -- true 2>/dev/null
    same "code, leading by permits" 64 $?
}

the_lock_is_free_afterwards() {
    "$hf" run a -- true
    until_true is_free a
    same "keys of the lock" "" "$(cli keys 'hf:{a}*')"
}

the_command_finds_name_and_growing_fences() {
    local one two
    one=$("$hf" run 'a name' -- sh -c 'echo "$HOLDFAST_NAME/$HOLDFAST_FENCE"')
    two=$(HOLDFAST_FENCE=1 HOLDFAST_NAME=no "$hf" run 'a name' -- \
        sh -c 'echo "$HOLDFAST_NAME/$HOLDFAST_FENCE"')
    same name 'a name' "${one%/*}"
    same name 'a name' "${two%/*}"
    same "digits of a fence" 19 "$(printf %s "${one#*/}" | wc -c)"
    [ "${two#*/}" -gt "${one#*/}" ] || wrong "fence ${two#*/} after ${one#*/}"
    same "number of fences" 1 "$(HOLDFAST_FENCE=1 "$hf" run a -- env | grep -c ^HOLDFAST_FENCE=)"
}

stdin_and_arguments_go_to_the_command_as_they_are() {
    same output "in -n two  words" "$(echo in | "$hf" run a -- sh -c 'echo "$(cat) $*"' sh -n 'two  words')"
    same output "--" "$("$hf" run a -- echo --)"
}

hold() { # hold NAME: in the background, until drop NAME
    mkfifo "$1.fifo"
    "$hf" run "$1" -- sh -c "echo held >$1.txt; read line <$1.fifo" &
    eval "holder_$1=$!"
    until_true test -s "$1.txt"
}

drop() {
    echo >"$1.fifo"
    eval "wait \$holder_$1"
    rm -f "$1.fifo"
}

the_command_may_stand_without_dashes_or_be_a_shell_line() {
    same output "-n two  words" "$("$hf" run a echo -n 'two  words' | sed 's/^/-n /')"
    same output "-w -- x" "$("$hf" run -w 3 a printf '%s %s %s' -w -- x)"
    same output "-- x" "$("$hf" run a --wait 3 -- echo -- x)"
    same output "3 in a" "$("$hf" run -c 'echo $((1 + 2)) in "$HOLDFAST_NAME"' a)"
    same output "3 in a" "$("$hf" run a -c 'echo $((1 + 2)) in "$HOLDFAST_NAME"')"
    "$hf" run a -c 'exit 9'
    same code 9 $?
}

durations_have_units_and_timeout_is_wait() {
    same output "" "$("$hf" run -w 500ms --lease 1m --grace 1.5s a -- true 2>&1)"
    same output "" "$("$hf" run --timeout 2h --lease 1d a -- true 2>&1)"
    hold h
    local from=$EPOCHREALTIME
    "$hf" run --timeout 0.005m h -- true
    same code 1 $?
    local us=$((${EPOCHREALTIME/./} - ${from/./}))
    [ $us -ge 300000 ] || wrong "waited $us us only"
    drop h
}

ends_within() { # ends_within LEAST MOST OPTION...: ms that the lock of such a run has left when it begins
    local left
    left=$("$hf" run "${@:3}" a -- redis-cli -s "$REDIS_SOCKET" pttl 'hf:{a}')
    [ "$left" -gt "$1" ] && [ "$left" -le "$2" ] || wrong "the lock ends in $left ms with ${*:3}"
}

a_lease_is_as_long_as_the_url_says() {
    ends_within 11000 62000 --url "$HOLDFAST_URL?lease_ms=60000"
    ends_within 1000 5400 --url "$HOLDFAST_URL?max_lease_ms=5000"
    ends_within 1000 8500 --url "$HOLDFAST_URL?lease_ms=60000" --lease 8
    ends_within 5400 10500
    misused '--grace is more than half the lease (3s)' run --url "$HOLDFAST_URL?lease_ms=3000" --grace 2 a -- true
}

the_servers_url_is_the_commands_only_when_it_is_asked_for() {
    same "number of URLs" 0 "$("$hf" run a -- env | grep -c ^HOLDFAST_URL=)"
    same url "$HOLDFAST_URL" "$("$hf" run --keep-url a -- sh -c 'echo "$HOLDFAST_URL"')"
}

what_was_closed_is_closed_for_the_command_too() {
    "$hf" run a -- bash -c 'ls /proc/$$/fd >fds.txt 2>/dev/null; for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && exit $((fd + 1)); done; exit 9' <&- >&- 2>&-
    same code 9 $?
}

an_output_that_cannot_be_written_is_74() {
    local words
    hold k
    for words in --version help "help run" ls "show k" "show nobody" doctor; do
        "$hf" $words >/dev/full 2>/dev/null
        same "code of $words" 74 $?
    done
    drop k
    "$hf" --version >&- 2>/dev/null
    same "code without an output" 74 $?
    contains message "No space left" "$("$hf" --version 2>&1 >/dev/full)"
}

a_try_on_a_held_lock_is_1_and_silent() {
    hold b
    same output "" "$("$hf" run -n b -- echo ran 2>&1)"
    "$hf" run -n b -- true
    same code 1 $?
    "$hf" run --nonblock -E 9 b -- true
    same code 9 $?
    "$hf" run -w 0 -E 0 b -- true
    same code 0 $?
    drop b
}

a_wait_ends_after_its_seconds() {
    hold c
    local from=$EPOCHREALTIME
    "$hf" run -w 0.6 c -- true
    same code 1 $?
    local us=$((${EPOCHREALTIME/./} - ${from/./}))
    [ $us -ge 600000 ] || wrong "waited $us us only"
    "$hf" run --wait .2 --conflict-exit-code 33 c -- true
    same code 33 $?
    drop c
}

a_wait_ends_while_the_server_is_silent_too() {
    local from=$EPOCHREALTIME
    kill -STOP "$REDIS_PID"
    "$hf" run --url "unix://$REDIS_SOCKET?connect_ms=20000" -w 0.5 c -- true 2>/dev/null
    same code 69 $?
    kill -CONT "$REDIS_PID"
    local us=$((${EPOCHREALTIME/./} - ${from/./}))
    [ $us -lt 20000000 ] || wrong "waited $us us, so long as connecting may take"
}

a_waiting_run_gets_the_lock_when_it_is_given_back() {
    hold d
    "$hf" run d -- sh -c 'echo second >second.txt' &
    local second=$!
    until_true waits_for d 1
    [ -e second.txt ] && wrong "two at once"
    drop d
    wait $second
    same code 0 $?
    same output second "$(cat second.txt)"
}

runs_of_one_name_never_overlap() {
    local i pids=
    for i in 1 2 3 4 5 6; do
        "$hf" run e -- sh -c 'echo in >>e.txt; sleep 0.05; echo out >>e.txt' &
        pids="$pids $!"
    done
    for i in $pids; do
        wait "$i" || wrong "one failed with $?"
    done
    same "ins and outs" "in out in out in out in out in out in out " "$(tr "\n" " " <e.txt)"
}

the_signals_of_a_daemons_life_reach_the_command() {
    local signal pid
    for signal in TERM INT HUP QUIT USR1 USR2; do
        env --default-signal=INT,QUIT "$hf" run f -- \
            bash -c "trap 'echo $signal >got.txt; exit 5' $signal; echo up >f.txt
                while :; do sleep 0.02; done" &
        pid=$!
        until_true test -s f.txt
        kill -$signal $pid
        wait "$pid"
        same "code after $signal" 5 $?
        same signal $signal "$(cat got.txt)"
        rm -f f.txt got.txt
    done
}

an_ignored_signal_stays_ignored() {
    mkfifo f.in
    (trap '' HUP && exec "$hf" run f -- sh -c 'echo up >f.txt; read line <f.in') &
    local pid=$!
    until_true test -s f.txt
    kill -HUP $pid
    : >f.in
    wait "$pid"
    same "code (of read at the end of its input)" 1 $?
}

a_signal_ends_the_wait_and_leaves_nothing() {
    hold g
    "$hf" run g -- true &
    local pid=$!
    until_true waits_for g 1
    kill -TERM "$pid"
    wait "$pid"
    same code 143 $?
    until_true waits_for g 0
    drop g
}

a_stopped_run_stops_its_command_and_both_go_on() {
    set -m # a group of its own, which may be stopped
    "$hf" run h -- bash -c 'echo $$ >h.txt; while [ ! -e go.txt ]; do sleep 0.02; done' &
    local pid=$! child
    set +m
    until_true test -s h.txt
    child=$(cat h.txt)
    kill -TSTP $pid
    until_true is_stopped "$child"
    kill -CONT $pid
    until_true is_running "$child"
    touch go.txt
    wait "$pid"
    same code 0 $?
}
is_stopped() { case $(ps -o stat= -p "$1") in T*) ;; *) return 1 ;; esac }
is_running() { case $(ps -o stat= -p "$1") in [RS]*) ;; *) return 1 ;; esac }

on_a_terminal_the_command_is_in_the_foreground() {
    script -qec "'$hf' run t -- sh -c 'ps -o pgid=,tpgid= -p \$\$ >t.txt'" /dev/null \
        </dev/null >/dev/null
    same code 0 $?
    read -r group foreground <t.txt
    same "foreground group" "$group" "$foreground"
}

a_command_that_reads_the_terminal_gets_it() {
    (until_true test -s reads.txt; echo typed; until_true test -s typed.txt) |
        timeout 20 script -qec "'$hf' run t -- sh -c 'echo up >reads.txt; read line </dev/tty; echo \$line >typed.txt' | cat" \
        /dev/null >/dev/null
    same line typed "$(cat typed.txt)"
}

a_setuid_program_takes_no_server_from_its_caller() {
    [ "$(id -u)" = 0 ] || { echo "       ($sentence needs root)"; return; }
    local said
    cp "$hf" setuid-holdfast && chmod 4755 setuid-holdfast && chmod 711 "$FOLDER"
    said=$(HOLDFAST_URL=unix://$REDIS_SOCKET setpriv --reuid=65534 --clear-groups ./setuid-holdfast ls 2>&1)
    same code 69 $?
    contains "message (of the default server)" 127.0.0.1:6379 "$said"
    mkdir -p bin && printf '#!/bin/sh\nid >%s\n' "$FOLDER/ran.txt" >bin/redis-server && chmod 755 bin bin/redis-server
    said=$(PATH=$FOLDER/bin:$PATH setpriv --reuid=65534 --clear-groups ./setuid-holdfast ls --url embedded: 2>&1)
    same code 69 $?
    contains message "a setuid program starts no server" "$said"
    [ ! -e ran.txt ] || wrong "the caller's redis-server ran: $(cat ran.txt)"
    rm -rf setuid-holdfast bin
}

no_command_is_127_and_no_program_is_126() {
    local said
    said=$("$hf" run a -- no-such-command-here 2>&1)
    same code 127 $?
    contains message no-such-command-here "$said"
    said=$("$hf" run a -- /etc/passwd 2>&1)
    same code 126 $?
    contains message /etc/passwd "$said"
    until_true is_free a
}

no_server_is_69() {
    local said
    said=$("$hf" run --url "unix://$FOLDER/none.sock" a -- true 2>&1)
    same code 69 $?
    contains message none.sock "$said"
    same "first words" holdfast: "${said%% *}"
    HOLDFAST_URL=redis://127.0.0.1:1 "$hf" run a -- true 2>/dev/null
    same code 69 $?
}

a_refused_user_is_69() {
    cli acl setuser nobody on '>secret' -@all >/dev/null
    local said
    said=$("$hf" run --url "unix://nobody:secret@$REDIS_SOCKET" a -- true 2>&1)
    same code 69 $?
    said=$("$hf" run --url "unix://nobody:open-sesame@$REDIS_SOCKET" a -- true 2>&1)
    same code 69 $?
    case $said in *sesame*) wrong "the password is shown: $said" ;; esac
}

misused() { # misused PART-OF-THE-MESSAGE WORD...
    local part=$1 said code
    shift
    said=$("$hf" "$@" 2>&1)
    code=$?
    [ $code = 64 ] || wrong "holdfast $*: code $code: $said"
    contains "message of holdfast $*" "$part" "$said"
}

nonsense_is_64_and_named() {
    misused '-w must be a duration of 0 to 1000000000s (seconds,' run -w soon a -- true
    misused '"-1"' run -w -1 a -- true
    misused '"1e3"' run -w 1e3 a -- true
    misused '"nan"' run -w nan a -- true
    misused '""' run -w '' a -- true
    misused '"."' run -w . a -- true
    misused '"99999999999999999999"' run -w 99999999999999999999 a -- true
    misused '-E must be' run -E 256 a -- true
    misused '"x"' run -E x a -- true
    misused '--lease must be a duration of 100ms to 1d (' run --lease 0.05 a -- true
    misused '--lease must be' run --lease 90000 a -- true
    misused '--grace must be a duration of 0 to 12h (' run --grace x a -- true
    misused '--grace is more than half the lease (10s)' run --grace 6 a -- true
    misused '--grace is more than half the lease (1s)' run --lease 1 --grace 0.6 a -- true
    misused '--grace is more than half the lease (1500ms)' run --lease 1.5 --grace 1 a -- true
    misused '--label must be' run --label "$(printf %0200d 1)" a -- true
    misused '--label must be' run --label '' a -- true
    misused 'the URI has no scheme' run --url '' a -- true
    HOLDFAST_URL='' misused 'the URI has no scheme' run a -- true
    misused '-n and -w' run -n -w 1 a -- true
    misused '-z' run -z a -- true
    misused '--zzz' run --zzz a -- true
    misused '-w requires a value' run a -w
    misused '"--"' run a -w -- true
    misused 'NAME' run
    misused 'NAME' run -- true
    misused '--' run a
    misused 'command' run a --
    misused '-c cannot be combined with a command' run -c true a -- true
    misused '-c requires a value' run a -c
    misused '"5x"' run -w 5x a -- true
    misused '"m"' run -w m a -- true
    misused '"-5m"' run -w -5m a -- true
    misused '\x1b[2J' run "$(printf -- '--\033[2J')" a -- true
    misused '\x0a' run -E "$(printf 'x\ny')" a -- true
    misused 'name' run '' -- true
    misused 'name' run "$(printf %0513d 1)" -- true
    misused 'gopher' run --url gopher://x a -- true
    misused 'frob' frob
    misused '--frob' --frob
    misused 'NAME' show
    misused 'NAME' break
    misused 'unexpected argument two' show one two
    misused 'x' doctor x
    misused '--zzz' ls --zzz
    misused '--url requires a value' ls --url
    "$hf" >/dev/null 2>&1
    same "code without a word" 64 $?
}

tell_all
