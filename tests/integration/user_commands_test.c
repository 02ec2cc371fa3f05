/* SPDX-License-Identifier: MIT */
/* user_commands_test.c - a user's command concerns its caller alone: other callers' commands and fetches go on. */
#include "tests/support/pages.h"
#include "tests/support/takers.h"

#include <holdfast/redis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LIMIT = 100000 };

struct fixture {
    struct hft_server *server;
    hf_client *client;
    hf_error error;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start(NULL);
    f->client = hft_client(f->server, HF_CLIENT(.max_value_bytes = LIMIT, .command_ms = 5000));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    (void)hf_client_close(f->client, NULL);
    hft_server_stop(f->server);
    free(f);
    return 0;
}

struct neighbour { /* a thread that goes on while others ask for strange things */
    pthread_t thread;
    hf_client *client;
    struct hft_page page;
    _Atomic(bool) ends;
    _Atomic(int) rounds;
    int not_cached, not_set;
};

static void *go_on(void *arg)
{
    struct neighbour *me = arg;
    while (!atomic_load(&me->ends)) {
        hf_value *value;
        redisReply *reply;
        if (hf_fetch(me->client, "page", HF_FETCH(.load = hft_load, .arg = &me->page), &value, NULL) == HF_OK) {
            me->not_cached += value->source != HF_CACHED;
            hf_value_free(value);
        } else {
            me->not_cached++;
        }
        if (hf_command(me->client, &reply, NULL, "SET %s 1", "mine") == HF_OK) {
            me->not_set += reply->type != REDIS_REPLY_STATUS;
            freeReplyObject(reply);
        } else {
            me->not_set++;
        }
        atomic_fetch_add(&me->rounds, 1);
    }
    return NULL;
}

