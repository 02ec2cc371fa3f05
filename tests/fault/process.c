/* SPDX-License-Identifier: MIT */
/* process.c - a process's life around the library: fork, exec, exit with threads inside, dlclose, a close of
 * descriptors that belong to the library. */
#include "tests/fault/fault.h"
#include "tests/support/child.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"


#include <holdfast/redis.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs `inside` in a child, started before this process has threads, and returns its exit status: 128 + number for a
 * signal, 255 for a child that still runs after limit_ms. */
static int in_child(int (*inside)(const char *url, int way), const char *url, int way, int64_t limit_ms)
{
    int status = 0;
    pid_t pid = hft_fork();
    if (pid == 0) {
        int code = inside(url, way);
        (void)fflush(NULL);
        _exit(code);
    }
    int64_t until = hft_true_ns() + limit_ms * HFT_NS_PER_MS;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (hft_true_ns() > until) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return 255;
        }
        hft_sleep_ms(1);
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            (void)fprintf(stderr, "line %d: not so: %s\n", __LINE__, #condition);                            \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

/* ---- fork ---- */

/* Duplicates all connected sockets, so that a close of the original does not hide the connection. */
static nfds_t keep_connections(struct pollfd *kept, nfds_t most)
{
    nfds_t count = 0;
    for (int fd = 3; fd < 256 && count < most; fd++) {
        struct pollfd one = {fd, POLLRDHUP, 0};
        struct sockaddr_storage peer;
        socklen_t size = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && poll(&one, 1, 0) == 0)
            kept[count++] = (struct pollfd){dup(fd), POLLRDHUP, 0};
    }
    return count;
}

static int use_in_grandchild(hf_client *client, hf_lease *lease, int way)
{
    struct redisReply *reply;
    hf_lease *other;
    hf_value *value;
    if (way % 4 == 0)
        exit(0);
    if (way % 4 == 1) {
        (void)execl("/bin/true", "true", (char *)0);
        return 1;
    }
    MUST(!hf_lease_is_valid(lease));
    MUST(hf_lease_remaining_ms(lease) == 0);
    MUST(hf_lock_acquire(client, "fork", NULL, &other, NULL) == HF_FORKED);
    MUST(hf_command(client, &reply, NULL, "PING") == HF_FORKED);
    MUST(hf_fetch_forget(client, "x", NULL) == HF_FORKED);
    (void)value;
    MUST(hf_lease_verify(lease, NULL) != HF_OK);
    hf_status status = hf_lease_release(lease, NULL);
    MUST(status == HF_FORKED || status == HF_LOST);
    if (way % 4 == 2) {
        struct pollfd parents[64];
        nfds_t count = keep_connections(parents, 64);
        (void)hf_client_close(client, NULL);
        MUST(count > 0 && poll(parents, count, 0) == 0); /* nobody has hung up on them */
    }
    hf_client *own; /* the child may have its own */
    const char *url = getenv("HFT_URL");
    MUST(hf_client_open(url, NULL, &own, NULL) == HF_OK);
    MUST(hf_lock_acquire(own, "fork", NULL, &other, NULL) == HF_BUSY);
    MUST(hf_client_close(own, NULL) == HF_OK);
    return 0;
}

