/* SPDX-License-Identifier: MIT */
/* preload.c - an LD_PRELOAD library: fails the n-th call, shortens reads and writes on sockets, lies about the time.
 * It does nothing until its control says otherwise. HFT_PRELOAD names the file with the control, which another
 * process may write. */
#include "tests/fault/preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SEEN       __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))(uintptr_t)real(#name))

struct hft_preload *hft_preload_control(void);
void hft_preload_exempt(void);

static struct hft_preload own, *control = &own;
static _Thread_local __attribute__((tls_model("initial-exec"))) bool spoiled; /* this thread's calls may be */

/* dlsym allocates before malloc is resolved: that memory comes from here and is never freed. */
static char early[65536] __attribute__((aligned(16)));
static size_t early_used;
/* volatile: dlsym is declared to call nothing of ours back. */
static _Thread_local __attribute__((tls_model("initial-exec"))) volatile bool looking;

static void *early_memory(size_t size)
{
    size = (size + 31) & ~(size_t)15;
    if (early_used + size > sizeof early)
        _exit(4);
    void *at = early + early_used;
    early_used += size;
    return at;
}

static bool is_early(const void *at)
{
    return (const char *)at >= early && (const char *)at < early + sizeof early;
}

static void *real(const char *name)
{
    bool before = looking;
    looking = true;
    void *at = dlsym(RTLD_NEXT, name);
    looking = before;
    return at;
}

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("HFT_PRELOAD");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *at = fd >= 0 ? mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (at != MAP_FAILED)
        control = at;
    if (fd >= 0)
        (void)close(fd);
    spoiled = true;
}

SEEN struct hft_preload *hft_preload_control(void)
{
    return control;
}

SEEN void hft_preload_exempt(void)
{
    spoiled = false;
}

static bool fails(unsigned kind)
{
    if ((atomic_load_explicit(&control->failing, memory_order_relaxed) & kind) == 0 || !spoiled)
        return false;
    int64_t number = atomic_fetch_add(&control->count, 1) + 1, nth = atomic_load(&control->nth);
    if (number != nth && !(atomic_load(&control->persistent) && number > nth))
        return false;
    atomic_fetch_add(&control->hits, 1);
    errno = kind == HFT_MALLOC ? ENOMEM : atomic_load(&control->os_errno);
    return true;
}

/* ---- memory ---- */

SEEN void *malloc(size_t size)
{
    static __typeof__(&malloc) next;
    if (next == NULL && looking)
        return early_memory(size);
    if (next == NULL)
        next = REAL(malloc);
    return fails(HFT_MALLOC) ? NULL : next(size);
}

SEEN void *calloc(size_t count, size_t size)
{
    static __typeof__(&calloc) next;
    if (next == NULL && looking)
        return early_memory(count * size);
    if (next == NULL)
        next = REAL(calloc);
    return fails(HFT_MALLOC) ? NULL : next(count, size);
}

SEEN void *realloc(void *at, size_t size)
{
    static __typeof__(&realloc) next;
    if (next == NULL)
        next = REAL(realloc);
    if (fails(HFT_MALLOC))
        return NULL;
    if (!is_early(at))
        return next(at, size);
    size_t left = (size_t)(early + sizeof early - (char *)at);
    void *moved = malloc(size);
    return moved != NULL ? memcpy(moved, at, size < left ? size : left) : NULL;
}

SEEN void free(void *at)
{
    static __typeof__(&free) next;
    if (is_early(at) ||
        (next == NULL && looking)) /* dlsym frees too; what it frees before there is a free is lost */
        return;
    if (next == NULL)
        next = REAL(free);
    next(at);
}

/* ---- system calls ---- */

static size_t cut(size_t size)
{
    int most = atomic_load_explicit(&control->short_io, memory_order_relaxed);
    return most > 0 && spoiled && size > (size_t)most ? (size_t)most : size;
}

SEEN ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    return fails(HFT_SEND) ? -1 : REAL(send)(fd, bytes, cut(size), flags);
}

SEEN ssize_t recv(int fd, void *bytes, size_t size, int flags)
{
    return fails(HFT_RECV) ? -1 : REAL(recv)(fd, bytes, cut(size), flags);
}

