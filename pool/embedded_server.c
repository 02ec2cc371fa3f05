/* SPDX-License-Identifier: MIT */
/* embedded_server.c - starts the process of the private redis-server: its descriptors, limits and arguments. */
#include "pool/embedded_server.h"
#include "base/clock.h"
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptor numbers in the server. Those of the name and the folder are between. */
#define MEMBERS_IN_IT HFI_EMBEDDED_MEMBERS_FD
#define REPORT_IN_IT  (MEMBERS_IN_IT + 3) /* until exec() */

static _Noreturn void tell_and_exit(int report)
{
    int failed = errno;
    (void)!write(report, &failed, sizeof failed);
    _exit(1);
}

/* In the child that becomes the server: moves the four descriptors of `ours` to their numbers, and sets up the three
 * standard streams. A server without one of them would not end with its last client. */
static void arrange(const struct hfi_inheritance *ours, const char *log)
{
    int given[] = {ours->members, ours->name, ours->folder, ours->report};
    for (int i = 0; i < 4; i++) { /* first out of the range of the final numbers */
        given[i] = fcntl(given[i], F_DUPFD_CLOEXEC, REPORT_IN_IT + 1);
        if (given[i] < 0)
            tell_and_exit(ours->report);
    }
    for (int i = 0; i < 4; i++) {
        (void)close(MEMBERS_IN_IT + i);
        (void)fcntl(given[i], i < 3 ? F_DUPFD : F_DUPFD_CLOEXEC, MEMBERS_IN_IT + i);
    }
    int null = hfi_descriptor(open("/dev/null", O_RDWR | O_CLOEXEC));
    int out = hfi_descriptor(open(log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        (void)close(fd);
        (void)fcntl(fd == STDIN_FILENO || out < 0 ? null : out, F_DUPFD, fd);
    }
}

/* Raises the soft limits to the hard ones: the starter set them for itself, not for the others that use the server. */
static void shed_limits(void)
{
    static const __rlimit_resource_t resources[] = {RLIMIT_AS, RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_NOFILE};
    for (size_t i = 0; i < sizeof resources / sizeof resources[0]; i++) {
        struct rlimit limit;
        if (getrlimit(resources[i], &limit) == 0) {
            limit.rlim_cur = limit.rlim_max;
            (void)setrlimit(resources[i], &limit);
        }
    }
    (void)setpriority(PRIO_PROCESS, 0, 0); /* fails in a process with a positive nice value, except root's */
}

/* Never returns. Runs between fork and exec of a multithreaded program: system calls only. */
static void become_server(const struct hfi_inheritance *ours, const char *folder, const char *path,
                          const char *log)
{
    const char *const arguments[] = {"redis-server", "--port", "0", "--unixsocket", path, "--unixsocketperm", "700",
                                     "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
                                     "--dir", folder, "--logfile", log, "--loglevel", "warning", NULL};
    char *const no_environment[] = {NULL};
    sigset_t none;
    /* This child still has a copy of the starter's writing end of the FIFO. If the starter has ended by the time that
     * copy is closed, SIGKILL comes to this child. */
    (void)fcntl(ours->members, F_SETOWN, getpid());
    (void)fcntl(ours->members, F_SETSIG, SIGKILL);
    (void)fcntl(ours->members, F_SETFL, O_NONBLOCK | O_ASYNC);
    shed_limits(); /* first: each descriptor is there twice for a while */
    arrange(ours, log);
    (void)close_range(REPORT_IN_IT + 1, ~0U, 0);
    for (int number = 1; number < _NSIG; number++)
        (void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execvpe("redis-server", (char *const *)(uintptr_t)arguments, no_environment);
    if (errno == ENOENT)
        (void)execvpe("valkey-server", (char *const *)(uintptr_t)arguments, no_environment);
    tell_and_exit(REPORT_IN_IT);
}

int hfi_embedded_spawn(struct hfi_inheritance *ours, const char *folder, const char *path, int64_t until_ns)
{
    char log[sizeof((struct sockaddr_un *)0)->sun_path + 16];
    int report[2], failed = 0;
    sigset_t all, before;
    (void)snprintf(log, sizeof log, "%s/server.log", folder);
    if (!hfi_descriptor_pipe(report))
        return errno;
    ours->report = report[1];
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* no signal handler of the program runs in a child */
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        child = fork();
        if (child == 0)
            become_server(ours, folder, path, log);
        failed = child < 0 ? errno : 0;
        if (failed != 0)
            (void)!write(report[1], &failed, sizeof failed);
        _exit(0);
    }
    failed = child < 0 ? errno : 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)close(report[1]);
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    /* A successful exec closes the writing end. A child that another thread forks meanwhile has a copy of it,
     * so this wait is limited. */
    int64_t left_ms = (until_ns - hfi_now(&hfi_boottime)) / HFI_MS;
    struct pollfd said = {.fd = report[0], .events = POLLIN};
    if (failed == 0 && poll(&said, 1, left_ms > 0 ? (int)left_ms : 0) == 1 &&
        read(report[0], &failed, sizeof failed) != (ssize_t)sizeof failed)
        failed = 0;
    (void)close(report[0]);
    return failed;
}
