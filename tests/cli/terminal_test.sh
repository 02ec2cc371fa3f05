#!/bin/bash
# SPDX-License-Identifier: MIT
# terminal_test.sh - holdfast run at a terminal, called by a shell or by a script: ^C, ^Z and fg do what they do to any program.
. "${BASH_SOURCE%/*}/sentences.sh"
export LC_ALL=C hf HISTFILE=/dev/null

at_terminal() { # at_terminal STEP...
    local shown
    shown=$(python3 -B "${script%/*}/terminal.py" "$@") || { wrong "$shown"; return 1; }
}

# Three turns, and a word behind them.
cat >loop.sh <<'END'
for turn in 1 2 3; do
    "$hf" run loop -- bash -c 'trap "echo on >>again.txt" CONT; echo in >>in.txt; while :; do sleep 0.1; done'
done
echo on >on.txt
END

echo '"$hf" run wait -- true; echo on >on.txt' >wait.sh
# The parent of the command is its guard, and the parent of that is holdfast.
cat >alone.sh <<'END'
"$hf" run alone -- sh -c 'ps -o ppid= -p $PPID >pid.txt; exec sleep 1000'
echo $? >on.txt
END

an_interrupt_ends_the_script_too() {
    at_terminal type 'bash loop.sh; echo over >over.txt\n' await in.txt type '\x03' type 'echo next >next.txt\n' await next.txt
    same "turns" 1 "$(wc -l <in.txt)"
    [ ! -e on.txt ] || wrong "the script went on"
    until_true is_free loop
}

an_interrupt_of_the_job_ends_its_script_too() { # holdfast lends no terminal where its output goes to a pipe
    at_terminal type 'bash loop.sh | cat\n' await in.txt type '\x03' type 'echo next >next.txt\n' await next.txt
    same "turns" 1 "$(wc -l <in.txt)"
    [ ! -e on.txt ] || wrong "the script went on"
    until_true is_free loop
}

an_interrupt_of_the_wait_ends_the_script_too() {
    local holder typist
    "$hf" run wait -- sleep 1000 &
    holder=$!
    until_true is_held wait
    at_terminal type 'bash wait.sh\n' await go.txt type '\x03' type 'echo next >next.txt\n' await next.txt &
    typist=$!
    until_true waits_for wait 1 && echo go >go.txt
    wait $typist || wrong "it did not end"
    [ ! -e on.txt ] || wrong "the script went on"
    kill $holder
    wait $holder
}
is_held() { "$hf" show "$1"; }

who_is_interrupted_alone_ends_no_script() {
    local typist
    at_terminal type 'bash alone.sh\n' await on.txt &
    typist=$!
    until_true test -s pid.txt && kill -INT $(<pid.txt)
    wait $typist || wrong "it ended"
    same code 130 "$(<on.txt)"
}

a_command_that_ends_with_130_is_not_interrupted() {
    at_terminal type 'for i in 1 2; do "$hf" run code -- sh -c "echo in >>in.txt; exit 130"; done; echo on >on.txt\n' await on.txt
    same "turns" 2 "$(wc -l <in.txt)"
}

a_stop_at_the_terminal_stops_the_script_too() {
    at_terminal type 'bash loop.sh\n' await in.txt type '\x1a' type 'jobs >jobs.txt\n' await jobs.txt \
        type 'fg\n' await again.txt type '\x03' type 'echo next >next.txt\n' await next.txt
    contains jobs Stopped "$(<jobs.txt)"
    same "turns" 1 "$(wc -l <in.txt)"
    until_true is_free loop
}

stopped_till_fg() { # stopped_till_fg COMMAND: which reads a line there into line.txt
    at_terminal type "$1 &\n" \
        type 'until jobs | grep -q Stopped; do sleep 0.02; done; jobs >jobs.txt\n' await jobs.txt \
        type 'fg\n' type 'word\n' await line.txt
    same "line" word "$(<line.txt)"
    until_true is_free read
}
echo '"$hf" run read -- sh -c "read line </dev/tty; echo \$line >line.txt"' >read.sh

a_script_that_reads_in_the_background_is_stopped_till_fg() {
    stopped_till_fg 'bash read.sh'
}

who_reads_in_the_background_is_stopped_till_fg() {
    stopped_till_fg '"$hf" run read -- sh -c "read line; echo \\$line >line.txt"'
}

tell_all
