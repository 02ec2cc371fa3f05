/* SPDX-License-Identifier: MIT */
/* run.c - holdfast run and lead: from the lock to the exit code: acquires the lease, has the command supervised,
 * releases; lead begins again when the lease was lost. */
#include "cli.h"
#include "run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LEAST_CONNECT_MS = 500, /* a server that is far away is not dead, however short the wait */
    ANSWER_MS = 200,        /* least time left for a reply: half of what connecting took, but no more than this */
    CONNECT_MS = 2000       /* the library's connect_ms, if the URL sets no other */
};

/* Signals: handlers while we wait for the lock, a signalfd from then on. */

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
static volatile sig_atomic_t caught;
static hf_cancel *_Atomic waiting_with;
static const struct command *adopting; /* process 1 gets orphans from the beginning */

/* A script that calls us goes on behind a ^C, unless it gets the signal itself, and sees that we were ended by it. Where we had lent the
 * terminal only the command has got it: then all of the job is told. Process 1 goes on, and exits with the code. */
static void end_by(int number, bool with_the_job)
{
    sigset_t only;
    if (number != SIGINT && number != SIGQUIT)
        return;
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* the command has dumped its own */
    (void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, number);
    (void)sigprocmask(SIG_UNBLOCK, &only, NULL);
    (void)kill(with_the_job ? 0 : getpid(), number);
}

static void on_signal(int signal)
{
    int saved = errno;
    hf_cancel *cancel = atomic_load(&waiting_with);
    if (cancel == NULL) { /* still connecting: nothing to give back */
        end_by(signal, false);
        _exit(128 + signal); /* process 1 has no default that ends it */
    }
    caught = signal;
    hf_cancel_fire(cancel);
    errno = saved;
}

static void on_child(int signal)
{
    int saved = errno;
    (void)signal;
    command_hear_children(adopting);
    errno = saved;
}

static void remember_signals(struct run *run)
{
    (void)sigprocmask(SIG_SETMASK, NULL, &run->before.mask);
    for (int number = 1; number < _NSIG; number++)
        (void)sigaction(number, NULL, &run->before.actions[number]);
    /* If SIGCHLD were ignored, the kernel would reap our children. */
    (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    /* Nobody may read what we say: that is no reason to leave the lock behind, or to change the exit code. The command gets it back. */
    (void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
}

static void catch_signals(const struct run *run)
{
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        if (run->before.actions[forwarded[i]].sa_handler != SIG_IGN)
            (void)sigaction(forwarded[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    adopting = &run->command;
    if (getpid() == 1 || run->stands_again) /* the orphans of a command that was ended are ours */
        (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = on_child, .sa_flags = SA_RESTART}, NULL);
}

/* False: errno. */
static bool take_signals(struct run *run)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) /* an ignored one, if blocked, would be queued */
        if (run->before.actions[forwarded[i]].sa_handler != SIG_IGN)
            (void)sigaddset(&set, forwarded[i]);
    (void)sigaddset(&set, SIGTSTP);
    (void)sigaddset(&set, SIGCONT);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTTOU); /* tcsetpgrp from the background would stop us */
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigdelset(&set, SIGTTOU);
    run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return run->signals >= 0;
}

/* Runs in the library's dispatcher thread: wakes the loop, which checks the lease itself. */
static void changed(hf_lease *lease, const hf_event *event, void *arg)
{
    const struct run *run = arg;
    (void)lease;
    (void)event;
    (void)eventfd_write(run->notice, 1);
}

/* The time of -w starts here. */
static int open_client(struct run *run)
{
    int64_t from_ms = guard_clock_ms();
    bool is_limited = run->wait_ms > 0; /* HF_FOREVER is not */
    int64_t connect_ms = run->wait_ms > LEAST_CONNECT_MS ? run->wait_ms : LEAST_CONNECT_MS;
    int code = cli_open(run->url, is_limited && connect_ms < CONNECT_MS ? connect_ms : 0, run->stands_again, &run->client);
    if (is_limited) {
        int64_t spent_ms = guard_clock_ms() - from_ms, left_ms = run->wait_ms - spent_ms;
        int64_t least_ms = spent_ms / 2 < ANSWER_MS ? spent_ms / 2 : ANSWER_MS;
        run->wait_ms = left_ms > least_ms ? left_ms : 0; /* too short for a reply: then try once */
    }
    return code;
}