SEEN int socket(int family, int type, int protocol)
{
    return fails(HFT_SOCKET) ? -1 : REAL(socket)(family, type, protocol);
}

SEEN int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t size)
{
    return fails(HFT_CONNECT) ? -1 : REAL(connect)(fd, address, size);
}

SEEN int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return fails(HFT_POLL) ? -1 : REAL(poll)(fds, count, timeout);
}

SEEN int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    return fails(HFT_POLL) ? -1 : REAL(ppoll)(fds, count, timeout, mask);
}

SEEN int eventfd(unsigned int count, int flags)
{
    return fails(HFT_EVENTFD) ? -1 : REAL(eventfd)(count, flags);
}

struct beginning {
    void *(*run)(void *);
    void *arg;
};

/* Calls that a sanitizer makes before the thread's own function must not fail: that would end the process. */
static void *begin_thread(void *arg)
{
    struct beginning beginning = *(struct beginning *)arg;
    free(arg);
    spoiled = true;
    return beginning.run(beginning.arg);
}

SEEN int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    if (fails(HFT_THREAD))
        return EAGAIN;
    bool before = spoiled;
    spoiled = false;
    struct beginning *beginning = malloc(sizeof *beginning);
    if (beginning == NULL)
        _exit(4);
    *beginning = (struct beginning){run, arg};
    int failed = REAL(pthread_create)(thread, attributes, begin_thread, beginning);
    if (failed != 0)
        free(beginning);
    spoiled = before;
    return failed;
}

SEEN ssize_t getrandom(void *bytes, size_t size, unsigned int flags)
{
    return fails(HFT_RANDOM) ? -1 : REAL(getrandom)(bytes, size, flags);
}

SEEN int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                     struct addrinfo **found)
{
    /* A name that only this library resolves: "localhost" may mean anything, or nothing, on this machine. */
    bool numeric = hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0; /* asks nobody */
    int64_t delay = atomic_load(&control->lookup_delay_ms);
    if (delay > 0 && !numeric) {
        struct timespec length = {delay / 1000, delay % 1000 * 1000000};
        (void)nanosleep(&length, NULL);
    }
    if (!numeric && node != NULL && strcmp(node, "server.test") == 0)
        node = "127.0.0.1";
    return fails(HFT_LOOKUP) ? EAI_AGAIN : REAL(getaddrinfo)(node, service, hints, found);
}

SEEN int setsockopt(int fd, int level, int option, const void *value, socklen_t size)
{
    return fails(HFT_OPTION) ? -1 : REAL(setsockopt)(fd, level, option, value, size);
}

SEEN int getsockopt(int fd, int level, int option, void *value, socklen_t *size)
{
    return fails(HFT_OPTION) ? -1 : REAL(getsockopt)(fd, level, option, value, size);
}

SEEN void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (fails(HFT_MAP))
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, size, protection, flags, fd,
                           offset); /* malloc's first call may be this */
}

SEEN int madvise(void *at, size_t size, int advice)
{
    return fails(HFT_MAP) ? -1 : REAL(madvise)(at, size, advice);
}

SEEN int fcntl64(int fd, int command, ...);
SEEN int fcntl64(int fd, int command, ...)
{
    va_list more;
    va_start(more, command);
    void *argument = va_arg(more, void *);
    va_end(more);
    return fails(HFT_FCNTL) ? -1 : (int)syscall(SYS_fcntl, fd, command, argument);
}

/* ---- time ---- */

SEEN int clock_gettime(clockid_t clock, struct timespec *time)
{
    int64_t offset = atomic_load_explicit(&control->offset_ns, memory_order_relaxed);
    int64_t wall = atomic_load_explicit(&control->wall_offset_ns, memory_order_relaxed);
    int64_t ppm = atomic_load_explicit(&control->rate_ppm, memory_order_relaxed);
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    if (!spoiled || (offset == 0 && wall == 0 && ppm == 0))
        return result;
    int64_t now = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
    if (clock == CLOCK_REALTIME)
        now += wall;
    else
        now += (now - atomic_load(&control->since_ns)) / 1000 * ppm / 1000;
    if (clock == CLOCK_BOOTTIME) /* no other clock counts the sleep of a machine */
        now += offset;
    *time = (struct timespec){now / 1000000000, now % 1000000000};
    return result;
}
