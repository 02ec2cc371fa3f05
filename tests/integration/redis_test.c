/* SPDX-License-Identifier: MIT */
/* redis_test.c - users' own commands: hf_command and hf_conn_*. */
#include <holdfast/holdfast.h>
#include <holdfast/redis.h>

#include "tests/support/server.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct hft_server *server;
    hf_client *client;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    hf_error error;
    f->server = hft_server_start(NULL);
    *state = f;
    if (hf_client_open(hft_server_url(f->server), HF_CLIENT(.max_connections = 2), &f->client, &error) ==
        HF_OK)
        return 0;
    print_message("%s\n", error.message);
    return -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hf_status status = hf_client_close(f->client, NULL);
    hft_server_stop(f->server);
    free(f);
    return status == HF_OK ? 0 : -1;
}

static void a_command_gives_its_reply_whatever_it_is(void **state)
{
    struct fixture *f = *state;
    redisReply *reply;
    assert_int_equal(hf_command(f->client, &reply, NULL, "SET %s %b", "key", "a\0b", (size_t)3), HF_OK);
    assert_string_equal(reply->str, "OK");
    freeReplyObject(reply);
    const char *const get[] = {"GET", "key"};
    assert_int_equal(hf_command_argv(f->client, &reply, NULL, 2, get, NULL), HF_OK);
    assert_int_equal(reply->len, 3);
    assert_memory_equal(reply->str, "a\0b", 3);
    freeReplyObject(reply);
    /* An error reply is a reply. */
    assert_int_equal(hf_command(f->client, &reply, NULL, "INCR key"), HF_OK);
    assert_int_equal(reply->type, REDIS_REPLY_ERROR);
    freeReplyObject(reply);
    assert_int_equal(hf_command(f->client, &reply, NULL, "GET nothing"), HF_OK);
    assert_int_equal(reply->type, REDIS_REPLY_NIL);
    freeReplyObject(reply);
}

static void what_a_shared_connection_cannot_carry_is_invalid(void **state)
{
    struct fixture *f = *state;
    redisReply *reply;
    hf_error error;
    assert_int_equal(hf_command(f->client, &reply, &error, "blpop a 0"), HF_INVALID);
    assert_null(reply);
    assert_non_null(strstr(error.message, "blpop"));
    assert_non_null(strstr(error.hint, "hf_conn_borrow"));
    assert_int_equal(hf_command(f->client, &reply, &error, "MULTI"), HF_INVALID);
    assert_int_equal(hf_command(f->client, &reply, &error, "%s %s", "SELECT", "1"), HF_INVALID);
    assert_int_equal(hft_server_calls(f->server, "select"), 0);
}

static void bad_arguments_are_named(void **state)
{
    struct fixture *f = *state;
    redisReply *reply;
    hf_conn *conn;
    hf_error error;
    const char *const gap[] = {"GET", NULL};
    assert_int_equal(hf_command(f->client, &reply, &error, NULL), HF_INVALID);
    assert_non_null(strstr(error.message, "format"));
    assert_int_equal(hf_command(f->client, &reply, &error, "GET %y", 1), HF_INVALID);
    assert_int_equal(hf_command(f->client, &reply, &error, ""), HF_INVALID);
    assert_non_null(strstr(error.message, "empty"));
    assert_int_equal(hf_command(f->client, NULL, &error, "PING"), HF_INVALID);
    assert_int_equal(hf_command(NULL, &reply, &error, "PING"), HF_INVALID);
    assert_int_equal(hf_command_argv(f->client, &reply, &error, 2, gap, NULL), HF_INVALID);
    assert_non_null(strstr(error.message, "argument 1"));
    assert_int_equal(hf_command_argv(f->client, &reply, &error, 0, gap, NULL), HF_INVALID);
    assert_int_equal(hf_conn_borrow(f->client, -2, &conn, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "wait_ms"));
    assert_int_equal(hf_conn_borrow(NULL, 0, &conn, &error), HF_INVALID);
    assert_int_equal(hf_conn_borrow(f->client, 0, NULL, &error), HF_INVALID);
    assert_null(hf_conn_context(NULL));
    hf_conn_return(NULL);
    hf_conn_discard(NULL);
}

static void a_transaction_runs_on_a_borrowed_connection(void **state)
{
    struct fixture *f = *state;
    hf_conn *conn, *second, *third;
    hf_error error;
    assert_int_equal(hf_conn_borrow(f->client, 0, &conn, &error), HF_OK);
    redisContext *context = hf_conn_context(conn);
    static const char *const lines[] = {"WATCH n", "MULTI", "INCR n", "EXEC"};
    for (size_t i = 0; i < 4; i++) {
        redisReply *reply = redisCommand(context, lines[i]);
        assert_non_null(reply);
        assert_int_not_equal(reply->type, REDIS_REPLY_ERROR);
        freeReplyObject(reply);
    }
    assert_int_equal(hft_server_ask_integer(f->server, "INCR n"), 2);
    assert_int_equal(hf_conn_borrow(f->client, 0, &second, NULL), HF_OK);
    assert_int_equal(hf_conn_borrow(f->client, 0, &third, &error), HF_BUSY);
    assert_int_equal(hf_conn_borrow(f->client, 20, &third, &error), HF_TIMEOUT);
    hf_stats stats;
    hf_client_stats(f->client, &stats);
    assert_int_equal(stats.cl_active, 2);
    hf_conn_return(conn);
    hf_conn_discard(second);
    hf_client_stats(f->client, &stats);
    assert_int_equal(stats.cl_active, 0);
    assert_int_equal(stats.sv_idle, 1);
}

