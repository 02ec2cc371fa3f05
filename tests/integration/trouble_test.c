/* SPDX-License-Identifier: MIT */
/* trouble_test.c - the errors of calls when the server is away, refuses, or is none; and that nothing is left. */
#include "tests/support/lock_lanes.h"
#include "tests/support/takers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct hft_server *server;
    hf_client *client;
    hf_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start_tcp(NULL);
    f->client = hft_client(f->server, HF_CLIENT(.command_ms = 400));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    if (hft_server_pid(f->server) != 0)
        hft_server_thaw(f->server);
    (void)hf_client_close(f->client, NULL);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

static hf_status try_once(struct fixture *f, hf_client *client, const char *name)
{
    hf_lease *lease = NULL;
    memset(&f->error, 0, sizeof f->error);
    hf_status status = hf_lock_acquire(client, name, NULL, &lease, &f->error);
    if (status == HF_OK)
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    else
        assert_null(lease);
    return status;
}

static void says(const hf_error *error, hf_status status, const char *in_message)
{
    if (error->status != status || strstr(error->message, in_message) == NULL || error->hint[0] == 0)
        fail_msg("%s: %s / %s", hf_status_name(error->status), error->message, error->hint);
    assert_null(strchr(error->message, '\n'));
    assert_null(strstr(error->message, "secret"));
    assert_null(strstr(error->hint, "secret"));
}

