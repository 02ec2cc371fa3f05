/* SPDX-License-Identifier: MIT */
/* recheck_test.c - one process waits for many names: its commands to the server meanwhile, and that it gets every
 * lock. */
#include "core/protocol/scripts.h"
#include "tests/support/script_source.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { NAMES = 200 };

struct crowd {
    char names[NAMES][24];
    hf_lease *held[NAMES];
    struct hft_taker takers[NAMES];
};

/* `client` waits for all of them, and stands in every queue. */
static struct crowd *gather(struct fixture *f, hf_client *client)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(crowd->names[i], sizeof crowd->names[i], "many:%d", i);
        crowd->held[i] = must_take(f, f->a, crowd->names[i], HF_LOCK(.lease_ms = 60000));
        hft_take(&crowd->takers[i], client, crowd->names[i], HF_LOCK(.wait_ms = HF_FOREVER));
    }
    for (int i = 0; i < NAMES; i++)
        HFT_UNTIL_TRUE(hft_queued(f->server, crowd->names[i]) == 1);
    return crowd;
}

/* All but one (-1: all) get theirs. */
static void serve(struct fixture *f, struct crowd *crowd, int but)
{
    for (int i = 0; i < NAMES; i++)
        assert_int_equal(hf_lease_release(crowd->held[i], &f->error), HF_OK);
    for (int i = 0; i < NAMES; i++) {
        hf_status status = hft_taken(&crowd->takers[i]);
        assert_true((status == HF_OK) == (i != but));
        if (status == HF_OK)
            assert_int_equal(hf_lease_release(crowd->takers[i].lease, &f->error), HF_OK);
    }
    assert_int_equal(hft_lock_keys(f->server), 0);
    free(crowd);
}

static uint64_t commands(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.remote_commands;
}

/* The number of sleeps of the program's own threads, and of the threads. */
static int64_t sleeps(int *threads)
{
    int64_t sum = 0;
    char path[300], line[200], comm[32] = "";
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    *threads = 0;
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *file = task->d_name[0] == '.' || atoi(task->d_name) == getpid() ? NULL : fopen(path, "r");
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            long long count;
            (void)sscanf(line, "Name: %31s", comm);
            if (strncmp(comm, "hf-", 3) != 0 && sscanf(line, "voluntary_ctxt_switches: %lld", &count) == 1) {
                sum += count;
                ++*threads;
            }
        }
        if (file != NULL)
            (void)fclose(file);
    }
    (void)closedir(tasks);
    return sum;
}

/* Each re-check of a name writes its record: HSET. */
static void waiting_for_many_names_costs_few_commands_and_no_wakes(void **state)
{
    struct fixture *f = *state;
    struct crowd *crowd = gather(f, f->b);
    int threads, still;
    int64_t rechecks = hft_server_calls(f->server, "hset");
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "hset") >= rechecks + NAMES); /* each has been asked about once */
    int64_t slept = sleeps(&threads);
    uint64_t sent = commands(f->b);
    rechecks = hft_server_calls(f->server, "hset");
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "hset") >= rechecks + 8 * NAMES);
    sent = commands(f->b) - sent;
    slept = sleeps(&still) - slept;
    rechecks = hft_server_calls(f->server, "hset") - rechecks;
    print_message("%lld re-checks in %llu commands; %d waiting threads woke %lld times\n", (long long)rechecks,
                  (unsigned long long)sent, threads, (long long)slept);
    assert_true(threads >= NAMES && still == threads);
    assert_true(sent < (uint64_t)rechecks / 4);
    assert_true(slept < 4 * NAMES); /* they sleep in spells that grow; 8 times each if a re-check woke its own */
    serve(f, crowd, -1);
}

static void each_of_many_names_is_got_though_no_message_says_so(void **state)
{
    struct fixture *f = *state;
    hf_stats stats;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER deaf on >pw ~* &* +@all -subscribe"));
    hf_client *deaf = hft_client(f->server, HF_CLIENT(.user = "deaf", .password = "pw"));
    serve(f, gather(f, deaf), -1);
    hf_client_stats(deaf, &stats);
    assert_int_equal(stats.hand_offs_taken, 0);
    assert_int_equal(hf_client_close(deaf, NULL), HF_OK);
}

static void a_name_whose_keys_are_spoilt_harms_no_other(void **state)
{
    struct fixture *f = *state;
    struct crowd *crowd = gather(f, f->b);
    freeReplyObject(hft_server_ask(f->server, "SET hf:wait:{many:7}:hf:{many:7} theirs"));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:queue:{many:9}:hf:{many:9}"));
    HFT_UNTIL_TRUE(atomic_load(&crowd->takers[7].done)); /* it asked alone, and was told */
    HFT_UNTIL_TRUE(hft_queued(f->server, "many:9") == 1); /* its place is back */
    freeReplyObject(hft_server_ask(f->server, "DEL hf:wait:{many:7}:hf:{many:7}"));
    serve(f, crowd, 7);
}

/* The script by itself: what it leaves alone, and says so. */
static int64_t ask(struct fixture *f, const char *not_after, const char *token)
{
    redisReply *reply = hft_server_ask(
        f->server, "EVAL %s 3 hf:{k} hf:queue:{k}:hf:{k} hf:wait:{k}:hf:{k} %s 1200000 77 1300 %s",
        hft_script_source(hfi_script_recheck), not_after, token);
    assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
    assert_int_equal(reply->elements, 2);
    int64_t said = reply->element[1]->type == REDIS_REPLY_INTEGER ? reply->element[1]->integer : 1;
    freeReplyObject(reply);
    return said;
}

static void the_script_changes_nothing_unless_one_plainly_waits(void **state)
{
    struct fixture *f = *state;
    const char *never = "9000000000000000";
    assert_int_equal(ask(f, never, "one"), 0); /* nobody holds it */
    freeReplyObject(hft_server_ask(f->server, "SET hf:{k} other PX 60000"));
    assert_int_equal(ask(f, never, "one"), 0); /* it is not in the queue */
    assert_int_equal(hft_lock_keys(f->server), 1);
    freeReplyObject(hft_server_ask(f->server, "ZADD hf:queue:{k}:hf:{k} 1 first 2 one"));
    assert_int_equal(ask(f, never, "one"), 0); /* the first of the queue has no record: there is room to be made */
    assert_int_equal(ask(f, "1", "first"), 0); /* too late */
    assert_int_equal(hft_lock_keys(f->server), 2);
    assert_int_equal(ask(f, never, "first"), 1);
    assert_int_equal(ask(f, never, "one"), 1);
    assert_int_equal(hft_server_ask_integer(f->server, "HLEN hf:wait:{k}:hf:{k}"), 2);
    freeReplyObject(hft_server_ask(f->server, "SET hf:{k} first PX 60000"));
    assert_int_equal(ask(f, never, "first"), 0); /* it has it */
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{k}"));
    freeReplyObject(hft_server_ask(f->server, "LPUSH hf:{k} foreign"));
    assert_int_equal(ask(f, never, "first"), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(waiting_for_many_names_costs_few_commands_and_no_wakes),
        TEST(each_of_many_names_is_got_though_no_message_says_so),
        TEST(a_name_whose_keys_are_spoilt_harms_no_other),
        TEST(the_script_changes_nothing_unless_one_plainly_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
