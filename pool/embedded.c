/* SPDX-License-Identifier: MIT */
/* embedded.c - the private redis-server of one user: which process starts it, which may use it, when it ends.
 *
 * Processes coordinate only by resources that the kernel takes back from a process however it ends. The server inherits
 *   the folder    flocked: one server per folder, and systemd-tmpfiles leaves a locked folder alone
 *   the name      a bound socket in the abstract namespace: one server per network namespace, even after a cleaner of
 *                 temporary files has removed the folder of the running server
 *   `members`     the reading end of a FIFO. Each process that uses the server has the writing end open. When the last
 *                 one has closed it, the kernel kills the server (SIGIO made SIGKILL), which has nothing to save
 * A joining process opens the FIFO before it sends PING: a server that answers after that stays.
 */
#include "pool/embedded.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "pool/embedded_server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PLACES_MOST 3
#define SOCKET_NAME "/redis.sock"
#define FOLDER_MOST (sizeof((struct sockaddr_un *)0)->sun_path - sizeof SOCKET_NAME)

struct hfi_embedded {
    int member_fd; /* the FIFO, open for writing */
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
};

struct places { /* folders in which this user's server may be; a new one is started in the first */
    char folders[PLACES_MOST][FOLDER_MOST + 1];
    int count;
};

/* What a search for the server has found. */
enum finding { NONE, NO_FOLDER, NO_SOCKET, DEAF, ENDED };

/* A redis-server announces neither its start nor its end: poll for them, with short steps that grow. False: until_ns
 * has passed. */
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

static void drop(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

/* ---- the folder ---- */

static void add_place(struct places *places, const char *base, const char *own, const char *name)
{
    char *folder = places->folders[places->count];
    int size = snprintf(folder, sizeof places->folders[0], "%s%s%s%s", base, own, name != NULL ? "-" : "",
                        name != NULL ? name : "");
    if (size < (int)sizeof places->folders[0] && (places->count == 0 || strcmp(folder, places->folders[0]) != 0))
        places->count++;
}

/* A folder for files that live as long as a login, and that only this user can enter. A path with a control character
 * is refused, because messages show the path. */
static bool is_runtime_folder(const char *path)
{
    struct stat facts;
    if (path == NULL || path[0] != '/')
        return false;
    for (const char *at = path; *at != 0; at++)
        if (*at < ' ' || *at == 0x7f)
            return false;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() && (facts.st_mode & 077) == 0;
}

static void find_places(struct places *places, const char *name)
{
    char usual[48], temporary[48];
    const char *said = secure_getenv("XDG_RUNTIME_DIR");
    (void)snprintf(usual, sizeof usual, "/run/user/%lu", (unsigned long)geteuid());
    (void)snprintf(temporary, sizeof temporary, "/tmp/holdfast-%lu", (unsigned long)geteuid());
    places->count = 0;
    if (is_runtime_folder(said))
        add_place(places, said, "/holdfast", name);
    if (is_runtime_folder(usual))
        add_place(places, usual, "/holdfast", name);
    add_place(places, temporary, "", name);
}

/* Fails unless the folder is this user's alone: a process that can write there could pose as our server. With HF_OK,
 * *fd is -1 if there is no such folder. */
static hf_status open_folder(const char *folder, bool make, int *fd, hf_error *error)
{
    struct stat facts;
    const char *wrong = NULL;
    int failed = make && mkdir(folder, 0700) != 0 && errno != EEXIST ? errno : 0;
    *fd = -1;
    if (failed == 0) {
        *fd = hfi_descriptor(open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        failed = *fd < 0 ? errno : 0;
    }
    if (failed == ENOENT && !make)
        return HF_OK;
    if (is_shortage(failed))
        wrong = "cannot be opened";
    else if (failed != 0)
        wrong = failed == ELOOP || failed == ENOTDIR ? "is not a folder of ours" : "cannot be made or opened";
    else if (fstat(*fd, &facts) != 0 || facts.st_uid != geteuid())
        wrong = "belongs to another user";
    else if ((facts.st_mode & 077) != 0)
        wrong = "can be entered by other users";
    if (wrong == NULL)
        return HF_OK;
    drop(fd);
    hf_status status = is_shortage(failed) ? HF_NOMEM : HF_UNAVAILABLE;
    (void)hfi_fail(error, status, "remove it, or choose another instance: embedded:name", "%s %s", folder, wrong);
    hfi_fail_errno(error, failed);
    return status;
}

/* ---- joining ---- */

/* A connection to the socket, or -1 and errno. Never blocks: a full backlog is EAGAIN. */
static int reach(const struct hfi_embedded *share)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, share->path, sizeof address.sun_path);
    int fd = hfi_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        int failed = errno;
        drop(&fd);
        errno = failed;
    }
    return fd;
}

