/* SPDX-License-Identifier: MIT */
/* embedded.c - the private redis-server of one user: who starts it, who may use it, who stops it.
 *
 * All agreement is by flock in a folder that only this user can enter, so the kernel takes back what a
 * crashed process held:
 *   start.lock   exclusive, for the moment of joining or leaving: one decision at a time
 *   the folder   shared by every member for as long as it lives; who can make it exclusive is the last one
 *   server.lock  exclusive, inherited by the server itself: held exactly while a server runs or is starting,
 *                even if the process that started it was killed meanwhile. So there are never two.
 */
#include "pool/embedded.h"
#include "base/clock.h"
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEAVE_MS   5000 /* for the others to finish joining or leaving */
#define OBEY_MS    2000 /* for the server to end when told; then it is killed */
#define LOCK_IN_IT 3    /* the descriptor by which the server holds server.lock */

struct hfi_embedded {
    int members_fd; /* the folder, flocked */
    char folder[96];
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
};

/* There is no flock with a deadline, and a redis-server does not say when it is ready: look again, in short
 * steps that grow. False: until_ns has passed. */
static bool nap(int *step_ms, int64_t until_ns)
{
    if (hfi_now(&hfi_boottime) >= until_ns)
        return false;
    struct timespec step = {0, *step_ms * 1000000L};
    (void)ppoll(NULL, 0, &step, NULL);
    *step_ms = *step_ms < 10 ? *step_ms * 2 : 10;
    return true;
}

static bool is_shortage(int failed)
{
    return failed == EMFILE || failed == ENFILE || failed == ENOMEM || failed == EAGAIN;
}

static bool lock(int fd, int operation, int64_t until_ns)
{
    int step_ms = 1;
    while (flock(fd, operation | LOCK_NB) != 0)
        if ((errno != EWOULDBLOCK && errno != EINTR) || !nap(&step_ms, until_ns))
            return false;
    return true;
}