static void no_server_is_unavailable_unless_lazy(void **state)
{
    struct fixture *f = *state;
    hf_client *client = (hf_client *)f;
    char url[64];
    hft_server_kill(f->server);
    assert_int_equal(hf_client_open(hft_server_url(f->server), NULL, &client, &f->error), HF_UNAVAILABLE);
    assert_null(client);
    says(&f->error, HF_UNAVAILABLE, "127.0.0.1");
    assert_int_equal(f->error.os_errno, ECONNREFUSED);
    assert_non_null(strstr(f->error.server, "127.0.0.1"));
    assert_int_equal(hf_client_open("unix:///nowhere/at.all", NULL, &client, &f->error), HF_UNAVAILABLE);
    says(&f->error, HF_UNAVAILABLE, "/nowhere/at.all");
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d?lazy=1", hft_server_port(f->server));
    assert_int_equal(hf_client_open(url, NULL, &client, &f->error), HF_OK);
    int64_t began_ms = hft_boottime_ms();
    assert_int_equal(try_once(f, client, "x"), HF_UNAVAILABLE);
    assert_true(hft_boottime_ms() - began_ms < 5000);
    says(&f->error, HF_UNAVAILABLE, "x");
    hft_server_restart(f->server);
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(client, "x", HF_LOCK(.wait_ms = 20000), &lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_wait_rides_out_a_restart_and_a_try_fails_at_once(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker, hopeless;
    hft_server_kill(f->server);
    assert_int_equal(try_once(f, f->client, "a"), HF_UNAVAILABLE); /* also where the connection still seemed to stand */
    hft_take(&taker, f->client, "b", HF_LOCK(.wait_ms = 20000));
    hft_take(&hopeless, f->client, "c", HF_LOCK(.wait_ms = 300));
    assert_int_equal(hft_taken(&hopeless), HF_UNAVAILABLE);
    assert_true(hopeless.got_ms - hopeless.began_ms >= 300);
    says(&hopeless.error, HF_UNAVAILABLE, "c");
    assert_false(atomic_load(&taker.done));
    hft_server_restart(f->server);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_verify(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

static void a_server_killed_under_a_lease_loses_it_and_the_client_goes_on(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(f->client, "held", HF_LOCK(.lease_ms = 1500), &lease, NULL), HF_OK);
    hft_server_kill(f->server);
    assert_true(hf_lease_is_valid(lease)); /* nobody else can have it yet */
    hft_server_restart(f->server);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    hf_reason reason = hf_lease_reason(lease);
    assert_true(reason == HF_REASON_GONE || reason == HF_REASON_EXPIRED);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    HFT_UNTIL_TRUE(try_once(f, f->client, "held") == HF_OK);
}

static void wrong_passwords_are_denied_and_never_printed(void **state)
{
    struct fixture *f = *state;
    hf_client *client;
    char url[96];
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER worker on >right ~* &* +@all"));
    (void)snprintf(url, sizeof url, "redis://worker:secret@127.0.0.1:%d", hft_server_port(f->server));
    assert_int_equal(hf_client_open(url, NULL, &client, &f->error), HF_DENIED);
    says(&f->error, HF_DENIED, "WRONGPASS");
    assert_int_equal(hf_client_open(hft_server_url(f->server), HF_CLIENT(.user = "nobody", .password = "secret"), &client,
                                    &f->error),
                     HF_DENIED);
    says(&f->error, HF_DENIED, "WRONGPASS");
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET requirepass right"));
    assert_int_equal(hf_client_open(hft_server_url(f->server), NULL, &client, &f->error), HF_DENIED);
    says(&f->error, HF_DENIED, "NOAUTH");
    (void)snprintf(url, sizeof url, "redis://:right@127.0.0.1:%d", hft_server_port(f->server));
    assert_int_equal(hf_client_open(url, NULL, &client, &f->error), HF_OK);
    assert_int_equal(try_once(f, client, "x"), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_missing_right_is_denied_and_named(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *without, *named;
    } cases[] = {{"-evalsha -eval -script", "eval"}, {"-set", "set"}, {"-multi", "multi"}, {"-incrby", "incrby"},
                 {"-exec", "exec"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        hf_client *client = NULL;
        freeReplyObject(hft_server_ask(f->server, "ACL DELUSER part"));
        freeReplyObject(hft_server_ask(f->server, "ACL SETUSER part on >pw ~* &* +@all"));
        char rights[64];
        (void)snprintf(rights, sizeof rights, "ACL SETUSER part %s", cases[i].without);
        redisReply *reply = hft_server_ask(f->server, rights);
        assert_int_equal(reply->type, REDIS_REPLY_STATUS);
        freeReplyObject(reply);
        hf_status status = hf_client_open(hft_server_url(f->server), HF_CLIENT(.user = "part", .password = "pw"), &client,
                                          &f->error);
        if (status == HF_OK) {
            status = try_once(f, client, "x");
            assert_int_equal(status, f->error.status);
            hf_lease *lease;
            assert_int_equal(hf_lock_acquire(client, "x", HF_LOCK(.wait_ms = 5000), &lease, NULL), status);
        }
        if (status != HF_DENIED || strcasestr(f->error.message, cases[i].named) == NULL)
            fail_msg("without %s: %s %s / %s", cases[i].named, hf_status_name(status), f->error.message, f->error.hint);
        says(&f->error, HF_DENIED, "");
        if (client != NULL)
            assert_int_equal(hf_client_close(client, NULL), HF_OK);
        HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    }
}

static void without_the_right_to_the_keys_it_is_denied_too(void **state)
{
    struct fixture *f = *state;
    hf_client *client = NULL;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER part on >pw ~hf:fence ~app:* &* +@all"));
    assert_int_equal(hf_client_open(hft_server_url(f->server), HF_CLIENT(.user = "part", .password = "pw"), &client,
                                    &f->error),
                     HF_OK);
    assert_int_equal(try_once(f, client, "x"), HF_DENIED);
    says(&f->error, HF_DENIED, "x");
    assert_int_equal(hf_client_close(client, NULL), HF_OK); /* it certainly has no key there */
}

/* What may not be looked at is not another's. */
static void who_may_not_read_the_key_any_more_has_not_lost_it(void **state)
{
    struct fixture *f = *state;
    hf_lease *given, *kept;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER blind on >pw ~* &* +@all"));
    hf_client *blind = hft_client(f->server, HF_CLIENT(.user = "blind", .password = "pw"));
    assert_int_equal(hf_lock_acquire(blind, "given", HF_LOCK(.lease_ms = 60000), &given, &f->error), HF_OK);
    assert_int_equal(hf_lock_acquire(blind, "kept", HF_LOCK(.lease_ms = 3000), &kept, &f->error), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER blind -get"));
    assert_int_equal(hf_lease_release(given, &f->error), HF_UNKNOWN);
    says(&f->error, HF_UNKNOWN, "which is GET");
    HFT_UNTIL_TRUE(hf_lease_state(kept) == HF_LEASE_AT_RISK);
    assert_int_equal(hf_lease_reason(kept), HF_REASON_UNCONFIRMED);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER blind +get"));
    HFT_UNTIL_TRUE(hf_lease_state(kept) == HF_LEASE_HELD);
    HFT_UNTIL_TRUE(hft_lock_exists(f->server, "given") == 0); /* it went on trying */
    assert_int_equal(hf_lease_release(kept, &f->error), HF_OK);
    assert_int_equal(hf_client_close(blind, NULL), HF_OK);
}

static void without_pubsub_rights_locks_still_pass_on(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER deaf on >pw ~* &* +@all -subscribe -psubscribe"));
    hf_client *deaf = hft_client(f->server, HF_CLIENT(.user = "deaf", .password = "pw"));
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(deaf, "x", NULL, &lease, &f->error), HF_OK);
    hft_take(&taker, f->client, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 1);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(deaf, NULL), HF_OK);
}

static void a_replica_grants_nothing(void **state)
{
    struct fixture *f = *state;
    hf_client *client;
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(f->client, "before", HF_LOCK(.lease_ms = 600), &lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "REPLICAOF 127.0.0.1 1"));
    assert_int_equal(try_once(f, f->client, "x"), HF_UNAVAILABLE);
    says(&f->error, HF_UNAVAILABLE, "x");
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    assert_int_equal(hf_client_open(hft_server_url(f->server), HF_CLIENT(.connect_ms = 500), &client, &f->error),
                     HF_UNAVAILABLE);
    says(&f->error, HF_UNAVAILABLE, "");
    struct hft_taker taker;
    hft_take(&taker, f->client, "after", HF_LOCK(.wait_ms = 20000));
    freeReplyObject(hft_server_ask(f->server, "REPLICAOF NO ONE"));
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

/* For less than till its second question, in R: that is served. A machine may stand still for longer. */
static void waits_in_vain(struct fixture *f, const char *name)
{
    hf_lease *lease = NULL;
    int64_t began_ms = hft_boottime_ms();
    hf_status status = hf_lock_acquire(f->client, name, HF_LOCK(.wait_ms = 100), &lease, &f->error);
    if (hft_boottime_ms() - began_ms < 300) {
        assert_int_equal(status, HF_UNAVAILABLE);
        says(&f->error, HF_UNAVAILABLE, "OOM");
    }
    if (status == HF_OK)
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void a_full_server_grants_nothing_but_renews_and_releases(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(f->client, "kept", HF_LOCK(.lease_ms = 2400), &lease, NULL), HF_OK);
    HFT_UNTIL_TRUE(hft_is_connected(f->client)); /* who waits asks a second time when it begins to hear */
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 1"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(try_once(f, f->client, "more"), HF_UNAVAILABLE);
        says(&f->error, HF_UNAVAILABLE, "OOM");
        assert_non_null(strstr(f->error.hint, "maxmemory"));
    }
    waits_in_vain(f, "more");
    HFT_WHILE_RENEWED(f->client, 4, hf_lease_is_valid(lease)); /* for longer than a lease */
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    struct hft_taker taker;
    hft_take(&taker, f->client, "more", HF_LOCK(.wait_ms = 20000));
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 0"));
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

static void a_server_that_cannot_save_grants_nothing(void **state)
{
    struct fixture *f = *state;
    char path[128];
    bool failed = false;
    (void)snprintf(path, sizeof path, "%s/dump.rdb", hft_server_folder(f->server));
    assert_int_equal(mkdir(path, 0700), 0); /* no file can take its place */
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET save %s", "3600 1"));
    freeReplyObject(hft_server_ask(f->server, "BGSAVE"));
    while (!failed) {
        redisReply *reply = hft_server_ask(f->server, "INFO persistence");
        failed = strstr(reply->str, "rdb_last_bgsave_status:err") != NULL;
        freeReplyObject(reply);
    }
    assert_int_equal(try_once(f, f->client, "x"), HF_UNAVAILABLE);
    says(&f->error, HF_UNAVAILABLE, "MISCONF");
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET save %s", ""));
    HFT_UNTIL_TRUE(try_once(f, f->client, "x") == HF_OK);
}

static void *ask_and_wait(void *arg)
{
    struct fixture *f = arg;
    freeReplyObject(hft_server_ask(f->server, "DEBUG RELOAD"));
    return NULL;
}

static void a_server_that_loads_is_waited_for(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    pthread_t thread;
    struct hft_taker taker;
    (void)state;
    f->server = hft_server_start_tcp("enable-debug-command yes\nkey-load-delay 1000\nloading-process-events-interval-bytes 1024");
    f->client = hft_client(f->server, HF_CLIENT(.command_ms = 2000));
    assert_int_equal(try_once(f, f->client, "x"), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "DEBUG POPULATE 1500"));
    (void)pthread_create(&thread, NULL, ask_and_wait, f);
    hf_lease *lease;
    hf_status released = HF_OK, closed;
    while (hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 1000), &lease, &f->error) == HF_OK)
        released = hf_lease_release(lease, NULL); /* UNKNOWN if loading begins just now */
    says(&f->error, HF_UNAVAILABLE, "LOADING");
    hft_take(&taker, f->client, "y", HF_LOCK(.wait_ms = 20000));
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    (void)pthread_join(thread, NULL);
    closed = hf_client_close(f->client, NULL); /* UNKNOWN: the release may be in doubt still */
    assert_true(closed == HF_OK || (closed == HF_UNKNOWN && released == HF_UNKNOWN));
    hft_server_stop(f->server);
    free(f);
}

static bool is_busy(struct hft_server *server)
{
    redisReply *reply = hft_server_ask(server, "PING");
    bool is = reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "BUSY", 4) == 0;
    freeReplyObject(reply);
    return is;
}

