/* SPDX-License-Identifier: MIT */
/* run.c - holdfast run: acquire the lease, supervise the command while it lasts, return an exit code. */
#include "cli.h"
#include "command.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LABEL_MOST = 128,
    LEAST_CONNECT_MS = 500, /* a server that is far away is not dead, however short the wait */
    ANSWER_MS = 200,        /* least time left for a reply: half of what connecting took, but no more than this */
    CONNECT_MS = 2000       /* the library's connect_ms, if the URL sets no other */
};

struct run {
    const char *url, *label, *name;
    char      **words;    /* the command's */
    char       *shell[4]; /* -c: what `words` points to */
    int64_t     wait_ms, lease_ms, grace_ms;
    int         conflict_code;
    bool        keep_url, verbose;
    hf_client  *client;
    hf_lease   *lease;
    struct command command;
    struct signals_before before;
    int  signals, timer, notice; /* signalfd, timerfd, eventfd */
    bool told_to_stop;           /* we got SIGTSTP: stop when the command has stopped */
    bool ending, lost;           /* the command got TERM, KILL because of its lease */
    bool deaf;                   /* but TERM reached no process */
    bool refuses;                /* some of it could not be killed by us */
    bool escapes;                /* the last kill gave up: there was always more of it */
    bool said;                   /* `refuses` has been reported */
    bool unguarded;              /* the guard was killed, so the command was too */
    hf_reason reason;            /* of `ending` or `lost`, as it was then */
};

/* Options. -1: go on; else the exit code. */

static int duration(const char *option, const char *text, int64_t least_ms, int64_t most_ms, int64_t *ms)
{
    char plain[80];
    if (cli_duration(text, ms) && *ms >= least_ms && *ms <= most_ms)
        return -1;
    return cli_misused("run", "%s wants seconds (or 500ms, 5m, 2h, 1d), from %g s to %g s, not \"%s\"", option,
                       (double)least_ms / 1000, (double)most_ms / 1000, cli_plain(text, plain, sizeof plain));
}

struct wishes { /* to be checked when all options are known */
    bool nonblock, waits, help;
    int64_t grace_ms;
};

