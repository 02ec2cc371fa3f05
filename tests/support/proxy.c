/* SPDX-License-Identifier: MIT */
/* proxy.c - see proxy.h. Bytes wait in a list of chunks per direction, each with the time at which it is due. */
#include "tests/support/proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MS    INT64_C(1000000)
#define READ  16384
#define DIALS 8192

struct chunk {
    struct chunk *next;
    int64_t due_ns;
    size_t size, gone;
    char bytes[];
};

struct turn { /* what the client is owed, in the order of its requests */
    struct turn *next;
    char *answer; /* ours; NULL: the server's */
    int64_t delay_ns;
    bool last; /* the connection ends instead of this answer */
};

struct side { /* one socket, and what is to be written to it */
    int fd;
    bool ended; /* it has said its last word */
    bool lost;  /* bytes in this direction were thrown away: no later byte is delivered */
    char *held; /* bytes read from it that are no whole message yet */
    size_t held_size;
    struct chunk *first, **last;
    int64_t due_ns, drip_at_ns, delivered;
};

struct connection {
    struct connection *next;
    uint64_t number;
    enum hft_class class;
    bool silent, dead, reset;
    struct side client, server;
    struct turn *turn, **last_turn;
};

struct hft_proxy {
    char url[128], socket[108], server_socket[108];
    int listening, epoll, kick;
    pthread_t thread;
    pthread_mutex_t mutex; /* all below; the thread lets go of it only while it sleeps */
    pthread_cond_t done;
    struct hft_network network;
    hft_judge *judge;
    void *judge_arg;
    struct connection *connections;
    int count;
    uint64_t numbers;
    long spoiled;
    int64_t dials[DIALS], line_ns[2]; /* until when each way of the line is taken */
    int dial_count;
    unsigned rng;
    bool stop;
};

void hft_preload_exempt(void) __attribute__((weak)); /* of tests/fault/preload.c, where that is loaded */

static void die(const char *what)
{
    (void)fprintf(stderr, "proxy: %s: %s\n", what, strerror(errno));
    _exit(3);
}

static int64_t now_ns(void)
{
    struct timespec now; /* as the kernel has it, whatever the process is told */
    (void)syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 * MS + now.tv_nsec;
}

/* ---- messages ---- */

/* The length of a line with its end, 0: it is not whole yet. */
static size_t line(const char *bytes, size_t size)
{
    const char *end = memchr(bytes, '\n', size);
    return end != NULL ? (size_t)(end - bytes) + 1 : 0;
}

/* The length of the first whole message, 0: there is none yet. */
static size_t message(const char *bytes, size_t size)
{
    size_t used = 0;
    long owed = 1;
    while (owed > 0) {
        size_t head = line(bytes + used, size - used);
        if (head == 0)
            return 0;
        long number = strtol(bytes + used + 1, NULL, 10);
        char type = bytes[used];
        used += head;
        owed--;
        if (type == '*' && number > 0)
            owed += number;
        if (type == '$' && number >= 0)
            used += (size_t)number + 2;
        if (used > size)
            return 0;
    }
    return used;
}

static void take_words(const char *bytes, size_t size, struct hft_request *request)
{
    size_t used = line(bytes, size);
    request->words = (int)strtol(bytes + 1, NULL, 10);
    for (int i = 0; i < request->words && i < 4; i++) {
        size_t head = line(bytes + used, size - used);
        size_t length = (size_t)strtol(bytes + used + 1, NULL, 10);
        request->word[i] = bytes + used + head;
        request->size[i] = length;
        used += head + length + 2;
    }
}

static bool word_is(const struct hft_request *request, int index, const char *text)
{
    return index < request->words && request->size[index] == strlen(text) &&
           strncasecmp(request->word[index], text, request->size[index]) == 0;
}

bool hft_request_is(const struct hft_request *request, const char *command, const char *first_argument)
{
    return (command == NULL || word_is(request, 0, command)) &&
           (first_argument == NULL || word_is(request, 1, first_argument));
}

/* ---- delivering ---- */

static const struct hft_way *way_to(const struct hft_proxy *proxy, const struct connection *connection,
                                    const struct side *to)
{
    return to == &connection->client ? &proxy->network.to_client[connection->class]
                                     : &proxy->network.to_server[connection->class];
}