static void a_server_busy_with_a_script_and_one_with_too_many_clients_are_unavailable(void **state)
{
    struct fixture *f = *state;
    hf_client *client;
    struct timeval limit = {20, 0};
    redisContext *spinner = redisConnectUnixWithTimeout(hft_server_socket(f->server), limit);
    assert_int_equal(try_once(f, f->client, "x"), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET busy-reply-threshold 20"));
    assert_int_equal(redisAppendCommand(spinner, "EVAL %s 0", "while true do end"), REDIS_OK);
    int sent = 0;
    while (sent == 0)
        assert_int_equal(redisBufferWrite(spinner, &sent), REDIS_OK);
    HFT_UNTIL_TRUE(is_busy(f->server)); /* else it may become so between a grant and its release */
    assert_int_equal(try_once(f, f->client, "x"), HF_UNAVAILABLE);
    says(&f->error, HF_UNAVAILABLE, "BUSY");
    struct hft_taker taker;
    hft_take(&taker, f->client, "x", HF_LOCK(.wait_ms = 20000));
    freeReplyObject(hft_server_ask(f->server, "SCRIPT KILL"));
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    redisFree(spinner);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxclients 1"));
    assert_int_equal(hf_client_open(hft_server_url(f->server), HF_CLIENT(.connect_ms = 500), &client, &f->error),
                     HF_UNAVAILABLE);
    says(&f->error, HF_UNAVAILABLE, "max number of clients");
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxclients 1000"));
}

struct impostor { /* it listens, and answers whatever it hears with the same words */
    pthread_t thread;
    int fd, port;
    const char *words; /* NULL: none */
    _Atomic(bool) ends;
};

static void *pretend(void *arg)
{
    struct impostor *me = arg;
    struct pollfd at[17] = {{me->fd, POLLIN, 0}};
    nfds_t count = 1;
    while (!atomic_load(&me->ends)) {
        char heard[4096];
        (void)poll(at, count, 20);
        for (nfds_t i = 1; i < count; i++)
            if (at[i].fd >= 0 && (at[i].revents & POLLIN) != 0) {
                ssize_t size = recv(at[i].fd, heard, sizeof heard, 0);
                bool over = size <= 0 || (me->words != NULL && *me->words == 0);
                if (!over && me->words != NULL)
                    (void)send(at[i].fd, me->words, strlen(me->words), MSG_NOSIGNAL);
                if (over) {
                    (void)close(at[i].fd);
                    at[i] = at[--count];
                }
            }
        if ((at[0].revents & POLLIN) != 0 && count < 17)
            at[count++] = (struct pollfd){accept(me->fd, NULL, NULL), POLLIN, 0};
    }
    while (count-- > 0)
        (void)close(at[count].fd);
    return NULL;
}

static void what_is_not_a_redis_is_said_so(void **state)
{
    static const struct {
        const char *words;
        hf_status status;
    } cases[] = {{"HTTP/1.1 400 Bad Request\r\n\r\n", HF_PROTOCOL},
                 {"\x16\x03\x01garbage\r\n", HF_PROTOCOL},
                 {"+hello\r\n+hello\r\n+hello\r\n+hello\r\n", HF_PROTOCOL},
                 {"-ERR unknown command\r\n-ERR unknown command\r\n-ERR unknown command\r\n"
                  "-ERR unknown command\r\n-ERR unknown command\r\n-ERR unknown command\r\n", HF_PROTOCOL},
                 {"", HF_UNAVAILABLE},
                 {NULL, HF_UNAVAILABLE}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof address;
        struct impostor me = {.words = cases[i].words};
        hf_client *client;
        char url[64];
        me.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(me.fd, (struct sockaddr *)&address, size), 0);
        assert_int_equal(listen(me.fd, 16), 0);
        (void)getsockname(me.fd, (struct sockaddr *)&address, &size);
        (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d?connect_ms=300", ntohs(address.sin_port));
        (void)pthread_create(&me.thread, NULL, pretend, &me);
        int64_t began_ms = hft_boottime_ms();
        hf_status status = hf_client_open(url, NULL, &client, &f->error);
        int64_t took_ms = hft_boottime_ms() - began_ms;
        atomic_store(&me.ends, true);
        (void)pthread_join(me.thread, NULL);
        assert_null(client);
        if (status != cases[i].status)
            fail_msg("%.12s: %s %s", cases[i].words != NULL ? cases[i].words : "silence", hf_status_name(status),
                     f->error.message);
        says(&f->error, status, "127.0.0.1");
        assert_true(me.words == NULL || *me.words != 0 || strstr(f->error.hint, "TLS") != NULL); /* it hangs up */
        assert_true(took_ms < 5000);
    }
}

static void a_limit_of_waiters_is_kept(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease, *none;
    struct hft_taker taker;
    hf_stats stats;
    hf_client *client = hft_client(f->server, HF_CLIENT(.max_waiters = 1));
    assert_int_equal(hf_lock_acquire(f->client, "x", NULL, &lease, NULL), HF_OK);
    hft_take(&taker, client, "x", HF_LOCK(.wait_ms = 20000));
    do
        hf_client_stats(client, &stats);
    while (stats.waiting == 0);
    assert_int_equal(hf_lock_acquire(client, "x", HF_LOCK(.wait_ms = 100), &none, &f->error), HF_LIMIT);
    says(&f->error, HF_LIMIT, "max_waiters");
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static long connections(struct hft_server *server)
{
    redisReply *reply = hft_server_ask(server, "INFO clients");
    const char *count = strstr(reply->str, "connected_clients:");
    long connected = count != NULL ? strtol(strchr(count, ':') + 1, NULL, 10) : -1;
    freeReplyObject(reply);
    return connected;
}

static void what_a_silent_server_may_still_do_is_undone(void **state)
{
    enum { ROUNDS = 6 };
    struct fixture *f = *state;
    hf_lease *none;
    for (int i = 0; i < ROUNDS; i++) {
        int64_t wait_ms = i % 3 == 0 ? 0 : i % 3 == 1 ? 100 : 900; /* shorter and longer than command_ms */
        assert_int_equal(try_once(f, f->client, "warm"), HF_OK);
        hft_server_freeze(f->server);
        hf_status status = hf_lock_acquire(f->client, "silent", HF_LOCK(.wait_ms = wait_ms, .lease_ms = 60000), &none,
                                           &f->error);
        hft_server_thaw(f->server);
        if (status != HF_UNAVAILABLE && !(wait_ms == 100 && status == HF_TIMEOUT))
            fail_msg("wait_ms %lld: %s %s", (long long)wait_ms, hf_status_name(status), f->error.message);
        assert_null(none);
        int64_t thawed_ms = hft_boottime_ms();
        /* Long before the lease would have ended by itself. */
        HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0 && hft_queued(f->server, "silent") == 0);
        HFT_UNTIL_TRUE(try_once(f, f->client, "silent") == HF_OK);
        print_message("wait_ms %lld: free again %lld ms after the thaw\n", (long long)wait_ms,
                      (long long)(hft_boottime_ms() - thawed_ms));
    }
    /* And nothing is executed later that was written earlier: the server reads to the end of a connection before it drops it. */
    assert_true(hft_closes(f->server, f->client, &f->error));
    HFT_UNTIL_TRUE(connections(f->server) == 1); /* this test's */
    assert_int_equal(hft_lock_keys(f->server), 0);
    f->client = hft_client(f->server, NULL);
}

static void a_release_without_an_answer_is_unknown_and_done_later(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(f->client, "unsure", HF_LOCK(.lease_ms = 60000), &lease, NULL), HF_OK);
    hft_server_freeze(f->server);
    hf_status status = hf_lease_release(lease, &f->error);
    hft_server_thaw(f->server);
    assert_int_equal(status, HF_UNKNOWN);
    says(&f->error, HF_UNKNOWN, "unsure");
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    HFT_UNTIL_TRUE(try_once(f, f->client, "unsure") == HF_OK);
}