static void a_strange_reply_is_its_callers_and_the_connection_goes_on(void **state)
{
    enum { NEIGHBOURS = 3, ROUNDS = 60 };
    static const char *const errors[] = {"DENIED by my own script", "READONLY or so", "NOAUTH, I say", "UNBLOCKED it"};
    struct fixture *f = *state;
    struct neighbour all[NEIGHBOURS];
    redisReply *reply;
    int wrong = 0;
    freeReplyObject(hft_server_ask(f->server, "SETRANGE large %d x", 3 * LIMIT));
    freeReplyObject(hft_server_ask(f->server, "EVAL %s 0", "for i = 1, 50000 do redis.call('RPUSH', 'many', i) end"));
    struct hft_page page = {.data = "content"};
    hf_value *value;
    assert_int_equal(hf_fetch(f->client, "page", HF_FETCH(.load = hft_load, .arg = &page), &value, NULL), HF_OK);
    hf_value_free(value);
    for (int i = 0; i < NEIGHBOURS; i++) {
        all[i] = (struct neighbour){.client = f->client, .page = {.data = "content"}};
        (void)pthread_create(&all[i].thread, NULL, go_on, &all[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (hf_command(f->client, &reply, NULL, "EVAL %s 0 %s", "return redis.error_reply(ARGV[1])", errors[i % 4]) == HF_OK) {
            wrong += reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, errors[i % 4], 4) != 0;
            freeReplyObject(reply);
        } else {
            wrong++;
        }
        wrong += hf_command(f->client, &reply, &f->error, "GET large") != HF_LIMIT || reply != NULL;
        wrong += hf_command(f->client, &reply, &f->error, "LRANGE many 0 -1") != HF_LIMIT || reply != NULL;
        wrong += hf_command(f->client, &reply, &f->error, "EVAL %s 0", "return {{{{{{{{{{1}}}}}}}}}}") != HF_LIMIT;
        wrong += hf_command(f->client, &reply, &f->error, "POST /x") != HF_INVALID;
        wrong += hf_command(f->client, &reply, &f->error, "host: y") != HF_INVALID;
        for (int before = all[0].rounds; all[0].rounds < before + 2;) /* they go on in between */
            hft_pause(hft_boottime_ms() + 20000, "a neighbour");
    }
    hf_stats stats;
    hf_client_stats(f->client, &stats);
    for (int i = 0; i < NEIGHBOURS; i++) {
        atomic_store(&all[i].ends, true);
        (void)pthread_join(all[i].thread, NULL);
    }
    for (int i = 0; i < NEIGHBOURS; i++) {
        assert_int_equal(all[i].not_set, 0);
        assert_int_equal(all[i].not_cached, 0);
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(stats.reconnects, 0);
}

static int64_t most_memory_kb(void)
{
    char line[256];
    long long most = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        (void)sscanf(line, "VmHWM: %lld kB", &most);
    if (status != NULL)
        (void)fclose(status);
    return most;
}

static void a_reply_that_is_too_long_is_never_in_memory(void **state)
{
    struct fixture *f = *state;
    redisReply *reply;
    freeReplyObject(hft_server_ask(f->server, "SETRANGE large %d x", 128 << 20));
    int64_t before = most_memory_kb();
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_command(f->client, &reply, &f->error, "GET large"), HF_LIMIT);
    assert_true(before > 0);
    assert_in_range(most_memory_kb() - before, 0, 32 << 10);
}

static void a_value_too_long_to_fetch_ends_nothing(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "content"};
    hf_value *value;
    hf_stats stats;
    freeReplyObject(hft_server_ask(f->server, "SETRANGE large %d x", 3 * LIMIT));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(hf_fetch(f->client, "large", HF_FETCH(.load = hft_load, .arg = &page), &value, &f->error), HF_LIMIT);
        assert_non_null(strstr(f->error.hint, "max_value_bytes"));
        assert_int_equal(hf_fetch(f->client, "page", HF_FETCH(.load = hft_load, .arg = &page), &value, &f->error), HF_OK);
        assert_int_equal(value->source, i == 0 ? HF_LOADED : HF_CACHED);
        hf_value_free(value);
    }
    hf_client_stats(f->client, &stats);
    assert_int_equal(stats.reconnects, 0);
    assert_int_equal(page.loads, 1);
}

/* A READONLY answer to a user's command may be true: before the connection's next command the role is checked. */
static void a_users_command_that_gets_readonly_has_the_role_checked(void **state)
{
    struct fixture *f = *state;
    redisReply *reply;
    int64_t before = hft_server_calls(f->server, "role");
    assert_int_equal(hf_command(f->client, &reply, NULL, "EVAL %s 0", "return redis.error_reply('READONLY no')"), HF_OK);
    freeReplyObject(reply);
    int64_t asked = hft_server_calls(f->server, "role"); /* a lane that came up asks too */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_command(f->client, &reply, NULL, "GET x"), HF_OK);
        freeReplyObject(reply);
    }
    assert_true(asked > before);
    assert_int_equal(hft_server_calls(f->server, "role"), asked + 1);
    freeReplyObject(hft_server_ask(f->server, "REPLICAOF 127.0.0.1 1"));
    assert_int_equal(hf_command(f->client, &reply, NULL, "SET x 1"), HF_OK);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    hf_status status = hf_command(f->client, &reply, &f->error, "GET x"); /* a primary's answer, or none */
    assert_true(status == HF_UNKNOWN || status == HF_UNAVAILABLE);
    freeReplyObject(hft_server_ask(f->server, "REPLICAOF NO ONE"));
    HFT_UNTIL_TRUE(hf_command(f->client, &reply, NULL, "GET x") == HF_OK);
    freeReplyObject(reply);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_strange_reply_is_its_callers_and_the_connection_goes_on),
        TEST(a_reply_that_is_too_long_is_never_in_memory),
        TEST(a_value_too_long_to_fetch_ends_nothing),
        TEST(a_users_command_that_gets_readonly_has_the_role_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