/* Parses the options in front of the next word that is not an option. */
static int parse_options(struct run *run, struct wishes *wishes, int argc, char **argv)
{
    static const struct option options[] = {
        {"nonblock", no_argument, NULL, 'n'},    {"wait", required_argument, NULL, 'w'},
        {"timeout", required_argument, NULL, 'w'}, {"lease", required_argument, NULL, 'l'},
        {"conflict-exit-code", required_argument, NULL, 'E'}, {"command", required_argument, NULL, 'c'},
        {"grace", required_argument, NULL, 'g'}, {"url", required_argument, NULL, 'u'},
        {"keep-url", no_argument, NULL, 'k'},    {"label", required_argument, NULL, 'L'},
        {"verbose", no_argument, NULL, 'v'},     {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    int code = -1;
    for (int said; code == -1 && (said = getopt_long(argc, argv, "+:nw:E:c:vh", options, NULL)) != -1;) {
        switch (said) {
        case 'n':
            wishes->nonblock = true;
            break;
        case 'w':
            wishes->waits = true;
            code = duration("-w", optarg, 0, INT64_C(1000000000000), &run->wait_ms);
            break;
        case 'E':
            if (!cli_number(optarg, 255, &run->conflict_code))
                code = cli_misused("run", "-E wants an exit code, from 0 to 255, not \"%s\"", optarg);
            break;
        case 'c':
            run->shell[2] = optarg;
            break;
        case 'l':
            code = duration("--lease", optarg, 100, 86400000, &run->lease_ms);
            break;
        case 'g':
            code = duration("--grace", optarg, 0, 43200000, &wishes->grace_ms);
            break;
        case 'u':
            run->url = optarg;
            break;
        case 'k':
            run->keep_url = true;
            break;
        case 'L':
            run->label = optarg;
            if (strlen(optarg) < 1 || strlen(optarg) > LABEL_MOST)
                code = cli_misused("run", "--label wants 1 to %d bytes", LABEL_MOST);
            break;
        case 'v':
            run->verbose = true;
            break;
        case 'h':
            wishes->help = true;
            break;
        default:
            code = cli_bad_option("run", said, argv);
        }
    }
    return code;
}

static int check_options(struct run *run, const struct wishes *wishes)
{
    if (wishes->nonblock && wishes->waits)
        return cli_misused("run", "-n and -w exclude each other");
    if (wishes->grace_ms > run->lease_ms / 2)
        return cli_misused("run", "--grace is more than half the lease (%g seconds)", (double)run->lease_ms / 1000);
    if (wishes->nonblock)
        run->wait_ms = 0;
    if (wishes->grace_ms >= 0)
        run->grace_ms = wishes->grace_ms;
    else
        run->grace_ms = run->lease_ms < 4000 ? run->lease_ms / 2 : 2000;
    return -1;
}

/* Options may stand before and after the NAME; the words after them are the command's, with or without a --. */
static int parse(struct run *run, int argc, char **argv)
{
    struct wishes wishes = {.grace_ms = -1};
    *run = (struct run){.wait_ms = HF_FOREVER, .lease_ms = 10000, .conflict_code = CLI_NO,
                        .shell = {(char *)(uintptr_t)"/bin/sh", (char *)(uintptr_t)"-c"}};
    int code = parse_options(run, &wishes, argc, argv);
    char **rest = argv + optind; /* the NAME and all words after it */
    if (code == -1 && *rest != NULL) {
        int count = argc - optind;
        optind = 0; /* restarts getopt: the NAME is in the place of argv[0] */
        code = parse_options(run, &wishes, count, rest);
        run->name = *rest;
        rest += optind;
    }
    if (code == -1 && wishes.help) {
        (void)cli_help("run");
        return CLI_DONE;
    }
    if (code == -1)
        code = check_options(run, &wishes);
    if (code != -1)
        return code;
    if (run->name == NULL)
        return cli_misused("run", "run wants the NAME of a lock");
    run->words = run->shell[2] != NULL ? run->shell : rest;
    if (run->shell[2] != NULL && *rest != NULL)
        return cli_misused("run", "-c and a command exclude each other; \"%s\" is too much", *rest);
    if (run->words[0] == NULL)
        return cli_misused("run", "run wants a command after the NAME: holdfast run NAME -- command");
    return -1;
}

/* Signals: handlers while we wait for the lock, a signalfd from then on. */

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
static volatile sig_atomic_t caught;
static hf_cancel *_Atomic waiting_with;
static const struct command *adopting; /* process 1 gets orphans from the beginning */

static void on_signal(int signal)
{
    int saved = errno;
    hf_cancel *cancel = atomic_load(&waiting_with);
    if (cancel == NULL)
        _exit(128 + signal); /* still connecting: nothing to give back. Process 1 has no default that ends it */
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
}

static void catch_signals(const struct run *run)
{
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        if (run->before.actions[forwarded[i]].sa_handler != SIG_IGN)
            (void)sigaction(forwarded[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
    adopting = &run->command;
    if (getpid() == 1)
        (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = on_child, .sa_flags = SA_RESTART}, NULL);
}

/* False: errno. */
static bool take_signals(struct run *run)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
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
    int code = cli_open(run->url, is_limited && connect_ms < CONNECT_MS ? connect_ms : 0, &run->client);
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
    char label[LABEL_MOST + 1];
    (void)snprintf(label, sizeof label, "%s",
                   run->label != NULL ? run->label : run->shell[2] != NULL ? run->shell[2] : run->words[0]);
    int64_t stop_ms = run->grace_ms > 0 ? run->grace_ms : 1;
    return hf_lock_acquire(run->client, run->name,
                           HF_LOCK(.lease_ms = run->lease_ms, .wait_ms = wait_ms, .stop_ms = stop_ms, .cancel = cancel,
                                   .owner_label = label, .on_event = changed, .arg = run, .event_fd = true),
                           &run->lease, error);
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
        if (status == HF_BUSY)
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
    if (caught != 0)
        return 128 + caught;
    if (status == HF_BUSY || status == HF_TIMEOUT)
        return run->conflict_code;
    if (status != HF_OK)
        return cli_failed(&error);
    return blocked ? -1 : cli_os_failed("signalfd");
}

/* Supervising the command. */

/* The clock is read first: a result that is too early is safe. */
static int64_t valid_until_ms(const struct run *run)
{
    int64_t now_ms = guard_clock_ms();
    return now_ms + hf_lease_remaining_ms(run->lease);
}

/* With such a process we cannot report "the command was stopped". */
static void say_refusal(struct run *run, const struct refusal *refused)
{
    char name[160];
    run->refuses = refused->count > 0;
    if (!run->refuses || run->said)
        return;
    run->said = true;
    cli_say("process %ld of the command is another user's (%lu): it can neither be told to stop nor be killed",
            (long)refused->pid, (unsigned long)refused->uid);
    (void)fprintf(stderr, "  it runs on without the lock when the lease on %s ends\n",
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

/* Stops us as an unhandled TSTP would, except in an orphaned process group, where no shell could continue us. */
static void stop_too(struct run *run)
{
    sigset_t only, old;
    command_take_terminal(&run->command);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGTSTP);
    (void)raise(SIGTSTP);
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
    } else if (run->told_to_stop || run->command.has_terminal) {
        run->told_to_stop = false;
        stop_too(run);
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
        cli_say("%s cannot be passed on: the command is another user's", strsignal(number));
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
            pass_on(run, (int)info.ssi_signo);
        }
    }
}

/* There is nothing more to wait for. */
static bool is_over(const struct run *run)
{
    return run->command.is_ended || run->command.failure != 0 || run->unguarded || (run->lost && run->refuses);
}

static void supervise(struct run *run)
{
    struct pollfd fds[] = {{.fd = run->signals, .events = POLLIN},
                           {.fd = run->timer, .events = POLLIN},
                           {.fd = run->notice, .events = POLLIN},
                           {.fd = hf_lease_event_fd(run->lease), .events = POLLIN},
                           {.fd = run->command.socket, .events = POLLIN}};
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
    command_start(&run->command, hf_lease_fence(run->lease), valid_until_ms(run));
    supervise(run);
    command_take_terminal(&run->command);
    hf_reason reason = hf_lease_reason(run->lease);
    hf_status released = hf_lease_release(run->lease, NULL);
    narrate(run, released == HF_OK        ? "given back"
                 : released == HF_UNKNOWN ? "given back, but the server has not confirmed it"
                                          : "gone before it was given back");
    if (run->command.failure != 0)
        return command_missing(run);
    if (run->lost)
        return stopped_for(run, "was lost", hf_reason_text(run->reason));
    if (run->unguarded)
        return stopped_for(run, "is given back", "the command's guard was killed");
    if (run->ending && !run->deaf)
        return stopped_for(run, "was ending", hf_reason_text(run->reason));
    if (released == HF_LOST) {
        char name[160];
        cli_say("the lease on %s was lost: %s", cli_plain(run->name, name, sizeof name),
                hf_reason_text(reason != HF_REASON_NONE ? reason : HF_REASON_EXPIRED));
        (void)fprintf(stderr, "  the command had ended by itself, but perhaps too late\n");
        return CLI_LOST;
    }
    return run->command.code;
}

int command_run(int argc, char **argv)
{
    struct run run;
    int code = parse(&run, argc, argv);
    if (code != -1)
        return code;
    remember_signals(&run);
    run.notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const struct guard_job job = {.name = run.name, .command = run.words, .keep_url = run.keep_url, .before = &run.before,
                                  .words = cli_words, .words_size = cli_words_size};
    if (run.notice < 0 || !command_prepare(&run.command, &job))
        return cli_os_failed("cannot prepare for the command");
    catch_signals(&run);
    code = open_client(&run);
    command_adopt(); /* not earlier: a private server that was started just now is not of the command's family */
    if (code == CLI_DONE) {
        code = obtain(&run);
        if (code == -1)
            code = run_command(&run);
        else
            (void)hf_lease_release(run.lease, NULL);
    }
    command_finish(&run.command);
    (void)hf_client_close(run.client, NULL);
    return code;
}
