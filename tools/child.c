/* SPDX-License-Identifier: MIT */
/*
 * child.c - see child.h.
 *
 * The guard is a small process in a session of its own. It knows the command's group and until when that may
 * run, and hears from us through a socket: when that ends (we were killed) or the time is over (we were
 * stopped, or starved), it kills the group. The command itself has PR_SET_PDEATHSIG too, in case both of us
 * are killed.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct order { /* what the guard is told */
    pid_t   group; /* 0: nobody */
    int64_t until_ms;
};

int64_t child_clock_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Keeps the socket as descriptor 3 and nothing else, so that the guard holds no pipe of ours open. */
static int keep_only(int socket)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        (void)dup2(null, fd);
    if (socket != 3)
        (void)dup2(socket, 3);
    (void)close_range(4, ~0u, 0);
    return 3;
}

static void guard(int socket)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "holdfast-guard");
    socket = keep_only(socket);

    struct order order = {0, 0};
    int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    struct pollfd fds[2] = {{.fd = socket, .events = POLLIN}, {.fd = timer, .events = POLLIN}};
    for (;;) {
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[0].revents != 0) {
            if (recv(socket, &order, sizeof order, 0) != (ssize_t)sizeof order)
                break;
            struct itimerspec at = {.it_value = {order.until_ms / 1000, order.until_ms % 1000 * 1000000}};
            (void)timerfd_settime(timer, TFD_TIMER_ABSTIME, &at, NULL);
        } else if (order.group > 0 && child_clock_ms() >= order.until_ms) {
            break;
        }
    }
    if (order.group > 0)
        (void)kill(-order.group, SIGKILL);
    _exit(0);
}

bool child_prepare(struct child *child)
{
    int ends[2];
    memset(child, 0, sizeof *child);
    child->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    /* With its output in a pipe, somebody else in our job may read the terminal: then only on demand. */
    child->wants_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    child->guard = fork();
    if (child->guard == 0) {
        (void)close(ends[0]);
        guard(ends[1]);
    }
    (void)close(ends[1]);
    child->to_guard = ends[0];
    return child->guard > 0;
}

static void tell_guard(struct child *child, pid_t group, int64_t until_ms)
{
    struct order order = {group, until_ms};
    (void)send(child->to_guard, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void child_allow(struct child *child, int64_t until_ms)
{
    if (child->pid > 0)
        tell_guard(child, child->pid, until_ms);
}

/* In the new process: waits until the guard knows of it, then becomes the command. */
static void become(int socket, pid_t parent, char **command, char **environment,
                   const struct signals_before *before)
{
    char go;
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || recv(socket, &go, 1, 0) != 1)
        _exit(1);
    for (int number = 1; number < _NSIG; number++)
        (void)sigaction(number, &before->actions[number], NULL);
    (void)sigprocmask(SIG_SETMASK, &before->mask, NULL);
    (void)execvpe(command[0], command, environment);
    int failure = errno;
    (void)send(socket, &failure, sizeof failure, MSG_NOSIGNAL);
    _exit(1);
}

int child_start(struct child *child, char **command, char **environment, int64_t until_ms,
                const struct signals_before *before)
{
    int ends[2];
    pid_t parent = getpid();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return errno;
    child->pid = fork();
    if (child->pid == 0) {
        (void)close(ends[0]);
        become(ends[1], parent, command, environment, before);
    }
    int failure = child->pid < 0 ? errno : 0;
    (void)close(ends[1]);
    if (failure != 0) {
        child->pid = 0;
    } else {
        (void)setpgid(child->pid, child->pid); /* it does so too: whoever comes first */
        child_allow(child, until_ms);
        child_lend_terminal(child);
        (void)send(ends[0], "", 1, MSG_NOSIGNAL);
        /* Its end of the pair closes on exec: no bytes, no failure. */
        while (recv(ends[0], &failure, sizeof failure, 0) < 0 && errno == EINTR)
            continue;
    }
    (void)close(ends[0]);
    return failure;
}

void child_signal(struct child *child, int signal)
{
    if (child->pid > 0)
        (void)kill(-child->pid, signal);
}

int child_look(struct child *child)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        child->is_ended = true;
        child->code = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
        return 0;
    }
    memset(&info, 0, sizeof info);
    if (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0)
        return info.si_status;
    return 0;
}

void child_lend_terminal(struct child *child)
{
    if (child->terminal >= 0 && child->wants_terminal && tcgetpgrp(child->terminal) == getpgrp())
        child->has_terminal = tcsetpgrp(child->terminal, child->pid) == 0;
}

void child_take_terminal(struct child *child)
{
    if (child->has_terminal)
        (void)tcsetpgrp(child->terminal, getpgrp());
    child->has_terminal = false;
}

void child_finish(struct child *child)
{
    child_take_terminal(child);
    /* Before the command is reaped, for then its group's number may belong to others. */
    tell_guard(child, 0, 0);
    (void)close(child->to_guard);
    while (child->pid > 0 && waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    while (waitpid(child->guard, NULL, 0) < 0 && errno == EINTR)
        continue;
    child->pid = 0;
    if (child->terminal >= 0)
        (void)close(child->terminal);
}