static bool answers(int fd, int64_t until_ns)
{
    static const char question[] = "PING\r\n";
    char reply[8] = "";
    int64_t left_ms = (until_ns - hfi_now(&hfi_boottime)) / HFI_MS;
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    return send(fd, question, sizeof question - 1, MSG_NOSIGNAL) == (ssize_t)sizeof question - 1 &&
           poll(&readable, 1, left_ms > 0 ? (int)left_ms : 0) == 1 && recv(fd, reply, sizeof reply - 1, 0) > 0 &&
           strncmp(reply, "+PONG", 5) == 0;
}

/* Fails with ENXIO if no server has the reading end open. */
static int open_members(int folder_fd)
{
    return hfi_descriptor(openat(folder_fd, "members", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
}

/* Opens the same FIFO after a cleaner has removed its name: the server that `talk` is connected to has it open. */
static int open_members_of(int talk)
{
    char path[48];
    struct stat facts;
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    if (getsockopt(talk, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid() || peer.pid <= 1)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/%d", (long)peer.pid, HFI_EMBEDDED_MEMBERS_FD);
    int fd = stat(path, &facts) == 0 && S_ISFIFO(facts.st_mode)
                 ? hfi_descriptor(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC))
                 : -1;
    return fd;
}

static bool enter(struct hfi_embedded *share, int folder_fd, int64_t until_ns)
{
    int talk = reach(share);
    if (talk < 0)
        return false;
    share->member_fd = open_members(folder_fd);
    if (share->member_fd < 0 && errno == ENOENT)
        share->member_fd = open_members_of(talk);
    bool entered = share->member_fd >= 0 && answers(talk, until_ns);
    drop(&talk);
    if (!entered)
        drop(&share->member_fd);
    return entered;
}

/* ---- starting ---- */

/* The socket is only bound, never used: the name serves as a lock. -1 and EADDRINUSE: a server has it. */
static int take_name(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "holdfast:%lu:%s", (unsigned long)geteuid(),
                        name != NULL ? name : "");
    int fd = hfi_descriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, length) != 0) {
        int failed = errno;
        drop(&fd);
        errno = failed;
    }
    return fd;
}

static hf_status fail_start(int failed, hf_error *error)
{
    hf_status status = is_shortage(failed) ? HF_NOMEM : HF_UNAVAILABLE;
    (void)hfi_fail(
        error, status, failed == ENOENT ? "install it (apt install redis-server), and have it in PATH" : NULL,
        "cannot start a redis-server of our own: %s",
        failed == ENOENT ? "neither redis-server nor valkey-server is installed" : "the system refuses");
    hfi_fail_errno(error, failed);
    return status;
}

/* We hold the folder's lock and the name, so no embedded server does. If the socket still accepts connections, it is
 * not ours to remove. */
