/* SPDX-License-Identifier: MIT */
/* run.c - holdfast run: obtain the lease, watch over the command while it lasts, answer with an exit code. */
#include "child.h"
#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { LABEL_MOST = 128 };

struct run {
    const char *url, *label, *name;
    char      **command;
    int64_t     wait_ms, lease_ms, grace_ms;
    int         conflict_code;
    hf_client  *client;
    hf_lease   *lease;
    struct child child;
    struct signals_before before;
    int  signals, timer, notice; /* signalfd, timerfd, eventfd */
    bool told_to_stop;           /* somebody sent us TSTP: stop when the command has */
    bool ending, lost;           /* the command got TERM, KILL for its lease's sake */
    hf_reason reason;            /* why, as it was then */
};

/* Options. -1: go on; else the exit code. */

static int seconds(const char *option, const char *text, int64_t least_ms, int64_t most_ms, int64_t *ms)
{
    char plain[80];
    if (cli_seconds(text, ms) && *ms >= least_ms && *ms <= most_ms)
        return -1;
    return cli_misused("run", "%s wants seconds, from %g to %g, not \"%s\"", option, (double)least_ms / 1000,
                       (double)most_ms / 1000, cli_plain(text, plain, sizeof plain));
}

static int parse_options(struct run *run, int argc, char **argv)
{
    static const struct option options[] = {
        {"nonblock", no_argument, NULL, 'n'},   {"wait", required_argument, NULL, 'w'},
        {"lease", required_argument, NULL, 'l'}, {"conflict-exit-code", required_argument, NULL, 'E'},
        {"grace", required_argument, NULL, 'g'}, {"url", required_argument, NULL, 'u'},
        {"label", required_argument, NULL, 'L'}, {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    bool nonblock = false, waits = false, help = false;
    int64_t grace_ms = -1;
    int code = -1;
    for (int said; code == -1 && (said = getopt_long(argc, argv, ":nw:E:h", options, NULL)) != -1;) {
        switch (said) {
        case 'n':
            nonblock = true;
            break;
        case 'w':
            waits = true;
            code = seconds("-w", optarg, 0, INT64_C(1000000000000), &run->wait_ms);
            break;
        case 'E':
            if (!cli_number(optarg, 255, &run->conflict_code))
                code = cli_misused("run", "-E wants an exit code, from 0 to 255, not \"%s\"", optarg);
            break;
        case 'l':
            code = seconds("--lease", optarg, 100, 86400000, &run->lease_ms);
            break;
        case 'g':
            code = seconds("--grace", optarg, 0, 43200000, &grace_ms);
            break;
        case 'u':
            run->url = optarg;
            break;
        case 'L':
            run->label = optarg;
            if (strlen(optarg) < 1 || strlen(optarg) > LABEL_MOST)
                code = cli_misused("run", "--label wants 1 to %d bytes", LABEL_MOST);
            break;
        case 'h':
            help = true;
            break;
        default:
            code = cli_bad_option("run", said, argv);
        }
    }
    if (code == -1 && help) {
        (void)cli_help("run");
        code = CLI_DONE;
    }
    if (code == -1 && nonblock && waits)
        code = cli_misused("run", "-n and -w exclude each other");
    if (code == -1 && grace_ms > run->lease_ms / 2)
        code = cli_misused("run", "--grace is more than half the lease (%g seconds)",
                           (double)run->lease_ms / 1000);
    if (nonblock)
        run->wait_ms = 0;
    if (grace_ms >= 0)
        run->grace_ms = grace_ms;
    else
        run->grace_ms = run->lease_ms < 4000 ? run->lease_ms / 2 : 2000;
    return code;
}

static int parse(struct run *run, int argc, char **argv)
{
    int ours = 0; /* words before "--", which getopt may permute; what follows is the command's business */
    while (ours < argc && strcmp(argv[ours], "--") != 0)
        ours++;
    *run = (struct run){.wait_ms = HF_FOREVER, .lease_ms = 10000, .conflict_code = CLI_NO};
    int code = parse_options(run, ours, argv);
    if (code != -1)
        return code;
    if (optind == ours)
        return cli_misused("run", "run wants the NAME of a lock");
    if (optind + 1 < ours)
        return cli_misused("run", "run wants one NAME, then -- and the command; \"%s\" is in between",
                           argv[optind + 1]);
    if (ours + 1 >= argc)
        return cli_misused("run", "run wants -- and a command after the NAME");
    run->name = argv[optind];
    run->command = argv + ours + 1;
    return -1;
}

/* Signals: handlers while we wait for the lock, a descriptor from then on. */

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
static volatile sig_atomic_t caught;
static hf_cancel *_Atomic waiting_with;

static void on_signal(int signal)
{
    int saved = errno;
    caught = signal;
    hf_cancel *cancel = atomic_load(&waiting_with);
    if (cancel != NULL)
        hf_cancel_fire(cancel);
    errno = saved;
}

static void remember_signals(struct run *run)
{
    (void)sigprocmask(SIG_SETMASK, NULL, &run->before.mask);
    for (int number = 1; number < _NSIG; number++)
        (void)sigaction(number, NULL, &run->before.actions[number]);
    /* Ignored, it would have our children reaped behind our back. */
    (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
}

static void catch_signals(const struct run *run)
{
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        if (run->before.actions[forwarded[i]].sa_handler != SIG_IGN)
            (void)sigaction(forwarded[i], &(struct sigaction){.sa_handler = on_signal}, NULL);
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

/* Runs in the library's dispatcher: wakes the loop, which looks for itself. */
static void changed(hf_lease *lease, const hf_event *event, void *arg)
{
    const struct run *run = arg;
    (void)lease;
    (void)event;
    (void)eventfd_write(run->notice, 1);
}

/* -1: the lease is ours. */
static int obtain(struct run *run)
{
    hf_error error;
    hf_cancel *cancel;
    if (hf_cancel_open(run->client, &cancel, &error) != HF_OK)
        return cli_failed(&error);
    atomic_store(&waiting_with, cancel);
    catch_signals(run);
    char label[LABEL_MOST + 1];
    (void)snprintf(label, sizeof label, "%s", run->label != NULL ? run->label : run->command[0]);
    int64_t stop_ms = run->grace_ms > 0 ? run->grace_ms : 1;
    hf_status status = hf_lock_acquire(run->client, run->name,
                                       HF_LOCK(.lease_ms = run->lease_ms, .wait_ms = run->wait_ms,
                                               .stop_ms = stop_ms, .cancel = cancel, .owner_label = label,
                                               .on_event = changed, .arg = run, .event_fd = true),
                                       &run->lease, &error);
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

/* Watching over the command. */

/* environ with the fence and the name in front of it; NULL: no memory. */
static char **environment(const struct run *run)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **copy = calloc(count + 3, sizeof *copy);
    char *fence = NULL, *name = NULL;
    if (copy == NULL || asprintf(&fence, "HOLDFAST_FENCE=%" PRId64, hf_lease_fence(run->lease)) < 0 ||
        asprintf(&name, "HOLDFAST_NAME=%s", run->name) < 0) {
        free(fence);
        free(copy);
        return NULL;
    }
    copy[0] = fence;
    copy[1] = name;
    size_t at = 2;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], "HOLDFAST_FENCE=", 15) != 0 && strncmp(environ[i], "HOLDFAST_NAME=", 14) != 0)
            copy[at++] = environ[i];
    return copy;
}

static void environment_free(char **variables)
{
    if (variables != NULL) {
        free(variables[0]);
        free(variables[1]);
    }
    free(variables);
}

/* The clock is read first: too early is safe. */
static int64_t valid_until_ms(const struct run *run)
{
    int64_t now_ms = child_clock_ms();
    return now_ms + hf_lease_remaining_ms(run->lease);
}

/* What the lease's state asks for now; when to look again. */
static void mind_the_lease(struct run *run)
{
    child_allow(&run->child, valid_until_ms(run));
    int64_t left_ms = hf_lease_remaining_ms(run->lease);
    if (left_ms == 0 && !run->lost) {
        run->lost = true;
        child_signal(&run->child, SIGKILL);
        run->reason = hf_lease_reason(run->lease);
    } else if (left_ms > 0 && !run->ending && hf_lease_state(run->lease) == HF_LEASE_AT_RISK &&
               hf_lease_reason(run->lease) == HF_REASON_ENDING) {
        run->ending = true;
        child_signal(&run->child, SIGTERM);
        child_signal(&run->child, SIGCONT); /* a stopped one would never hear of it */
        run->reason = HF_REASON_ENDING;
    }
    /* Often enough that the guard knows of each renewal long before the time that it was told last. */
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

/* Stops us, as TSTP would have without our handling, unless nobody could continue us. */
static void stop_too(struct run *run)
{
    sigset_t only, old;
    child_take_terminal(&run->child);
    (void)sigemptyset(&only);
    (void)sigaddset(&only, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)sigprocmask(SIG_UNBLOCK, &only, &old); /* here */
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
}

/* The command goes on, but not without its lease. */
static void resume(struct run *run)
{
    mind_the_lease(run);
    child_lend_terminal(&run->child);
    child_signal(&run->child, SIGCONT);
}

static void command_changed(struct run *run)
{
    int stopped_by = child_look(&run->child);
    if (stopped_by == SIGTTIN || stopped_by == SIGTTOU) {
        run->child.wants_terminal = true;
        child_lend_terminal(&run->child);
        if (run->child.has_terminal)
            child_signal(&run->child, SIGCONT);
    } else if (stopped_by != 0 && (run->told_to_stop || run->child.has_terminal)) {
        run->told_to_stop = false;
        stop_too(run);
        resume(run);
    }
}

static void hear_signals(struct run *run)
{
    struct signalfd_siginfo info;
    while (read(run->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        switch (info.ssi_signo) {
        case SIGCHLD:
            command_changed(run);
            break;
        case SIGCONT:
            resume(run);
            break;
        case SIGTSTP:
            run->told_to_stop = true;
            child_signal(&run->child, SIGTSTP);
            break;
        default:
            child_signal(&run->child, (int)info.ssi_signo);
        }
    }
}

static void supervise(struct run *run)
{
    struct pollfd fds[] = {{.fd = run->signals, .events = POLLIN},
                           {.fd = run->timer, .events = POLLIN},
                           {.fd = run->notice, .events = POLLIN},
                           {.fd = hf_lease_event_fd(run->lease), .events = POLLIN}};
    command_changed(run);
    while (!run->child.is_ended) {
        eventfd_t events;
        mind_the_lease(run);
        if (run->lost)
            fds[3].fd = -1; /* readable for ever */
        if (poll(fds, sizeof fds / sizeof *fds, -1) < 0)
            continue;
        if (fds[2].revents != 0)
            (void)eventfd_read(run->notice, &events);
        if (fds[0].revents != 0)
            hear_signals(run);
    }
    if (run->ending || run->lost)
        child_signal(&run->child, SIGKILL); /* those of its group that stayed behind */
}

static int command_missing(const struct run *run, int failure)
{
    cli_say("%s: %s", run->command[0], failure == ENOENT ? "command not found" : strerror(failure));
    return failure == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

static int lost(const struct run *run, const char *then)
{
    char name[160];
    cli_say("the lease on %s %s: %s", cli_plain(run->name, name, sizeof name),
            run->lost ? "was lost" : "was ending", hf_reason_text(run->reason));
    (void)fprintf(stderr, "  %s\n", then);
    return CLI_LOST;
}

/* Obtained: run it. Releases the lease. */
static int run_command(struct run *run)
{
    char **variables = environment(run);
    run->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (variables == NULL || run->timer < 0) {
        int code = cli_os_failed("cannot run the command");
        environment_free(variables);
        (void)hf_lease_release(run->lease, NULL);
        return code;
    }
    int failure = child_start(&run->child, run->command, variables, valid_until_ms(run), &run->before);
    environment_free(variables);
    if (failure == 0) {
        supervise(run);
        child_take_terminal(&run->child);
    }
    hf_reason reason = hf_lease_reason(run->lease);
    hf_status released = hf_lease_release(run->lease, NULL);
    if (failure != 0)
        return command_missing(run, failure);
    if (run->ending || run->lost)
        return lost(run, "the command was stopped");
    if (released == HF_LOST) {
        run->lost = true;
        run->reason = reason != HF_REASON_NONE ? reason : HF_REASON_EXPIRED;
        return lost(run, "the command had ended by itself, but perhaps too late");
    }
    return run->child.code;
}

int command_run(int argc, char **argv)
{
    struct run run;
    int code = parse(&run, argc, argv);
    if (code != -1)
        return code;
    remember_signals(&run);
    run.notice = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (run.notice < 0 || !child_prepare(&run.child))
        return cli_os_failed("cannot prepare for the command");
    code = cli_open(run.url, &run.client);
    if (code == CLI_DONE) {
        code = obtain(&run);
        if (code == -1)
            code = run_command(&run);
        else
            (void)hf_lease_release(run.lease, NULL);
    }
    child_finish(&run.child);
    (void)hf_client_close(run.client, NULL);
    return code;
}
