/* SPDX-License-Identifier: MIT */
/* proxy.c - see server.h: a child process that forwards every byte half a round trip later. Bytes that arrive
 * together leave together; none waits for another. It watches by epoll, so its cost does not grow with the
 * connections, and it spins instead of sleeping while bytes are due soon: a sleep ends late by as much as a short
 * round trip. */
#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/server.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_LINKS 2048
#define CHUNK     (64 * 1024)
#define EVENTS    64
#define LATE_NS   150000

struct chunk {
    struct chunk *next;
    int64_t due_ns;
    size_t size, sent;
    char bytes[];
};

struct link { /* one direction of one connection */
    int from, to;
    struct chunk *first, **last;
};

struct proxy {
    int listener, server_port, epoll;
    int64_t delay_ns;
    struct link *links[MAX_LINKS];
    int count;
};

static void watch(const struct proxy *proxy, int fd, struct link *link)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};
    if (epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        bench_die("the proxy cannot watch a connection");
}

static void make_link(struct proxy *proxy, int from, int to)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL || proxy->count == MAX_LINKS)
        bench_die("the proxy has too many connections");
    link->from = from;
    link->to = to;
    link->last = &link->first;
    proxy->links[proxy->count++] = link;
    watch(proxy, from, link);
}

static void take_connection(struct proxy *proxy)
{
    int one = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)proxy->server_port);
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client < 0 || server < 0 || connect(server, (struct sockaddr *)&address, sizeof address) != 0)
        bench_die("the proxy cannot connect");
    (void)fcntl(server, F_SETFL, O_NONBLOCK);
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    make_link(proxy, client, server);
    make_link(proxy, server, client);
}

static void take_bytes(struct proxy *proxy, struct link *link)
{
    struct chunk *chunk = malloc(sizeof *chunk + CHUNK);
    ssize_t got = chunk != NULL ? recv(link->from, chunk->bytes, CHUNK, 0) : -1;
    if (got <= 0) {
        free(chunk);
        if (got < 0 && errno == EAGAIN)
            return;
        (void)shutdown(link->to, SHUT_WR);
        (void)epoll_ctl(proxy->epoll, EPOLL_CTL_DEL, link->from, NULL);
        return;
    }
    struct chunk *fitting = realloc(chunk, sizeof *chunk + (size_t)got);
    chunk = fitting != NULL ? fitting : chunk;
    chunk->next = NULL;
    chunk->due_ns = bench_now_ns() + proxy->delay_ns;
    chunk->size = (size_t)got;
    chunk->sent = 0;
    *link->last = chunk;
    link->last = &chunk->next;
}

/* When the next one is due, or INT64_MAX. */
static int64_t pass_on(struct link *link)
{
    while (link->first != NULL) {
        struct chunk *chunk = link->first;
        int64_t now = bench_now_ns();
        if (chunk->due_ns > now)
            return chunk->due_ns;
        ssize_t sent = send(link->to, chunk->bytes + chunk->sent, chunk->size - chunk->sent, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            return now + 100000;
        chunk->sent += sent > 0 ? (size_t)sent : chunk->size - chunk->sent; /* a closed end: thrown away */
        if (chunk->sent < chunk->size)
            continue;
        link->first = chunk->next;
        if (link->first == NULL)
            link->last = &link->first;
        free(chunk);
    }
    return INT64_MAX;
}

static int run(void *arg)
{
    struct proxy *proxy = arg;
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
    proxy->epoll = epoll_create1(EPOLL_CLOEXEC);
    watch(proxy, proxy->listener, NULL);
    for (;;) {
        struct epoll_event events[EVENTS];
        int64_t due = INT64_MAX;
        for (int i = 0; i < proxy->count; i++) {
            int64_t next = pass_on(proxy->links[i]);
            due = next < due ? next : due;
        }
        int64_t wait = due == INT64_MAX ? 1000000000 : due - bench_now_ns() - LATE_NS;
        struct timespec limit = {wait > 0 ? wait / 1000000000 : 0, wait > 0 ? wait % 1000000000 : 0};
        int ready = epoll_pwait2(proxy->epoll, events, EVENTS, &limit, NULL);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr != NULL)
                take_bytes(proxy, events[i].data.ptr);
            else
                take_connection(proxy);
        }
    }
    return 0;
}

void bench_proxy_start(struct bench_server *server, double round_trip_ms)
{
    static struct proxy proxy;
    proxy.listener = bench_listen(&server->proxy_port);
    proxy.server_port = server->port;
    proxy.delay_ns = (int64_t)(round_trip_ms * 1e6 / 2);
    proxy.count = 0;
    (void)snprintf(server->proxy_url, sizeof server->proxy_url, "redis://127.0.0.1:%d", server->proxy_port);
    server->proxy_pid = bench_fork(run, &proxy);
    (void)close(proxy.listener);
}