/* Corrupts a byte, most often among the first ones, which hold the length of the message. */
static void spoil(struct hft_proxy *proxy, char *bytes, size_t size)
{
    size_t near = size < 4 ? size : 4;
    size_t at = (size_t)rand_r(&proxy->rng) % (rand_r(&proxy->rng) % 2 == 0 ? near : size);
    char before = bytes[at];
    while (bytes[at] == before)
        bytes[at] = (char)(before >= '0' && before <= '9' && rand_r(&proxy->rng) % 4 != 0
                               ? '0' + rand_r(&proxy->rng) % 10
                               : rand_r(&proxy->rng) % 256);
    proxy->spoiled++;
}

static void send_later(struct hft_proxy *proxy, struct connection *connection, struct side *to,
                       const char *bytes, size_t size, int64_t more_ns)
{
    const struct hft_way *way = way_to(proxy, connection, to);
    to->lost = to->lost || way->hole;
    if (to->lost || connection->silent)
        return;
    struct chunk *chunk = malloc(sizeof *chunk + size);
    if (chunk == NULL)
        die("no memory");
    int64_t jitter = way->jitter_ns > 0 ? (int64_t)rand_r(&proxy->rng) * 997 % way->jitter_ns : 0;
    int64_t due = now_ns() + way->delay_ns + jitter + more_ns, *line_ns = &proxy->line_ns[to == &connection->client];
    if (due < to->due_ns)
        due = to->due_ns;
    if (way->byte_ns > 0)
        due = *line_ns = (due > *line_ns ? due : *line_ns) + (int64_t)size * way->byte_ns;
    to->due_ns = due;
    *chunk = (struct chunk){.due_ns = due, .size = size};
    memcpy(chunk->bytes, bytes, size);
    if (way->spoil_one_in > 0 && rand_r(&proxy->rng) % way->spoil_one_in == 0)
        spoil(proxy, chunk->bytes, size);
    *to->last = chunk;
    to->last = &chunk->next;
}

static void drop_first(struct side *side)
{
    struct chunk *first = side->first;
    side->first = first->next;
    if (side->first == NULL)
        side->last = &side->first;
    free(first);
}

