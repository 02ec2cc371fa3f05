/* SPDX-License-Identifier: MIT */
/* guard.c - see guard.h. */
#include "guard.h"
#include "cage.h"
#include "family.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEASH_FD  100 /* out of the way of shells and their scripts, if the limit of descriptors permits */
#define AGAIN_MS  100 /* until the next attempt on processes that refused to be killed, or got away */

struct guard {
    struct guard_board *board;
    const struct guard_job *job;
    pid_t pid;   /* of the command */
    int socket;  /* to holdfast */
    int signals; /* signalfd: SIGCHLD */
    int timer;
    int talk;    /* to our child, until it has exec'd the command; -1 */
    /* A pipe. The command and its children have the read end, which their process group owns (F_SETOWN): when the
     * guard is gone, its write end is closed, and the kernel kills that group. */
    int leash[2];
};

int64_t guard_clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void ring(const struct guard *guard)
{
    (void)send(guard->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- the command ---- */

/* environ with the fence and the name in front of it, and without $HOLDFAST_URL unless keep_url; NULL: no memory. */
static char **environment(const struct guard *guard)
{
    static const char *const ours[] = {"HOLDFAST_FENCE=", "HOLDFAST_NAME=", "HOLDFAST_URL="};
    size_t count = 0, at = 2;
    while (environ[count] != NULL)
        count++;
    char **copy = calloc(count + 3, sizeof *copy);
    if (copy == NULL || asprintf(&copy[0], "%s%" PRId64, ours[0], atomic_load(&guard->board->fence)) < 0 ||
        asprintf(&copy[1], "%s%s", ours[1], guard->job->name) < 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        bool is_ours = false;
        for (int j = 0; j < (guard->job->keep_url ? 2 : 3); j++)
            is_ours = is_ours || strncmp(environ[i], ours[j], strlen(ours[j])) == 0;
        if (!is_ours)
            copy[at++] = environ[i];
    }
    return copy;
}

static bool take_leash(int end)
{
    int kept = fcntl(end, F_DUPFD, LEASH_FD);
    if (kept < 0)
        kept = fcntl(end, F_DUPFD, STDERR_FILENO + 1);
    return kept >= 0 && fcntl(kept, F_SETOWN, -getpid()) == 0 && fcntl(kept, F_SETSIG, SIGKILL) == 0 &&
           fcntl(kept, F_SETFL, O_ASYNC | O_NONBLOCK) == 0;
}

/* In the child: waits until all is ready, then execs the command. */
static _Noreturn void become(const struct guard *guard, int talk, pid_t parent, char **variables)
{
    char go;
    const struct guard_job *job = guard->job;
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)close(guard->leash[1]);
    cage_enter(job->cage);
    int failure = take_leash(guard->leash[0]) ? 0 : errno;
    if (failure == 0 && (getppid() != parent || recv(talk, &go, 1, 0) != 1))
        _exit(1);
    for (int number = 1; number < _NSIG; number++)
        (void)sigaction(number, &job->before->actions[number], NULL);
    (void)sigprocmask(SIG_SETMASK, &job->before->mask, NULL);
    if (failure == 0) {
        (void)execvpe(job->command[0], job->command, variables);
        failure = errno;
    }
    (void)send(talk, &failure, sizeof failure, MSG_NOSIGNAL);
    _exit(1);
}

static void fail(struct guard *guard, int os_errno)
{
    atomic_store(&guard->board->failure, os_errno);
    ring(guard);
}

static void start(struct guard *guard)
{
    int ends[2];
    pid_t parent = getpid();
    char **variables = environment(guard);
    if (variables == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        fail(guard, errno);
        return;
    }
    guard->pid = fork();
    if (guard->pid == 0) {
        (void)close(ends[0]);
        become(guard, ends[1], parent, variables);
    }
    (void)close(ends[1]);
    guard->talk = ends[0];
    if (guard->pid < 0) {
        guard->pid = 0;
        fail(guard, errno);
        return;
    }
    (void)setpgid(guard->pid, guard->pid); /* the child does so too: either may come first */
    atomic_store(&guard->board->pid, guard->pid);
    ring(guard);
}

/* Closes all descriptors but the guard's own, so that the guard keeps no pipe of other processes open. */
static void keep_own(const struct guard *guard)
{
    int own[] = {guard->socket, guard->signals, guard->timer, guard->leash[0], guard->leash[1], guard->job->cage};
    enum { COUNT = sizeof own / sizeof own[0] };
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
        (void)dup2(null, fd);
    for (int i = 1; i < COUNT; i++)
        for (int j = i; j > 0 && own[j] < own[j - 1]; j--) {
            int swap = own[j];
            own[j] = own[j - 1];
            own[j - 1] = swap;
        }
    int from = STDERR_FILENO + 1;
    for (int i = 0; i < COUNT; i++) {
        if (from < own[i])
            (void)close_range((unsigned)from, (unsigned)own[i] - 1, 0);
        if (from <= own[i])
            from = own[i] + 1;
    }
    (void)close_range((unsigned)from, ~0U, 0);
}

/* exec closes the child's end of the pair: end of file means that it succeeded, an errno that it failed. */
static void hear_command(struct guard *guard)
{
    int failure = 0;
    ssize_t size = recv(guard->talk, &failure, sizeof failure, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    (void)close(guard->talk);
    guard->talk = -1;
    if (size == (ssize_t)sizeof failure) {
        fail(guard, failure);
        return;
    }
    if (!family_is_copy(guard->pid)) /* a child that dies closes its end too */
        atomic_store(&guard->board->runs, 1);
    keep_own(guard);
    ring(guard);
}

/* ---- supervising the command ---- */

/* The command stays unreaped, so that its group id is not reused; orphans that have come to us are reaped. */
static void hear_children(struct guard *guard)
{
    struct signalfd_siginfo ignored;
    siginfo_t info = {0};
    while (read(guard->signals, &ignored, sizeof ignored) > 0)
        continue;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 && info.si_pid != guard->pid) {
        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
        info.si_pid = 0;
    }
    if (info.si_pid != 0 && info.si_pid == guard->pid && atomic_load(&guard->board->code) < 0) {
        if (guard->talk >= 0)
            hear_command(guard); /* the result of its exec comes first */
        atomic_store(&guard->board->signal, info.si_code == CLD_EXITED ? 0 : info.si_status);
        atomic_store(&guard->board->code, info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status);
        ring(guard);
    }
    info.si_pid = 0;
    if (guard->pid > 0 && waitid(P_PID, (id_t)guard->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
        atomic_store(&guard->board->stopped, info.si_status);
        ring(guard);
    }
}

static void set_timer(const struct guard *guard, int64_t at_ms)
{
    struct itimerspec at = {.it_value = {at_ms / 1000, at_ms % 1000 * 1000000}};
    (void)timerfd_settime(guard->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

static bool kill_all(const struct guard *guard, struct refusal *refused)
{
    (void)cage_kill(guard->job->cage);
    return family_kill(getpid(), guard->pid, refused);
}

/* The time on the board counts, not the time since the last byte: the guard, too, may have been stopped. False: it is
 * over. */
static bool mind_the_time(const struct guard *guard)
{
    struct refusal refused;
    int64_t until_ms = atomic_load(&guard->board->until_ms);
    if (guard_clock_ms() < until_ms) {
        set_timer(guard, until_ms);
        return true;
    }
    if (!kill_all(guard, &refused) || refused.count > 0)
        set_timer(guard, guard_clock_ms() + AGAIN_MS);
    return false;
}

/* False: the guard is done. */
static bool hear_holdfast(struct guard *guard)
{
    char bytes[64];
    struct refusal refused;
    ssize_t size = recv(guard->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size < 0)
        return errno == EAGAIN || errno == EINTR;
    int wish = atomic_load(&guard->board->wish);
    if (size == 0 && wish != GUARD_END) {
        while (guard->pid > 0 && !kill_all(guard, &refused))
            (void)poll(NULL, 0, AGAIN_MS);
        cage_close(guard->job->cage);
        return false;
    }
    if (wish == GUARD_END) {
        (void)fcntl(guard->leash[0], F_SETFL, 0); /* processes that the command has left behind may stay */
        (void)waitpid(guard->pid, NULL, WNOHANG);
        return false;
    }
    if (wish >= GUARD_START && guard->pid == 0 && atomic_load(&guard->board->failure) == 0)
        start(guard);
    if (guard->pid > 0 && mind_the_time(guard) && wish == GUARD_GO && guard->talk >= 0)
        (void)send(guard->talk, "", 1, MSG_NOSIGNAL);
    return true;
}

/* A signal sent to holdfast by its name, its command line or its process group must not hit the guard. */
static void hide(const struct guard_job *job)
{
    static const char name[] = "hf-guard";
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, name);
    memset(job->words, 0, job->words_size);
    (void)snprintf(job->words, job->words_size, "%s", name);
}

void guard_run(int socket, struct guard_board *board, const struct guard_job *job)
{
    struct guard guard = {.board = board, .job = job, .socket = socket, .talk = -1};
    sigset_t set;
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* else waitid finds no child */
    hide(job);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans, and what leaves the command's group, stay below us */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    guard.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    guard.timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (guard.signals < 0 || guard.timer < 0 || pipe2(guard.leash, O_CLOEXEC) != 0)
        _exit(1); /* holdfast sees that, and runs no command */
    for (bool goes_on = true; goes_on;) {
        uint64_t ignored;
        struct pollfd fds[] = {{.fd = guard.socket, .events = POLLIN},
                               {.fd = guard.signals, .events = POLLIN},
                               {.fd = guard.timer, .events = POLLIN},
                               {.fd = guard.talk, .events = POLLIN}};
        if (poll(fds, sizeof fds / sizeof fds[0], -1) < 0)
            continue;
        if (fds[2].revents != 0 && read(guard.timer, &ignored, sizeof ignored) > 0)
            (void)mind_the_time(&guard);
        if (fds[3].revents != 0)
            hear_command(&guard);
        if (fds[1].revents != 0)
            hear_children(&guard);
        if (fds[0].revents != 0)
            goes_on = hear_holdfast(&guard);
    }
    _exit(0);
}