static int forking(const char *url, int way)
{
    hf_client *client = hft_open(url, NULL);
    hf_lease *lease;
    int status;
    (void)setenv("HFT_URL", url, 1);
    MUST(hf_lock_acquire(client, "fork", HF_LOCK(.lease_ms = 600, .wait_ms = 3000), &lease, NULL) == HF_OK);
    pid_t pid = fork();
    if (pid == 0)
        _exit(use_in_grandchild(client, lease, way));
    MUST(waitpid(pid, &status, 0) == pid);
    MUST(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    hft_await_renewals(2, &lease, 1); /* by the parent, as if nothing had been */
    MUST(hf_lease_is_valid(lease));
    MUST(hf_lease_verify(lease, NULL) == HF_OK);
    MUST(hf_lease_release(lease, NULL) == HF_OK);
    MUST(hf_client_close(client, NULL) == HF_OK);
    return 0;
}

static void forks(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    for (int i = 0; i < run->times; i++) {
        int code = in_child(forking, hft_server_url(server), i, 10000);
        HFT_CHECK(run, code == 0, "way %d ended with %d", i % 4, code);
    }
    hft_note(run, "%d forks", run->times);
    hft_server_stop(server);
}

/* ---- the end of the process with everybody inside ---- */

struct busy {
    hf_client *client;
    int number;
};

static void *be_busy(void *arg)
{
    struct busy *me = arg;
    hf_lease *lease;
    char name[48];
    (void)snprintf(name, sizeof name, "end:%d", me->number % 10);
    for (;;) {
        if (hf_lock_acquire(me->client, name, HF_LOCK(.wait_ms = HF_FOREVER, .lease_ms = 1000), &lease,
                            NULL) != HF_OK)
            return NULL;
        hft_sleep_ms(me->number % 5);
        if (me->number % 3 == 0)
            (void)hf_lease_post_release(lease, NULL);
        else
            (void)hf_lease_release(lease, NULL);
    }
}

static struct busy crowd[64];

static void start_crowd(hf_client *client, int count)
{
    pthread_t thread;
    for (int i = 0; i < count; i++) {
        crowd[i] = (struct busy){client, i};
        if (pthread_create(&thread, NULL, be_busy, &crowd[i]) != 0)
            exit(1);
        (void)pthread_detach(thread);
    }
}

static int ending(const char *url, int way)
{
    hf_client *client = hft_open(url, NULL);
    start_crowd(client, 64);
    hft_sleep_ms(5 + way % 30);
    if (way % 3 == 0)
        exit(0);
    if (way % 3 == 1)
        quick_exit(0);
    return hf_client_close(client, NULL) == HF_OK ? 0 : 1; /* with all of them in their calls */
}

static void ends(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    for (int i = 0; i < run->times; i++) {
        int code = in_child(ending, hft_server_url(server), i, 3000);
        HFT_CHECK(run, code == 0, "%s ended with %d",
                  i % 3 == 0   ? "exit"
                  : i % 3 == 1 ? "quick_exit"
                               : "close",
                  code);
    }
    hft_note(run, "%d ends with 64 threads inside", run->times);
    hft_server_stop(server);
}

/* ---- the library goes ---- */

static int unloading(const char *url, int way)
{
    int threads = hft_running_threads(), fds = hft_open_descriptors();
    for (int i = 0; i < 1 + way % 3; i++) {
        void *library = dlopen(HFT_PRODUCT, RTLD_NOW | RTLD_LOCAL);
        MUST(library != NULL);
        union {
            void *found;
            hf_status (*call)(const char *, const hf_client_options *, hf_client **, hf_error *);
        } open = {dlsym(library, "hf_client_open")};
        union {
            void *found;
            hf_status (*call)(hf_client *, hf_error *);
        } close_it = {dlsym(library, "hf_client_close")};
        union {
            void *found;
            hf_status (*call)(hf_client *, const char *, const hf_lock_options *, hf_lease **, hf_error *);
        } acquire = {dlsym(library, "hf_lock_acquire")};
        union {
            void *found;
            hf_status (*call)(hf_lease *, hf_error *);
        } release = {dlsym(library, "hf_lease_release")};
        hf_client *client;
        hf_lease *lease;
        MUST(open.found != NULL && open.call(url, NULL, &client, NULL) == HF_OK);
        MUST(acquire.call(client, "unload", HF_LOCK(.wait_ms = 3000), &lease, NULL) == HF_OK);
        MUST(release.call(lease, NULL) == HF_OK);
        MUST(close_it.call(client, NULL) == HF_OK);
        MUST(dlclose(library) == 0);
        hft_sleep_ms(2);
    }
    MUST(hft_comes_down_to(hft_running_threads, threads));
    MUST(hft_open_descriptors() == fds);
    return 0;
}

static void unloads(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    for (int i = 0; i < run->times; i++) {
        int code = in_child(unloading, hft_server_url(server), i, 10000);
        HFT_CHECK(run, code == 0, "dlclose ended with %d", code);
    }
    hft_note(run, "%d times", run->times);
    hft_server_stop(server);
}

/* ---- descriptors ---- */

static int one_round(const char *url)
{
    hf_client *client = hft_open(url, NULL);
    hf_lease *lease;
    struct hf_conn *conn;
    MUST(hf_lock_acquire(client, "round", HF_LOCK(.lease_ms = 300, .wait_ms = 5000, .event_fd = true), &lease,
                         NULL) == HF_OK);
    MUST(hf_conn_borrow(client, 3000, &conn, NULL) == HF_OK);
    hf_conn_return(conn);
    hft_await_renewals(1, &lease, 1);
    MUST(hf_lease_is_valid(lease));
    MUST(hf_lease_release(lease, NULL) == HF_OK);
    MUST(hf_client_close(client, NULL) == HF_OK);
    return 0;
}

static int high_descriptors(const char *url, int way)
{
    struct rlimit many = {8192, 8192};
    (void)way;
    (void)setrlimit(RLIMIT_NOFILE, &many);
    int last = 0;
    while (last >= 0 && last < 1100)
        last = dup(2);
    MUST(last >= 1024); /* beyond what select() could have taken */
    return one_round(url);
}

static int closed_stdio(const char *url, int way)
{
    (void)way;
    (void)close(0);
    (void)close(1);
    (void)close(2);
    return one_round(url);
}

static void descriptors(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    for (int i = 0; i < run->times; i++) {
        int code = in_child(i % 2 == 0 ? high_descriptors : closed_stdio, hft_server_url(server), i, 10000);
        HFT_CHECK(run, code == 0, "%s ended with %d", i % 2 == 0 ? "descriptors above 1023" : "closed stdio",
                  code);
    }
    hft_note(run, "%d times", run->times);
    hft_server_stop(server);
}

/* ---- SIGPIPE kills a process that writes to a closed connection without care ---- */

static int piping(const char *url, int way)
{
    hf_client *client = hft_open(url, HF_CLIENT(.command_ms = 500));
    (void)signal(SIGPIPE, SIG_DFL);
    for (int i = 0; i < 60; i++) {
        hf_lease *lease;
        hf_status status =
            hf_lock_acquire(client, "pipe", HF_LOCK(.wait_ms = 2000, .lease_ms = 400), &lease, NULL);
        if (status == HF_OK)
            (void)(way % 2 == 0 ? hf_lease_release(lease, NULL) : hf_lease_post_release(lease, NULL));
        hft_sleep_ms(3);
    }
    (void)hf_client_close(client, NULL);
    return 0;
}

struct cutter {
    struct hft_proxy *proxy;
    _Atomic(bool) stop;
};

static void *cut_always(void *arg)
{
    struct cutter *cutter = arg;
    while (!atomic_load(&cutter->stop)) {
        hft_sleep_ms(7);
        hft_proxy_cut(cutter->proxy, false);
    }
    return NULL;
}

static void sigpipe(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct cutter cutter = {.proxy = hft_proxy_start(server)};
    pthread_t thread;
    (void)pthread_create(&thread, NULL, cut_always, &cutter);
    for (int i = 0; i < run->times; i++) {
        int code = in_child(piping, hft_proxy_url(cutter.proxy), i, 60000);
        HFT_CHECK(run, code == 0 || code == 1, "SIGPIPE: ended with %d",
                  code); /* 1: it could not even open */
    }
    atomic_store(&cutter.stop, true);
    (void)pthread_join(thread, NULL);
    hft_note(run, "%d processes under cuts", run->times);
    hft_proxy_stop(cutter.proxy);
    hft_server_stop(server);
}

const struct hft_named hft_process_faults[] = {
    {"forks", "a fork child owns nothing, does no harm, and the parent goes on", forks, 4, 100, 0},
    {"ends", "exit, quick_exit and close with 64 threads inside neither crash nor hang", ends, 9, 1000, 0},
    {"unloads", "after close the library can be unloaded: no thread, no descriptor is left", unloads, 2, 100,
     HFT_UNLOADS},
    {"descriptors", "descriptors above 1023 and closed stdio are as good as others", descriptors, 2, 20, 0},
    {"sigpipe", "no write to a closed connection raises SIGPIPE", sigpipe, 1, 20, 0},
    {.name = NULL}};