/* Delivers the chunks that are due. Returns the time of the next one; INT64_MAX: none is waiting. */
static int64_t deliver(struct hft_proxy *proxy, struct connection *connection, struct side *to, int64_t now)
{
    const struct hft_way *way = way_to(proxy, connection, to);
    while (to->first != NULL && !connection->dead && !connection->silent) {
        struct chunk *chunk = to->first;
        if (chunk->due_ns > now)
            return chunk->due_ns;
        if (way->drip_bytes > 0 && to->drip_at_ns > now)
            return to->drip_at_ns;
        size_t size = chunk->size - chunk->gone;
        if (way->drip_bytes > 0 && size > (size_t)way->drip_bytes)
            size = (size_t)way->drip_bytes;
        if (way->cut_after > 0 && (int64_t)size > way->cut_after - to->delivered)
            size = (size_t)(way->cut_after > to->delivered ? way->cut_after - to->delivered : 0);
        ssize_t sent =
            size > 0 ? send(to->fd, chunk->bytes + chunk->gone, size, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (sent < 0 && errno == EAGAIN)
            return now + MS;
        if (sent < 0) {
            connection->dead = true;
            break;
        }
        to->delivered += sent;
        chunk->gone += (size_t)sent;
        to->drip_at_ns = now + way->drip_ns;
        if (chunk->gone == chunk->size)
            drop_first(to);
        if (way->cut_after > 0 && to->delivered >= way->cut_after) {
            connection->dead = true;
            connection->reset = way->cut_by_reset;
        }
    }
    return INT64_MAX;
}

/* ---- requests and replies ---- */

static void expect(struct connection *connection, char *answer, int64_t delay, bool last)
{
    struct turn *turn = malloc(sizeof *turn);
    if (turn == NULL)
        die("no memory");
    *turn = (struct turn){NULL, answer, delay, last};
    *connection->last_turn = turn;
    connection->last_turn = &turn->next;
}

static struct turn take_turn(struct connection *connection)
{
    struct turn turn = {NULL, NULL, 0, false};
    struct turn *first = connection->turn;
    if (first == NULL)
        return turn;
    turn = *first;
    connection->turn = first->next;
    if (connection->turn == NULL)
        connection->last_turn = &connection->turn;
    free(first);
    return turn;
}

static void answer_own(struct hft_proxy *proxy, struct connection *connection)
{
    while (connection->turn != NULL && connection->turn->answer != NULL) {
        struct turn turn = take_turn(connection);
        send_later(proxy, connection, &connection->client, turn.answer, strlen(turn.answer), turn.delay_ns);
        free(turn.answer);
    }
}

static void one_request(struct hft_proxy *proxy, struct connection *connection, const char *bytes,
                        size_t size)
{
    struct hft_request request = {.connection = connection->number, .class = connection->class};
    struct hft_judgement judgement = {.sentence = HFT_PASS};
    take_words(bytes, size, &request);
    if (hft_request_is(&request, "SUBSCRIBE", NULL))
        request.class = connection->class = HFT_SUBSCRIBER;
    if (proxy->judge != NULL)
        proxy->judge(&request, &judgement, proxy->judge_arg);
    switch (judgement.sentence) {
    case HFT_SILENCE:
        connection->silent = true;
        return;
    case HFT_CUT_BEFORE:
        connection->dead = true;
        return;
    case HFT_ANSWER: {
        char *answer = strdup(judgement.text);
        if (answer == NULL)
            die("no memory");
        expect(connection, answer, 0, false);
        answer_own(proxy, connection);
        return;
    }
    default:
        expect(connection, NULL, judgement.sentence == HFT_LATE_REPLY ? judgement.delay_ns : 0,
               judgement.sentence == HFT_CUT_AFTER);
        send_later(proxy, connection, &connection->server, bytes, size, 0);
    }
}

static void one_reply(struct hft_proxy *proxy, struct connection *connection, const char *bytes, size_t size)
{
    struct turn turn = {NULL, NULL, 0, false};
    if (connection->class == HFT_COMMANDS)
        turn = take_turn(connection);
    if (turn.last) {
        connection->dead = true;
        return;
    }
    send_later(proxy, connection, &connection->client, bytes, size, turn.delay_ns);
    answer_own(proxy, connection);
}

static void take_in(struct hft_proxy *proxy, struct connection *connection, struct side *from)
{
    char bytes[READ];
    ssize_t got = recv(from->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        from->ended = true;
        struct side *other = from == &connection->client ? &connection->server : &connection->client;
        if (got < 0 || (other->first == NULL && from == &connection->server))
            connection->dead = !connection->silent;
        (void)epoll_ctl(proxy->epoll, EPOLL_CTL_DEL, from->fd, NULL);
        if (from == &connection->client)
            (void)shutdown(connection->server.fd, SHUT_WR);
        return;
    }
    if (connection->silent)
        return;
    from->held = realloc(from->held, from->held_size + (size_t)got);
    if (from->held == NULL)
        die("no memory");
    memcpy(from->held + from->held_size, bytes, (size_t)got);
    from->held_size += (size_t)got;
    size_t used = 0, size;
    while (!connection->dead && !connection->silent && used < from->held_size &&
           (size = message(from->held + used, from->held_size - used)) > 0) {
        if (from == &connection->client)
            one_request(proxy, connection, from->held + used, size);
        else
            one_reply(proxy, connection, from->held + used, size);
        used += size;
    }
    memmove(from->held, from->held + used, from->held_size - used);
    from->held_size -= used;
}

/* ---- connections ---- */

static void init_side(struct side *side, int fd)
{
    *side = (struct side){.fd = fd};
    side->last = &side->first;
}

static void watch(struct hft_proxy *proxy, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(proxy->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        die("epoll_ctl");
}

static void accept_one(struct hft_proxy *proxy)
{
    const int on = 1;
    int fd = accept4(proxy->listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (proxy->dial_count < DIALS)
        proxy->dials[proxy->dial_count++] = now_ns();
    struct connection *connection = calloc(1, sizeof *connection);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int up = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection == NULL || up < 0)
        die("no memory or socket");
    (void)strcpy(address.sun_path, proxy->server_socket);
    /* While the server is stopped its backlog may be full: then the client's dial gets no answer, as on a real
     * network. */
    bool silent = proxy->network.accept_nobody;
    if (!silent && connect(up, (const struct sockaddr *)&address, sizeof address) != 0)
        connection->dead = true;
    init_side(&connection->client, fd);
    init_side(&connection->server, up);
    connection->silent = silent;
    connection->number = ++proxy->numbers;
    connection->last_turn = &connection->turn;
    connection->next = proxy->connections;
    proxy->connections = connection;
    proxy->count++;
    watch(proxy, fd);
    if (!connection->dead && !silent)
        watch(proxy, up);
}

static void free_side(struct side *side)
{
    while (side->first != NULL)
        drop_first(side);
    free(side->held);
    (void)close(side->fd);
}

static void end(struct hft_proxy *proxy, struct connection *connection)
{
    const struct linger at_once = {1, 0};
    if (connection->reset)
        (void)setsockopt(connection->client.fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    free_side(&connection->client);
    free_side(&connection->server);
    while (connection->turn != NULL)
        free(take_turn(connection).answer);
    free(connection);
    proxy->count--;
}

static void bury_the_dead(struct hft_proxy *proxy)
{
    struct connection **at = &proxy->connections;
    while (*at != NULL) {
        struct connection *connection = *at;
        bool over = connection->client.ended && connection->server.ended;
        if (connection->dead || over || (connection->silent && connection->client.ended)) {
            *at = connection->next;
            end(proxy, connection);
        } else {
            at = &connection->next;
        }
    }
}

static bool stalls(const struct hft_proxy *proxy, const struct connection *connection,
                   const struct side *from)
{
    const struct side *to = from == &connection->client ? &connection->server : &connection->client;
    return way_to(proxy, connection, to)->stall;
}

static void serve(struct hft_proxy *proxy, int fd)
{
    if (fd == proxy->listening) {
        accept_one(proxy);
        return;
    }
    for (struct connection *at = proxy->connections; at != NULL; at = at->next) {
        struct side *from = at->client.fd == fd ? &at->client : at->server.fd == fd ? &at->server : NULL;
        if (from != NULL && !from->ended && !at->dead && !stalls(proxy, at, from))
            take_in(proxy, at, from);
    }
}

static void *run(void *arg)
{
    struct hft_proxy *proxy = arg;
    if (hft_preload_exempt != NULL)
        hft_preload_exempt();
    (void)pthread_mutex_lock(&proxy->mutex);
    while (!proxy->stop) {
        int64_t now = now_ns(), next = INT64_MAX;
        bool stalled = false;
        for (struct connection *at = proxy->connections; at != NULL; at = at->next) {
            int64_t one = deliver(proxy, at, &at->client, now), other = deliver(proxy, at, &at->server, now);
            next = one < next ? one : next;
            next = other < next ? other : next;
            if (at->server.ended && at->client.first == NULL && !at->silent)
                at->dead = true;
            stalled = stalled || stalls(proxy, at, &at->client) || stalls(proxy, at, &at->server);
        }
        bury_the_dead(proxy);
        (void)pthread_cond_broadcast(&proxy->done);
        (void)pthread_mutex_unlock(&proxy->mutex);
        struct epoll_event events[64];
        int64_t left = next == INT64_MAX ? 1000 * MS : next > now ? next - now : 0;
        struct timespec length = {left / (1000 * MS), left % (1000 * MS)};
        if (stalled) { /* what is not read stays ready: look at it now and then only */
            struct timespec pause = {0, MS};
            (void)nanosleep(&pause, NULL);
        }
        int count = epoll_pwait2(proxy->epoll, events, 64, &length, NULL);
        (void)pthread_mutex_lock(&proxy->mutex);
        for (int i = 0; i < count; i++) {
            eventfd_t kicks;
            if (events[i].data.fd == proxy->kick)
                (void)eventfd_read(proxy->kick, &kicks);
            else
                serve(proxy, events[i].data.fd);
        }
    }
    while (proxy->connections != NULL) {
        struct connection *first = proxy->connections;
        proxy->connections = first->next;
        end(proxy, first);
    }
    (void)pthread_mutex_unlock(&proxy->mutex);
    return NULL;
}

/* ---- calls ---- */

static struct hft_proxy *start(const struct hft_server *server, bool tcp)
{
    struct hft_proxy *proxy = calloc(1, sizeof *proxy);
    if (proxy == NULL)
        die("no memory");
    static int proxies;
    (void)snprintf(proxy->server_socket, sizeof proxy->server_socket, "%s", hft_server_socket(server));
    proxy->listening = socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (tcp) {
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof at;
        if (bind(proxy->listening, (struct sockaddr *)&at, size) != 0 ||
            getsockname(proxy->listening, (struct sockaddr *)&at, &size) != 0)
            die("bind");
        (void)snprintf(proxy->url, sizeof proxy->url, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    } else {
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        (void)snprintf(proxy->socket, sizeof proxy->socket, "%s/proxy%d", hft_server_folder(server),
                       ++proxies);
        (void)strcpy(at.sun_path, proxy->socket);
        if (bind(proxy->listening, (struct sockaddr *)&at, sizeof at) != 0)
            die("bind");
        (void)snprintf(proxy->url, sizeof proxy->url, "unix://%s", proxy->socket);
    }
    proxy->epoll = epoll_create1(EPOLL_CLOEXEC);
    proxy->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (listen(proxy->listening, 512) != 0 || proxy->epoll < 0 || proxy->kick < 0)
        die("listen");
    watch(proxy, proxy->listening);
    watch(proxy, proxy->kick);
    (void)pthread_mutex_init(&proxy->mutex, NULL);
    (void)pthread_cond_init(&proxy->done, NULL);
    if (pthread_create(&proxy->thread, NULL, run, proxy) != 0)
        die("pthread_create");
    return proxy;
}

struct hft_proxy *hft_proxy_start(const struct hft_server *server)
{
    return start(server, false);
}

struct hft_proxy *hft_proxy_start_tcp(const struct hft_server *server)
{
    return start(server, true);
}

const char *hft_proxy_url(const struct hft_proxy *proxy)
{
    return proxy->url;
}

void hft_proxy_stop(struct hft_proxy *proxy)
{
    if (proxy == NULL)
        return;
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->stop = true;
    (void)pthread_mutex_unlock(&proxy->mutex);
    (void)eventfd_write(proxy->kick, 1);
    (void)pthread_join(proxy->thread, NULL);
    (void)close(proxy->listening);
    (void)close(proxy->epoll);
    (void)close(proxy->kick);
    (void)pthread_mutex_destroy(&proxy->mutex);
    (void)pthread_cond_destroy(&proxy->done);
    free(proxy);
}

/* Let the thread go round once, with what was changed. */
static void unlock_and_kick(struct hft_proxy *proxy)
{
    (void)eventfd_write(proxy->kick, 1);
    (void)pthread_cond_wait(&proxy->done, &proxy->mutex);
    (void)pthread_mutex_unlock(&proxy->mutex);
}

void hft_proxy_network(struct hft_proxy *proxy, const struct hft_network *network)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->network = network != NULL ? *network : (struct hft_network){.accept_nobody = false};
    for (struct connection *at = proxy->connections; at != NULL; at = at->next)
        at->client.delivered = at->server.delivered = 0;
    unlock_and_kick(proxy);
}

void hft_proxy_judge(struct hft_proxy *proxy, hft_judge *judge, void *arg)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    proxy->judge = judge;
    proxy->judge_arg = arg;
    unlock_and_kick(proxy);
}

long hft_proxy_spoiled(struct hft_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    long spoiled = proxy->spoiled;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return spoiled;
}

int hft_proxy_dials(struct hft_proxy *proxy, int64_t *at_ns, int most)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    int count = proxy->dial_count < most ? proxy->dial_count : most;
    memcpy(at_ns, proxy->dials, (size_t)count * sizeof *at_ns);
    proxy->dial_count = 0;
    (void)pthread_mutex_unlock(&proxy->mutex);
    return count;
}

void hft_proxy_cut(struct hft_proxy *proxy, bool reset)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    for (struct connection *at = proxy->connections; at != NULL; at = at->next) {
        at->dead = true;
        at->reset = reset;
    }
    unlock_and_kick(proxy);
}

void hft_proxy_half_close(struct hft_proxy *proxy)
{
    (void)pthread_mutex_lock(&proxy->mutex);
    for (struct connection *at = proxy->connections; at != NULL; at = at->next)
        (void)shutdown(at->client.fd, SHUT_WR);
    unlock_and_kick(proxy);
}

int hft_proxy_freeze_present(struct hft_proxy *proxy, unsigned classes)
{
    int count = 0;
    (void)pthread_mutex_lock(&proxy->mutex);
    for (struct connection *at = proxy->connections; at != NULL; at = at->next)
        if (!at->silent && (classes >> at->class & 1) != 0) {
            at->silent = true;
            count++;
        }
    unlock_and_kick(proxy);
    return count;
}