static hf_status start_alone(struct hfi_embedded *share, struct hfi_inheritance *ours, const char *folder,
                             int64_t until_ns, enum finding *found, hf_error *error)
{
    int talk = reach(share), failed = errno;
    *found = DEAF;
    if (talk >= 0 || failed == EAGAIN) {
        drop(&talk);
        return HF_OK;
    }
    (void)unlink(share->path);
    failed = mkfifoat(ours->folder, "members", 0600) != 0 && errno != EEXIST ? errno : 0;
    if (failed == 0) {
        ours->members = hfi_descriptor(openat(ours->folder, "members", O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
        share->member_fd = open_members(ours->folder); /* first: a server without a writer would be killed */
        failed = ours->members < 0 || share->member_fd < 0 ? errno
                                                           : hfi_embedded_spawn(ours, folder, share->path, until_ns);
    }
    drop(&ours->members);
    if (failed != 0)
        drop(&share->member_fd);
    return failed != 0 ? fail_start(failed, error) : HF_OK;
}

/* Starts a server unless one runs. HF_OK and a member_fd: it is starting. HF_OK without: *found says why none was
 * started. */
static hf_status start_server(struct hfi_embedded *share, const char *folder, const char *name, int64_t until_ns,
                              enum finding *found, hf_error *error)
{
    struct hfi_inheritance ours = {-1, -1, -1, -1};
    hf_status status = open_folder(folder, true, &ours.folder, error);
    if (status != HF_OK)
        return status;
    if (flock(ours.folder, LOCK_EX | LOCK_NB) != 0) {
        *found = access(share->path, F_OK) == 0 ? DEAF : NO_SOCKET;
    } else if ((ours.name = take_name(name)) < 0) {
        *found = NO_FOLDER;
        status = errno == EADDRINUSE ? HF_OK : fail_start(errno, error);
    } else {
        status = start_alone(share, &ours, folder, until_ns, found, error);
    }
    drop(&ours.name);
    drop(&ours.folder);
    return status;
}

/* ---- join and leave ---- */

static void set_path(struct hfi_embedded *share, const char *folder)
{
    (void)snprintf(share->path, sizeof share->path, "%.*s" SOCKET_NAME, (int)FOLDER_MOST, folder);
}

static bool join_one_that_runs(struct hfi_embedded *share, const struct places *places, int64_t until_ns,
                               hf_status *status, hf_error *error)
{
    bool entered = false;
    for (int i = 0; i < places->count && !entered && *status == HF_OK; i++) {
        int folder_fd = -1;
        hf_status looked = open_folder(places->folders[i], false, &folder_fd, i == 0 ? error : NULL);
        *status = i == 0 ? looked : HF_OK; /* another folder that is not ours alone has no server of ours */
        set_path(share, places->folders[i]);
        entered = folder_fd >= 0 && enter(share, folder_fd, until_ns);
        drop(&folder_fd);
    }
    return entered;
}

static hf_status fail_silent(const struct hfi_embedded *share, const char *folder, enum finding found, hf_error *error)
{
    static const char *const words[] = {
        [NO_FOLDER] = "runs, but its folder was removed (or another user took its name)",
        [NO_SOCKET] = "runs, but its socket was removed",
        [DEAF] = "runs, but did not answer in time",
        [ENDED] = "ended as soon as it was started"};
    char hint[160];
    (void)snprintf(hint, sizeof hint, "see %s/server.log", folder);
    (void)hfi_fail(error, HF_UNAVAILABLE,
                   found == NO_FOLDER || found == NO_SOCKET
                       ? "it ends with the last program that uses it; until then use another one: embedded:name"
                       : hint,
                   "our own redis-server %s", words[found]);
    hfi_fail_server(error, share->path);
    hfi_fail_retry(error, found == ENDED ? 0 : 500);
    return HF_UNAVAILABLE;
}

/* True if a server holds the folder's lock. Once ours has been started, no other server can hold it. */
static bool is_held(const char *folder)
{
    int fd = -1;
    bool held = open_folder(folder, false, &fd, NULL) == HF_OK && fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
    drop(&fd);
    return held;
}

static hf_status join(struct hfi_embedded *share, const char *name, int64_t until_ns, hf_error *error)
{
    struct places places;
    hf_status status = HF_OK;
    enum finding found = NONE;
    int step_ms = 1, own = -1; /* own: the FIFO, from the start of our server until it answers */
    find_places(&places, name);
    const char *first = places.folders[0];
    while (!join_one_that_runs(share, &places, until_ns, &status, error) && status == HF_OK) {
        set_path(share, first);
        if (own < 0) {
            status = start_server(share, first, name, until_ns, &found, error);
            own = share->member_fd;
            share->member_fd = -1;
        } else if (!is_held(first)) {
            found = ENDED;
        }
        if (status == HF_OK && (found == ENDED || !nap(&step_ms, until_ns)))
            status = fail_silent(share, first, found, error);
    }
    drop(&own);
    return status;
}

hf_status hfi_embedded_join(const char *name, int64_t until_ns, struct hfi_embedded **out, const char **path,
                            hf_error *error)
{
    *out = NULL;
    *path = NULL;
    if (getauxval(AT_SECURE) != 0)
        return hfi_fail(error, HF_DENIED, "start a server, and say where it is: unix:///run/redis.sock",
                        "a setuid program starts no server of its own");
    struct hfi_embedded *share = calloc(1, sizeof *share);
    if (share == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for embedded:");
    share->member_fd = -1;
    hf_status status = join(share, name, until_ns, error);
    if (status != HF_OK) {
        hfi_embedded_leave(share);
        return status;
    }
    *out = share;
    *path = share->path;
    return HF_OK;
}

void hfi_embedded_leave(struct hfi_embedded *share)
{
    if (share == NULL)
        return;
    drop(&share->member_fd);
    free(share);
}
