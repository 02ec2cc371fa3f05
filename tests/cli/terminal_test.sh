#!/bin/bash
# SPDX-License-Identifier: MIT
# terminal_test.sh - holdfast run at a terminal, called by a shell or by a script: ^C, ^Z and fg do what they do to any program.
. "${BASH_SOURCE%/*}/sentences.sh"
export LC_ALL=C hf HISTFILE=/dev/null

at_terminal() { # at_terminal STEP...
    local shown
    shown=$(python3 -B "${script%/*}/terminal.py" "$@") || wrong "$shown"
}

# Three turns, and a word behind them.
cat >loop.sh <<'END'
for turn in 1 2 3; do
    "$hf" run loop -- bash -c 'trap "echo on >>again.txt" CONT; echo in >>in.txt; while :; do sleep 0.1; done'
done
echo on >on.txt
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

who_reads_in_the_background_is_stopped_till_fg() {
    at_terminal type '"$hf" run read -- sh -c "read line; echo \\$line >line.txt" &\n' \
        type 'until jobs | grep -q Stopped; do sleep 0.02; done; jobs >jobs.txt\n' await jobs.txt \
        type 'fg\n' type 'word\n' await line.txt
    same "line" word "$(<line.txt)"
    until_true is_free read
}

tell_all