static void a_server_that_is_away_is_unavailable_and_one_that_is_silent_unknown(void **state)
{
    struct fixture *f = *state;
    redisReply *reply;
    hf_error error;
    hf_client *client;
    assert_int_equal(hf_client_open(hft_server_url(f->server), HF_CLIENT(.command_ms = 200), &client, NULL),
                     HF_OK);
    assert_int_equal(hf_command(client, &reply, &error, "PING"), HF_OK);
    freeReplyObject(reply);
    hft_server_freeze(f->server);
    hf_status silent = hf_command(client, &reply, &error, "PING");
    hft_server_thaw(f->server);
    hft_server_kill(f->server);
    hf_status away = HF_UNKNOWN; /* the first one may find the connection still standing */
    for (int i = 0; i < 100 && away == HF_UNKNOWN; i++)
        away = hf_command(client, &reply, &error, "PING");
    (void)hf_client_close(client, NULL);
    hft_server_restart(f->server);
    assert_int_equal(silent, HF_UNKNOWN);
    assert_int_equal(away, HF_UNAVAILABLE);
    assert_true(error.message[0] != 0);
}

enum { THREADS = 16, ROUNDS = 300 };

struct asker {
    pthread_t thread;
    struct fixture *f;
    int number, wrong;
};

static void *ask_for_echoes(void *arg)
{
    struct asker *me = arg;
    for (int i = 0; i < ROUNDS; i++) {
        char text[32];
        redisReply *reply;
        (void)snprintf(text, sizeof text, "%d-%d", me->number, i);
        if (hf_command(me->f->client, &reply, NULL, "ECHO %s", text) != HF_OK) {
            me->wrong++;
            continue;
        }
        me->wrong += reply->str == NULL || strcmp(reply->str, text) != 0;
        freeReplyObject(reply);
    }
    return NULL;
}

static void every_thread_gets_its_own_answers(void **state)
{
    struct fixture *f = *state;
    struct asker askers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.f = f, .number = i};
        (void)pthread_create(&askers[i].thread, NULL, ask_for_echoes, &askers[i]);
    }
    int wrong = 0;
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(askers[i].thread, NULL);
        wrong += askers[i].wrong;
    }
    assert_int_equal(wrong, 0);
}

struct borrower {
    pthread_t thread;
    hf_client *client;
    hf_status status;
};

static void *borrow_for_ever(void *arg)
{
    struct borrower *me = arg;
    hf_conn *conn;
    me->status = hf_conn_borrow(me->client, HF_FOREVER, &conn, NULL);
    if (me->status == HF_OK)
        hf_conn_return(conn);
    return NULL;
}

static void a_connection_may_come_back_after_the_client_is_closed(void **state)
{
    struct fixture *f = *state;
    hf_client *client;
    hf_conn *first, *second;
    struct borrower waiter;
    hf_stats stats = {0};
    assert_int_equal(
        hf_client_open(hft_server_url(f->server), HF_CLIENT(.max_connections = 2), &client, NULL), HF_OK);
    assert_int_equal(hf_conn_borrow(client, 0, &first, NULL), HF_OK);
    assert_int_equal(hf_conn_borrow(client, 0, &second, NULL), HF_OK);
    waiter.client = client;
    (void)pthread_create(&waiter.thread, NULL, borrow_for_ever, &waiter);
    while (stats.cl_waiting == 0)
        hf_client_stats(client, &stats);
    (void)hf_client_close(client, NULL);
    (void)pthread_join(waiter.thread, NULL);
    hf_conn_return(first);
    hf_conn_discard(second);
    assert_int_equal(waiter.status, HF_CLOSED);
}

static void a_fork_child_has_neither_commands_nor_connections(void **state)
{
    struct fixture *f = *state;
    hf_conn *conn;
    assert_int_equal(hf_conn_borrow(f->client, 0, &conn, NULL), HF_OK);
    pid_t child = fork();
    if (child == 0) {
        redisReply *reply;
        hf_conn *other;
        bool good = hf_command(f->client, &reply, NULL, "PING") == HF_FORKED &&
                    hf_conn_borrow(f->client, 0, &other, NULL) == HF_FORKED && hf_conn_context(conn) == NULL;
        hf_conn_return(conn);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    (void)waitpid(child, &status, 0);
    redisReply *reply = redisCommand(hf_conn_context(conn), "PING");
    assert_int_equal(status, 0);
    assert_non_null(reply);
    freeReplyObject(reply);
    hf_conn_return(conn);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_command_gives_its_reply_whatever_it_is),
        TEST(what_a_shared_connection_cannot_carry_is_invalid),
        TEST(bad_arguments_are_named),
        TEST(a_transaction_runs_on_a_borrowed_connection),
        TEST(a_server_that_is_away_is_unavailable_and_one_that_is_silent_unknown),
        TEST(every_thread_gets_its_own_answers),
        TEST(a_connection_may_come_back_after_the_client_is_closed),
        TEST(a_fork_child_has_neither_commands_nor_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