/* --verbose: a line for each thing that happens to the lock. */
static void narrate(const struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void narrate(const struct run *run, const char *format, ...)
{
    char name[160], what[300];
    va_list words;
    if (!run->verbose)
        return;
    va_start(words, format);
    (void)vsnprintf(what, sizeof what, format, words);
    va_end(words);
    cli_say("%s: %s", cli_plain(run->name, name, sizeof name), what);
}

static bool narrate_holder(const hf_holder *holder, void *arg)
{
    char host[280];
    if (holder->foreign_value != NULL)
        narrate(arg, "another library holds it");
    else
        narrate(arg, "held by process %lld on %s", (long long)holder->pid, cli_plain(holder->host, host, sizeof host));
    return false;
}

static hf_status acquire(struct run *run, int64_t wait_ms, hf_cancel *cancel, hf_error *error)
{
    char label[RUN_LABEL_MOST + 1];
    run_label(run, label);
    int64_t stop_ms = run->grace_ms > 0 ? run->grace_ms : 1;
    const hf_lock_options *options =
        HF_LOCK(.shared = run->shared, .lease_ms = run->lease_ms, .wait_ms = wait_ms, .stop_ms = stop_ms, .cancel = cancel,
                .owner_label = label, .on_event = changed, .arg = run, .event_fd = true);
    if (run->permits > 0)
        return hf_semaphore_acquire(run->client, run->name, run->limit, run->permits, options, &run->lease, error);
    return hf_lock_acquire(run->client, run->name, options, &run->lease, error);
}

/* -1: the lease is ours. */
static int obtain(struct run *run)
{
    hf_error error;
    hf_cancel *cancel;
    if (hf_cancel_open(run->client, &cancel, &error) != HF_OK)
        return cli_failed(&error);
    atomic_store(&waiting_with, cancel);
    int64_t from_ms = guard_clock_ms();
    hf_status status = acquire(run, run->verbose ? 0 : run->wait_ms, cancel, &error);
    if (run->verbose && status != HF_OK && caught == 0) { /* a try gives up at trouble that a wait would outlast */
        if (status == HF_BUSY && run->permits > 0)
            narrate(run, "too few permits are left");
        else if (status == HF_BUSY)
            (void)hf_lock_info(run->client, run->name, narrate_holder, run, NULL);
        int64_t spent_ms = guard_clock_ms() - from_ms;
        if (run->wait_ms == HF_FOREVER || run->wait_ms > spent_ms)
            status = acquire(run, run->wait_ms == HF_FOREVER ? HF_FOREVER : run->wait_ms - spent_ms, cancel, &error);
    }
    double after_s = (double)(guard_clock_ms() - from_ms) / 1000;
    if (status == HF_OK)
        narrate(run, "obtained after %.3f s, fence %lld", after_s, (long long)hf_lease_fence(run->lease));
    else
        narrate(run, "not obtained after %.3f s", after_s);
    bool blocked = take_signals(run);
    atomic_store(&waiting_with, NULL);
    hf_cancel_close(cancel);
    run->ends_by = caught;
    if (caught != 0)
        return 128 + caught;
    if (status == HF_BUSY || status == HF_TIMEOUT)
        return run->conflict_code;
    if (status != HF_OK)
        return cli_failed(&error);
    return blocked ? -1 : cli_os_failed("signalfd");
}

static int command_missing(const struct run *run)
{
    int failure = run->command.failure;
    cli_say("%s: %s", run->words[0], failure == ENOENT ? "command not found" : strerror(failure));
    return failure == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

static int stopped_for(const struct run *run, const char *what, const char *why)
{
    char name[160];
    bool all = !run->refuses && !run->escapes;
    cli_say("the lease on %s %s: %s", cli_plain(run->name, name, sizeof name), what, why);
    if (!all)
        (void)fprintf(stderr, "  not all of the command was stopped\n");
    else if (!atomic_load(&run->command.board->runs))
        (void)fprintf(stderr, "  the command had not begun\n");
    else
        (void)fprintf(stderr, "  the command was stopped%s\n",
                      family_is_visible() ? "" : ", as far as can be seen: other users' processes are hidden here");
    return all ? CLI_LOST : CLI_CANNOT_STOP;
}

/* Runs the command under the lease, then releases the lease. */
static int run_command(struct run *run)
{
    run->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->timer < 0) {
        int code = cli_os_failed("cannot run the command");
        (void)hf_lease_release(run->lease, NULL);
        return code;
    }
    run_supervise(run);
    if (run->command.is_ended && !run->ending && !run->lost && !run->unguarded)
        command_allow(&run->command, INT64_MAX); /* what it has left behind stays, however long the release takes */
    bool was_lent = run->command.has_terminal;
    command_take_terminal(&run->command);
    hf_reason reason = hf_lease_reason(run->lease);
    hf_status released = hf_lease_release(run->lease, NULL);
    narrate(run, released == HF_OK        ? "released"
                 : released == HF_UNKNOWN ? "released, but the server has not confirmed it"
                                          : "lost before it was released");
    if (run->command.failure != 0)
        return command_missing(run);
    if (run->lost)
        return stopped_for(run, "was lost", hf_reason_text(run->reason));
    if (run->unguarded)
        return stopped_for(run, "was released", "the command's guard was killed");
    if (run->ending && !run->deaf)
        return stopped_for(run, "was ending", hf_reason_text(run->reason));
    if (released == HF_LOST) {
        char name[160];
        cli_say("the lease on %s was lost: %s", cli_plain(run->name, name, sizeof name),
                hf_reason_text(reason != HF_REASON_NONE ? reason : HF_REASON_EXPIRED));
        (void)fprintf(stderr, "  the command had already ended, but perhaps after the lease\n");
        return CLI_LOST;
    }
    run->ends_by = atomic_load(&run->command.board->signal);
    run->ends_job = was_lent && run->heard != run->ends_by; /* who sent it to us has not sent it to the job, or has done so */
    return run->command.code;
}

/* Guard, client, lock, command: each is gone when it returns, for the guard is forked by a process with one thread. */
static int serve(struct run *run)
{
    const struct guard_job job = {.name = run->name, .command = run->words, .keep_url = run->keep_url,
                                  .before = &run->before, .words = cli_words, .words_size = cli_words_size};
    if (!command_prepare(&run->command, &job))
        return cli_os_failed("cannot prepare for the command");
    catch_signals(run);
    int code = open_client(run);
    command_adopt(); /* not earlier: a private server that was started just now is not of the command's family */
    if (code == CLI_DONE) {
        code = run->lease_ms > 0 ? -1 : run_set_lease(run, hf_client_lease_ms(run->client));
        if (code == -1)
            code = obtain(run);
        if (code == -1)
            code = run_command(run);
        else
            (void)hf_lease_release(run->lease, NULL);
    }
    command_finish(&run->command);
    (void)hf_client_close(run->client, NULL);
    end_by(run->ends_by, run->ends_job);
    return code;
}

static int begin(struct run *run, int argc, char **argv)
{
    int code = run_parse(run, argc, argv);
    if (code != -1)
        return code;
    remember_signals(run);
    run->notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return run->notice >= 0 ? -1 : cli_os_failed("cannot prepare for the command");
}

int command_run(int argc, char **argv)
{
    struct run run;
    int code = begin(&run, argc, argv);
    return code != -1 ? code : serve(&run);
}

/* Its lease ended the command, all of it, and nobody has told us to end. */
static bool was_deposed(const struct run *run, int code)
{
    return code == CLI_LOST && !run->told_to_end && !run->unguarded && (run->lost || run->ending);
}

/* -1: the signals are as they were at our start. Else the exit code: one has come when there was no command any more that
 * it could be passed on to. It ends us, as it does while we stand. */
static int reset_signals(struct run *run)
{
    struct signalfd_siginfo info;
    int code = -1;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info)
        if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGCONT && info.ssi_signo != SIGTSTP)
            code = 128 + (int)info.ssi_signo;
    (void)close(run->signals);
    (void)close(run->timer);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        (void)sigaction(forwarded[i], &run->before.actions[forwarded[i]], NULL);
    (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    (void)sigprocmask(SIG_SETMASK, &run->before.mask, NULL);
    return code;
}

int command_lead(int argc, char **argv)
{
    struct run stand; /* -c: run.words points into this one */
    int code = begin(&stand, argc, argv);
    while (code == -1) {
        struct run run = stand;
        code = serve(&run);
        if (!was_deposed(&run, code))
            return code;
        code = reset_signals(&run);
        end_by(code - 128, false);
        while (waitpid(-1, NULL, WNOHANG) > 0) /* whom the guard has left to us */
            continue;
        if (code == -1)
            narrate(&run, "stands again");
        stand.stands_again = true;
    }
    return code;
}