/* The key expires; until then the release is repeated a few times, and after that no more. */
static void a_refused_release_says_why_and_is_not_repeated_for_ever(void **state)
{
    enum { WATCHED_MS = 8000 };
    struct fixture *f = *state;
    hf_lease *lease;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER worker on >pw ~* &* +@all"));
    hf_client *client = hft_client(f->server, HF_CLIENT(.user = "worker", .password = "pw", .command_ms = 200));
    assert_int_equal(hf_lock_acquire(client, "x", HF_LOCK(.lease_ms = 4000), &lease, &f->error), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER worker -del -hdel"));
    HFT_UNTIL_TRUE(hft_is_connected(f->client) && hft_is_connected(client)); /* each handshake has a script */
    int64_t before = hft_server_calls(f->server, "evalsha"), until_ms = hft_boottime_ms() + WATCHED_MS;
    assert_int_equal(hf_lease_release(lease, &f->error), HF_UNKNOWN);
    says(&f->error, HF_UNKNOWN, "DEL");
    assert_non_null(strstr(f->error.message, "\"x\""));
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    HFT_UNTIL_TRUE(hft_boottime_ms() > until_ms);
    assert_in_range(hft_server_calls(f->server, "evalsha") - before, 4, 6); /* it would be 12 at one pace */
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_refused_release_comes_through_when_the_server_relents(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER worker on >pw ~* &* +@all"));
    hf_client *client = hft_client(f->server, HF_CLIENT(.user = "worker", .password = "pw"));
    assert_int_equal(hf_lock_acquire(client, "x", HF_LOCK(.lease_ms = 60000), &lease, &f->error), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER worker -del"));
    assert_int_equal(hf_lease_release(lease, &f->error), HF_UNKNOWN);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER worker +del"));
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(no_server_is_unavailable_unless_lazy),
        TEST(a_wait_rides_out_a_restart_and_a_try_fails_at_once),
        TEST(a_server_killed_under_a_lease_loses_it_and_the_client_goes_on),
        TEST(wrong_passwords_are_denied_and_never_printed),
        TEST(a_missing_right_is_denied_and_named),
        TEST(without_the_right_to_the_keys_it_is_denied_too),
        TEST(who_may_not_read_the_key_any_more_has_not_lost_it),
        TEST(without_pubsub_rights_locks_still_pass_on),
        TEST(a_replica_grants_nothing),
        TEST(a_full_server_grants_nothing_but_renews_and_releases),
        TEST(a_server_that_cannot_save_grants_nothing),
        cmocka_unit_test(a_server_that_loads_is_waited_for),
        TEST(a_server_busy_with_a_script_and_one_with_too_many_clients_are_unavailable),
        TEST(what_is_not_a_redis_is_said_so),
        TEST(a_limit_of_waiters_is_kept),
        TEST(what_a_silent_server_may_still_do_is_undone),
        TEST(a_release_without_an_answer_is_unknown_and_done_later),
        TEST(a_refused_release_says_why_and_is_not_repeated_for_ever),
        TEST(a_refused_release_comes_through_when_the_server_relents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
