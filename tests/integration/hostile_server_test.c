/* SPDX-License-Identifier: MIT */
/* hostile_server_test.c - a malicious server: whatever it sends after a proper handshake, the connection is given up
 * within bounds, the caller gets an error, and the process keeps its memory. */
#include <hiredis/hiredis.h>
#include <holdfast/holdfast.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define RSS_MORE_KB (64 * 1024) /* above what it was; the streams below would be gigabytes */

/* The bytes sent, again and again if `for_ever`, as the answer to any command that is not part of a handshake. */
struct malice {
    const char *what;
    const char *bytes;
    size_t size;
    bool for_ever;
    bool unasked; /* not for a question: as soon as the greeting is over */
};
#define BYTES(text) text, sizeof(text) - 1

static const struct malice malices[] = {
    {"a bulk string without end", BYTES("$2000000000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), true, false},
    {"x without end", BYTES("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), true, false},
    {"a line without end", BYTES("+xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), true, false},
    {"replies without end", BYTES(":1\r\n:2\r\n+OK\r\n$3\r\nabc\r\n*1\r\n:1\r\n"), true, false},
    {"an array of two billion", BYTES("*2000000000\r\n"), false, false},
    {"arrays of a hundred million in each other",
     BYTES("*100000000\r\n*100000000\r\n*100000000\r\n*100000000\r\n*100000000\r\n"), false, false},
    {"deep nesting", BYTES("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"), false, false},
    {"lengths beyond any", BYTES("$99999999999999999999\r\n"), false, false},
    {"negative lengths", BYTES("*-7\r\n$-7\r\n"), false, false},
    {"a push nobody asked for", BYTES(">3\r\n+message\r\n+hf:c:x\r\n+G x 1 2\r\n"), false, true},
    {"a reply nobody asked for", BYTES(":1\r\n"), false, true},
    {"the wrong type", BYTES(":42\r\n"), true, false},
    {"an array of the wrong things", BYTES("*3\r\n*0\r\n$-1\r\n:-1\r\n"), true, false},
    {"nothing but the beginning", BYTES("*2\r\n$7\r\nGRAN"), false, false},
    {"zeros", BYTES("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), true, false},
};

static struct {
    char path[sizeof((struct sockaddr_un *)0)->sun_path];
    int listener;
    pthread_t thread;
    _Atomic(const struct malice *) malice;
    _Atomic(bool) over;
    _Atomic(int) harmed; /* how often malice was sent */
} evil;

static void say(int fd, const char *bytes, size_t size)
{
    (void)send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static bool is(const redisReply *request, size_t at, const char *word)
{
    return at < request->elements && strcasecmp(request->element[at]->str, word) == 0;
}

/* The right answer to a handshake_floor; NULL: the request is not part of a handshake. */
static const char *greet(const redisReply *request)
{
    if (is(request, 0, "ROLE"))
        return "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n";
    if (is(request, 0, "INFO"))
        return "$31\r\nredis_version:7.0.15\r\nrun_id:\r\n\r\n";
    if (is(request, 1, "EXISTS"))
        return "*6\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:0\r\n";
    if (is(request, 0, "SCRIPT"))
        return "$40\r\n0123456789012345678901234567890123456789\r\n";
    if (is(request, 0, "CLIENT") || is(request, 0, "SUBSCRIBE"))
        return "+OK\r\n";
    if (is(request, 0, "EVALSHA") && is(request, 3, "hf:fence"))
        return "*2\r\n$16\r\n1795000000000000\r\n$19\r\n3676160000000000000\r\n";
    return NULL;
}

struct victim {
    redisReader *reader;
    bool streams;
};

static void serve(int fd, struct victim *victim)
{
    char bytes[65536];
    void *request;
    const struct malice *malice = atomic_load(&evil.malice);
    ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0)
        (void)redisReaderFeed(victim->reader, bytes, (size_t)got);
    while (redisReaderGetReply(victim->reader, &request) == REDIS_OK && request != NULL) {
        const char *answer = greet(request);
        bool greeted = is(request, 0, "EVALSHA") && answer != NULL;
        freeReplyObject(request);
        if (answer != NULL)
            say(fd, answer, strlen(answer));
        if (answer == NULL || (greeted && malice->unasked)) {
            say(fd, malice->bytes, malice->size);
            (void)atomic_fetch_add(&evil.harmed, 1);
            victim->streams = malice->for_ever;
        }
    }
}

static void *be_evil(void *arg)
{
    struct pollfd fds[64] = {{evil.listener, POLLIN, 0}};
    struct victim victims[64] = {{NULL, false}};
    static char flood[65536];
    nfds_t count = 1;
    while (!atomic_load(&evil.over)) {
        bool any = false;
        for (nfds_t i = 1; i < count; i++)
            any = any || victims[i].streams;
        (void)poll(fds, count, any ? 0 : 5);
        if ((fds[0].revents & POLLIN) != 0 && count < 64) {
            victims[count] = (struct victim){redisReaderCreate(), false};
            fds[count++] = (struct pollfd){accept4(evil.listener, NULL, NULL, SOCK_CLOEXEC), POLLIN, 0};
        }
        for (nfds_t i = 1; i < count; i++) {
            if (fds[i].revents & (POLLHUP | POLLERR)) {
                (void)close(fds[i].fd);
                redisReaderFree(victims[i].reader);
                victims[i] = victims[count - 1];
                fds[i--] = fds[--count];
                continue;
            }
            if (fds[i].revents & POLLIN)
                serve(fds[i].fd, &victims[i]);
            const struct malice *malice = atomic_load(&evil.malice);
            size_t size = 0;
            while (victims[i].streams && size + malice->size <= sizeof flood) {
                memcpy(flood + size, malice->bytes, malice->size);
                size += malice->size;
            }
            say(fds[i].fd, flood, size);
        }
    }
    for (nfds_t i = 1; i < count; i++) {
        (void)close(fds[i].fd);
        redisReaderFree(victims[i].reader);
    }
    return arg;
}

static int start(void **state)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    (void)state;
    (void)snprintf(evil.path, sizeof evil.path, "/tmp/holdfast-test-hostile-%d", (int)getpid());
    (void)snprintf(at.sun_path, sizeof at.sun_path, "%s", evil.path);
    evil.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    atomic_store(&evil.malice, &malices[0]);
    if (bind(evil.listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(evil.listener, 64) != 0)
        return -1;
    return pthread_create(&evil.thread, NULL, be_evil, NULL);
}

static int stop(void **state)
{
    (void)state;
    atomic_store(&evil.over, true);
    (void)pthread_join(evil.thread, NULL);
    (void)close(evil.listener);
    return unlink(evil.path);
}

static long rss_kb(void)
{
    char line[256];
    long kb = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0) /* the most it ever was: what has come and gone counts too */
            kb = strtol(line + 6, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return kb;
}


static void whatever_a_server_sends_costs_no_more_than_the_connection(void **state)
{
    (void)state;
    long before = rss_kb();
    for (size_t i = 0; i < sizeof malices / sizeof *malices; i++) {
        char url[160];
        hf_client *client = NULL;
        hf_error error;
        atomic_store(&evil.malice, &malices[i]);
        int harmed = atomic_load(&evil.harmed);
        (void)snprintf(url, sizeof url, "unix://%s", evil.path);
        hf_status status = hf_client_open(url, HF_CLIENT(.command_ms = 300, .connect_ms = 1000, .lazy = true), &client, &error);
        assert_int_equal(status, HF_OK);
        for (int turn = 0; turn < 3; turn++) {
            hf_lease *lease = NULL;
            status = hf_lock_acquire(client, "prey", HF_LOCK(.wait_ms = 200), &lease, &error);
            if (status == HF_OK)
                fail_msg("%s: a lease", malices[i].what);
            assert_true(error.message[0] != 0);
        }
        if (atomic_load(&evil.harmed) == harmed)
            fail_msg("%s: never sent (%s: %s)", malices[i].what, hf_status_name(status), error.message);
        (void)hf_client_close(client, &error);
        if (rss_kb() > before + RSS_MORE_KB)
            fail_msg("%s: from %ld to %ld kB", malices[i].what, before, rss_kb());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_a_server_sends_costs_no_more_than_the_connection)};
    return cmocka_run_group_tests(tests, start, stop);
}