static int open_lock(const struct hfi_embedded *share, const char *name)
{
    return hfi_descriptor(openat(share->members_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
}

/* -1 and errno; or the start.lock, held. */
static int open_start_lock(const struct hfi_embedded *share, int64_t until_ns)
{
    int fd = open_lock(share, "start.lock");
    if (fd >= 0 && !lock(fd, LOCK_EX, until_ns)) {
        (void)close(fd);
        errno = ETIMEDOUT;
        return -1;
    }
    return fd;
}

static bool server_exists(const struct hfi_embedded *share)
{
    int fd = open_lock(share, "server.lock");
    bool exists = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
    if (fd >= 0)
        (void)close(fd);
    return exists;
}

/* A connection to the socket, or -1. Never blocks: a full backlog is EAGAIN. */
static int reach(const struct hfi_embedded *share)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, share->path, sizeof address.sun_path);
    int fd = hfi_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool say(int fd, const char *words)
{
    return send(fd, words, strlen(words), MSG_NOSIGNAL) == (ssize_t)strlen(words);
}

static bool answers_once(int fd, int64_t until_ns)
{
    char reply[8] = "";
    int64_t left_ms = (until_ns - hfi_now(&hfi_boottime)) / HFI_MS;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    return say(fd, "PING\r\n") && poll(&readable, 1, left_ms > 0 ? (int)left_ms : 0) == 1 &&
           recv(fd, reply, sizeof reply - 1, 0) > 0 && strncmp(reply, "+PONG", 5) == 0;
}

/* Twice: the first PING may be answered in the very turn of the server's loop that obeys the SHUTDOWN of a
 * leaver who was killed before he saw it done. Before the second it is over. */
static bool answers(const struct hfi_embedded *share, int64_t until_ns)
{
    int fd = reach(share);
    bool answered = fd >= 0 && answers_once(fd, until_ns) && answers_once(fd, until_ns);
    if (fd >= 0)
        (void)close(fd);
    return answered;
}

/* Starts the program as a daemon that owns `lock_fd`; an errno. The direct child ends when the daemon is on
 * its way, so nothing of it stays in the process we live in. */
static int spawn(const struct hfi_embedded *share, const char *program, int lock_fd)
{
    char log[128], pid_file[128];
    (void)snprintf(log, sizeof log, "%s/server.log", share->folder);
    (void)snprintf(pid_file, sizeof pid_file, "%s/server.pid", share->folder);
    const char *const arguments[] = {program,
                                     "--port",
                                     "0",
                                     "--unixsocket",
                                     share->path,
                                     "--unixsocketperm",
                                     "700",
                                     "--daemonize",
                                     "yes",
                                     "--save",
                                     "",
                                     "--appendonly",
                                     "no",
                                     "--maxmemory-policy",
                                     "noeviction",
                                     "--dir",
                                     share->folder,
                                     "--logfile",
                                     log,
                                     "--pidfile",
                                     pid_file,
                                     "--loglevel",
                                     "warning",
                                     NULL};
    char *const no_environment[] = {NULL};

    posix_spawn_file_actions_t files;
    posix_spawnattr_t manners;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&manners);
    /* First the lock: its own number may be one of those that the following lines replace. */
    int failed = posix_spawn_file_actions_adddup2(&files, lock_fd, LOCK_IN_IT);
    if (failed == 0)
        failed = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
    if (failed == 0)
        failed =
            posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&files, 1, 2);
    if (failed == 0)
        failed = posix_spawn_file_actions_addclosefrom_np(&files, LOCK_IN_IT + 1);
    (void)posix_spawnattr_setsigmask(&manners, &none);
    (void)posix_spawnattr_setsigdefault(&manners, &all);
    (void)posix_spawnattr_setflags(&manners, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child = -1;
    if (failed == 0)
        failed = posix_spawnp(&child, program, &files, &manners, (char *const *)(uintptr_t)arguments,
                              no_environment);
    (void)posix_spawnattr_destroy(&manners);
    (void)posix_spawn_file_actions_destroy(&files);
    while (failed == 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return failed;
}

/* Unless a server runs or is starting. start.lock is held, so nobody but a server can have server.lock. */
static hf_status start_server(const struct hfi_embedded *share, bool *started, hf_error *error)
{
    int lock_fd = open_lock(share, "server.lock");
    if (lock_fd < 0 || flock(lock_fd, LOCK_EX | LOCK_NB) != 0) {
        if (lock_fd >= 0)
            (void)close(lock_fd);
        return HF_OK;
    }
    (void)unlink(share->path);
    int failed = spawn(share, "redis-server", lock_fd);
    if (failed == ENOENT)
        failed = spawn(share, "valkey-server", lock_fd);
    (void)close(lock_fd);
    *started = failed == 0;
    if (failed == 0)
        return HF_OK;
    hf_status status = is_shortage(failed) ? HF_NOMEM : HF_UNAVAILABLE;
    (void)hfi_fail(
        error, status, failed == ENOENT ? "install it (apt install redis-server), and have it in PATH" : NULL,
        "cannot start a redis-server of our own: %s",
        failed == ENOENT ? "neither redis-server nor valkey-server is installed" : "the system refuses");
    hfi_fail_errno(error, failed);
    return status;
}

/* A server that goes while we wait was stopped by somebody who was killed doing so: then we start one. */
static hf_status have_server(const struct hfi_embedded *share, int64_t until_ns, hf_error *error)
{
    char hint[160];
    int step_ms = 1;
    bool started = false, exists = true;
    do {
        hf_status status = started ? HF_OK : start_server(share, &started, error);
        if (status != HF_OK)
            return status;
        if (answers(share, until_ns))
            return HF_OK;
        exists = server_exists(share);
    } while ((exists || !started) && nap(&step_ms, until_ns));
    (void)snprintf(hint, sizeof hint, "see %s/server.log", share->folder);
    (void)hfi_fail(error, HF_UNAVAILABLE, hint, "our own redis-server %s",
                   exists ? "runs, but did not answer in time" : "ended as soon as it was started");
    hfi_fail_server(error, share->path);
    hfi_fail_retry(error, exists ? 500 : 0);
    return HF_UNAVAILABLE;
}

/* The folder is ours alone, or nothing is done: whoever can write there could be our server. */
static hf_status open_folder(struct hfi_embedded *share, hf_error *error)
{
    struct stat facts;
    const char *wrong = NULL;
    int made = mkdir(share->folder, 0700), failed = made != 0 && errno != EEXIST ? errno : 0;
    if (failed == 0) {
        share->members_fd = hfi_descriptor(open(share->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        failed = share->members_fd < 0 ? errno : 0;
    }
    if (is_shortage(failed))
        wrong = "cannot be opened";
    else if (failed != 0)
        wrong = failed == ELOOP || failed == ENOTDIR ? "is not a folder of ours" : "cannot be made or opened";
    else if (fstat(share->members_fd, &facts) != 0 || facts.st_uid != geteuid())
        wrong = "belongs to another user";
    else if ((facts.st_mode & 077) != 0)
        wrong = "can be entered by other users";
    if (wrong == NULL)
        return HF_OK;
    hf_status status = is_shortage(failed) ? HF_NOMEM : HF_UNAVAILABLE;
    (void)hfi_fail(error, status, "remove it, or choose another instance: embedded:name", "%s %s",
                   share->folder, wrong);
    hfi_fail_errno(error, failed);
    return status;
}

static hf_status become_member(const struct hfi_embedded *share, int64_t until_ns, hf_error *error)
{
    int start_fd = open_start_lock(share, until_ns), failed = errno;
    if (start_fd < 0) {
        hf_status status = is_shortage(failed) ? HF_NOMEM : HF_UNAVAILABLE;
        (void)hfi_fail(error, status, NULL, "cannot lock %s/start.lock in time", share->folder);
        hfi_fail_errno(error, failed);
        return status;
    }
    hf_status status = HF_OK;
    if (!lock(share->members_fd, LOCK_SH, until_ns))
        status = hfi_fail(error, HF_UNAVAILABLE, NULL, "cannot lock %s in time", share->folder);
    if (status == HF_OK)
        status = have_server(share, until_ns, error);
    if (status != HF_OK)
        (void)flock(share->members_fd, LOCK_UN); /* while start.lock is held: nobody takes us for a member */
    (void)close(start_fd);
    return status;
}

hf_status hfi_embedded_join(const char *name, int64_t until_ns, struct hfi_embedded **out, const char **path,
                            hf_error *error)
{
    *out = NULL;
    *path = NULL;
    struct hfi_embedded *share = calloc(1, sizeof *share);
    if (share == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for embedded:");
    share->members_fd = -1;
    (void)snprintf(share->folder, sizeof share->folder, "/tmp/holdfast-%lu%s%s", (unsigned long)geteuid(),
                   name != NULL ? "-" : "", name != NULL ? name : "");
    (void)snprintf(share->path, sizeof share->path, "%s/redis.sock", share->folder);
    hf_status status = open_folder(share, error);
    if (status == HF_OK)
        status = become_member(share, until_ns, error);
    if (status != HF_OK) {
        hfi_embedded_forked(share);
        return status;
    }
    *out = share;
    *path = share->path;
    return HF_OK;
}

/* Its data is worth nothing without clients, so a server that does not obey is killed: the process that
 * listens on our socket, by the kernel's word. */
static void stop_server(const struct hfi_embedded *share)
{
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    int step_ms = 1, fd = reach(share);
    if (fd < 0)
        return;
    (void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    (void)say(fd, "SHUTDOWN NOSAVE\r\n");
    int64_t until_ns = hfi_after_ms(hfi_now(&hfi_boottime), OBEY_MS);
    while (server_exists(share) && nap(&step_ms, until_ns))
        continue;
    if (server_exists(share) && peer.pid > 1 && peer.uid == geteuid()) {
        (void)kill(peer.pid, SIGKILL);
        until_ns = hfi_after_ms(hfi_now(&hfi_boottime), OBEY_MS);
        while (server_exists(share) && nap(&step_ms, until_ns))
            continue;
    }
    (void)close(fd);
}

void hfi_embedded_leave(struct hfi_embedded *share)
{
    if (share == NULL)
        return;
    int start_fd = open_start_lock(share, hfi_after_ms(hfi_now(&hfi_boottime), LEAVE_MS));
    if (start_fd >= 0 && flock(share->members_fd, LOCK_EX | LOCK_NB) == 0)
        stop_server(share);
    /* Said, not only closed: a fork child may still have the descriptor. And before the next one decides. */
    (void)flock(share->members_fd, LOCK_UN);
    if (start_fd >= 0)
        (void)close(start_fd);
    hfi_embedded_forked(share);
}

void hfi_embedded_forked(struct hfi_embedded *share)
{
    if (share == NULL)
        return;
    if (share->members_fd >= 0)
        (void)close(share->members_fd);
    free(share);
}
