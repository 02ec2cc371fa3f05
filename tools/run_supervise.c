/* SPDX-License-Identifier: MIT */
/* run_supervise.c - the command of holdfast run, from its start to its end: ended when its lease is in danger, killed
 * when the lease is over, with the signals and the terminal passed on. */
#include "cli.h"
#include "run.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The clock is read first: a result that is too early is safe. */
static int64_t valid_until_ms(const struct run *run)
{
    int64_t now_ms = guard_clock_ms();
    return now_ms + hf_lease_remaining_ms(run->lease);
}

/* While there is a process that we may not signal, we cannot report "the command was stopped". */
static void say_refusal(struct run *run, const struct refusal *refused)
{
    char name[160];
    run->refuses = refused->count > 0;
    if (!run->refuses || run->said)
        return;
    run->said = true;
    cli_say("process %ld of the command belongs to another user (%lu) and cannot be signalled",
            (long)refused->pid, (unsigned long)refused->uid);
    (void)fprintf(stderr, "  it will keep running without the lock after the lease on %s ends\n",
                  cli_plain(run->name, name, sizeof name));
}

static void tell_to_end(struct run *run)
{
    struct refusal refused;
    run->ending = true;
    run->reason = HF_REASON_ENDING;
    run->deaf = !command_signal(&run->command, SIGTERM);
    (void)command_signal(&run->command, SIGCONT); /* a stopped process would not act on TERM */
    command_ask(&run->command, &refused);
    say_refusal(run, &refused);
}

static void kill_it(struct run *run)
{
    struct refusal refused;
    run->escapes = !command_kill(&run->command, &refused);
    say_refusal(run, &refused);
}

/* Does what the lease's state requires now, and sets the timer for the next check. */
static void mind_the_lease(struct run *run)
{
    command_allow(&run->command, valid_until_ms(run));
    int64_t left_ms = hf_lease_remaining_ms(run->lease);
    if (left_ms == 0 && !run->lost) {
        run->lost = true;
        run->reason = hf_lease_reason(run->lease);
        kill_it(run);
    } else if (left_ms > 0 && !run->ending && hf_lease_state(run->lease) == HF_LEASE_AT_RISK &&
               hf_lease_reason(run->lease) == HF_REASON_ENDING) {
        tell_to_end(run);
    }
    /* Often enough that the guard knows of each renewal long before the last end that it was told. */
    int64_t next_ms = run->lease_ms / 6;
    if (left_ms > run->grace_ms && next_ms > left_ms - run->grace_ms)
        next_ms = left_ms - run->grace_ms;
    if (left_ms <= run->grace_ms && next_ms > left_ms / 2)
        next_ms = left_ms / 2;
    next_ms = next_ms < 1 ? 1 : next_ms;
    struct itimerspec at = {.it_value = {next_ms / 1000, next_ms % 1000 * 1000000}};
    if (run->lost)
        memset(&at, 0, sizeof at);
    (void)timerfd_settime(run->timer, 0, &at, NULL);
}

/* Stops us by this signal, except in an orphaned process group, where no shell could continue us. is_jobs: the terminal would have sent
 * it to all of our job, such as the script that has called us, but they know nothing of it. */
static void stop_too(struct run *run, int number, bool is_jobs)
{
    sigset_t only, old;
    command_take_terminal(&run->command);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, number);
    (void)kill(is_jobs ? 0 : getpid(), number);
    (void)sigprocmask(SIG_UNBLOCK, &only, &old); /* stops here */
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Lets the command go on, but not without its lease. */
static void resume(struct run *run)
{
    mind_the_lease(run);
    command_lend_terminal(&run->command);
    (void)command_signal(&run->command, SIGCONT);
}

static void stopped(struct run *run, int number)
{
    if (number == SIGTTIN || number == SIGTTOU) {
        run->command.wants_terminal = true;
        command_lend_terminal(&run->command);
        if (run->command.has_terminal)
            (void)command_signal(&run->command, SIGCONT);
        else if (command_is_in_background(&run->command))
            stop_too(run, number, true); /* what continues us is SIGCONT, and that resumes the command */
    } else if (run->told_to_stop || run->command.has_terminal) {
        run->told_to_stop = false;
        stop_too(run, SIGTSTP, run->command.has_terminal);
        resume(run);
    }
}

static void hear_guard(struct run *run)
{
    int number = command_hear(&run->command);
    if (number != 0)
        stopped(run, number);
    if (run->command.socket < 0 && !run->command.is_ended) {
        run->unguarded = true;
        kill_it(run);
    }
}

static void pass_on(struct run *run, int number)
{
    if (!command_signal(&run->command, number))
        cli_say("%s cannot be passed on: the command belongs to another user", strsignal(number));
    if (number == SIGTERM || number == SIGHUP || number == SIGINT || number == SIGQUIT)
        (void)command_signal(&run->command, SIGCONT); /* a stopped process would not act on it */
}

static void hear_signals(struct run *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            command_hear_children(&run->command);
            break;
        case SIGCONT:
            resume(run);
            break;
        case SIGTSTP:
            run->told_to_stop = true;
            pass_on(run, SIGTSTP);
            break;
        default:
            run->told_to_end = run->told_to_end || info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT || info.ssi_signo == SIGQUIT;
            run->heard = (int)info.ssi_signo;
            pass_on(run, (int)info.ssi_signo);
        }
    }
}

/* There is nothing more to wait for. */
static bool is_over(const struct run *run)
{
    return run->command.is_ended || run->command.failure != 0 || run->unguarded || (run->lost && run->refuses);
}

void run_supervise(struct run *run)
{
    struct pollfd fds[] = {{.fd = run->signals, .events = POLLIN},
                           {.fd = run->timer, .events = POLLIN},
                           {.fd = run->notice, .events = POLLIN},
                           {.fd = hf_lease_event_fd(run->lease), .events = POLLIN},
                           {.fd = run->command.socket, .events = POLLIN}};
    command_start(&run->command, hf_lease_fence(run->lease), valid_until_ms(run));
    while (!is_over(run)) {
        eventfd_t events;
        mind_the_lease(run);
        if (run->lost)
            fds[3].fd = -1; /* it stays readable */
        if (is_over(run) || poll(fds, sizeof fds / sizeof *fds, -1) < 0)
            continue;
        if (fds[2].revents != 0)
            (void)eventfd_read(run->notice, &events);
        if (fds[4].revents != 0)
            hear_guard(run);
        if (fds[0].revents != 0)
            hear_signals(run);
    }
    if (run->command.is_ended && (run->ending || run->lost))
        kill_it(run); /* its processes that stayed behind */
}
