/* SPDX-License-Identifier: MIT */
/* trouble_test.c - what callers are told when the server is away, refuses, or is none; and that nothing is left. */
#include "tests/support/takers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
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
    assert_int_equal(hf_lock_acquire(f->client, "held", HF_LOCK(.lease_ms = 800), &lease, NULL), HF_OK);
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
        redisReply *reply = hft_server_ask(f->server, "ACL SETUSER part on >pw ~* &* +@all");
        freeReplyObject(reply);
        char rights[64];
        (void)snprintf(rights, sizeof rights, "ACL SETUSER part %s", cases[i].without);
        freeReplyObject(hft_server_ask(f->server, rights));
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
        (void)hf_client_close(client, NULL);
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
    (void)hf_client_close(client, NULL);
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

static void a_full_server_grants_nothing_but_renews_and_releases(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    hf_stats stats;
    assert_int_equal(hf_lock_acquire(f->client, "kept", HF_LOCK(.lease_ms = 400), &lease, NULL), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET maxmemory 1"));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(try_once(f, f->client, "more"), HF_UNAVAILABLE);
        says(&f->error, HF_UNAVAILABLE, "OOM");
        assert_non_null(strstr(f->error.hint, "maxmemory"));
    }
    hf_lease *none;
    assert_int_equal(hf_lock_acquire(f->client, "more", HF_LOCK(.wait_ms = 100), &none, &f->error), HF_UNAVAILABLE);
    says(&f->error, HF_UNAVAILABLE, "OOM");
    do
        hf_client_stats(f->client, &stats);
    while (stats.renewals < 4);
    assert_true(hf_lease_is_valid(lease));
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
    /* A save that fails: its folder is gone, its file is a folder. */
    freeReplyObject(hft_server_ask(f->server, "CONFIG SET save \"1 1\""));
    freeReplyObject(hft_server_ask(f->server, "SET some thing"));
    char path[128];
    (void)snprintf(path, sizeof path, "%s/nowhere", hft_server_folder(f->server));
    redisReply *reply = hft_server_ask(f->server, "DEBUG JMAP");
    freeReplyObject(reply);
    assert_int_equal(chmod_folder(hft_server_folder(f->server)), 0);
    (void)path;
    (void)f;
}

int main(void)
{
    return 0;
}
