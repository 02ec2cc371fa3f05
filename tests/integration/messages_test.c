/* SPDX-License-Identifier: MIT */
/* messages_test.c - forged messages of an attacker that may PUBLISH, and real breaks, which come as the same
 * messages. */
#include "core/context/context.h"
#include "core/lock/key_events.h"
#include "core/lock/inbound.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"
#include "tests/support/messages.h"
#include "tests/support/pages.h"
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { TOKEN = 200, LONG_MS = 60000 }; /* a third of it is longer than any of this may take */

#define LONG HF_LOCK(.lease_ms = LONG_MS, .wait_ms = 20000)

static char *waiter_of(struct fixture *f, const char *name)
{
    HFT_UNTIL_TRUE(hft_queued(f->server, name) == 1);
    redisReply *reply = hft_server_ask(f->server, "ZRANGE hf:queue:{%s}:hf:{%s} 0 0", name, name);
    char *token = strdup(reply->element[0]->str);
    freeReplyObject(reply);
    return token;
}

/* Waits until the client of this token has processed all earlier messages, and has its answers. */
static void hears_out(struct fixture *f, const char *token, hf_client *another)
{
    char forgotten[TOKEN];
    hf_lease *lease;
    (void)snprintf(forgotten, sizeof forgotten, "hf1:%.32s:fff:0123456789abcdef%s", token + 4,
                   strchr(strchr(strchr(token + 4, ':') + 1, ':') + 1, ':'));
    freeReplyObject(hft_server_ask(f->server, "SET hf:{forgotten} %s PX %d", forgotten, LONG_MS));
    hft_send_message(f->server, "R %s hf:{forgotten}", forgotten);
    lease = must_take(f, another, "forgotten", LONG);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void made_up_breaks_take_nothing_from_anybody(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    char held[TOKEN], theirs[TOKEN], other[TOKEN];
    hf_lease *lease = must_take(f, f->a, "held", LONG), *his = must_take(f, f->b, "theirs", LONG);
    hf_lease *spent = must_take(f, f->b, "spent", LONG);
    hft_take(&taker, f->b, "held", LONG);
    char *waiter = waiter_of(f, "held");
    hft_held_by(f->server, "held", held, sizeof held);
    hft_held_by(f->server, "theirs", theirs, sizeof theirs);
    hft_held_by(f->server, "spent", other, sizeof other);
    assert_int_equal(hf_lease_release(spent, NULL), HF_OK);
    const char *const rests[] = {held, theirs, "-", "x"};
    for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
        hft_send_message(f->server, "B %s %s", held, rests[i]);
        hft_send_message(f->server, "B %s %s", theirs, rests[i]);
        hft_send_message(f->server, "B %s %s", other, rests[i]);
        hft_send_message(f->server, "B %s %s", waiter, rests[i]);
        hears_out(f, theirs, f->a);
        assert_int_equal(hf_lease_verify(lease, &f->error), HF_OK);
        free(waiter);
        waiter = waiter_of(f, "held");
    }
    hft_other_random(held);
    hft_send_message(f->server, "B %s %s", held, held);
    hft_other_random(held);
    hft_other_random(theirs);
    hft_send_message(f->server, "B %s %s", theirs, held);
    hears_out(f, held, f->b);
    hears_out(f, theirs, f->a);
    assert_true(hf_lease_is_valid(lease) && hf_lease_is_valid(his));
    assert_int_equal(hf_lease_verify(lease, NULL), HF_OK);
    assert_int_equal(hf_lease_verify(his, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(his, NULL), HF_OK);
    free(waiter);
}

static void a_break_is_asked_about_at_once(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    int64_t max_hold_ms[] = {0, LONG_MS};
    for (int i = 0; i < 2; i++) {
        hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = 2 * LONG_MS, .max_hold_ms = max_hold_ms[i], .stop_ms = LONG_MS - 1));
        HFT_UNTIL_TRUE(max_hold_ms[i] == 0 || hf_lease_reason(lease) != HF_REASON_NONE);
        hft_take(&taker, f->b, "x", LONG);
        free(waiter_of(f, "x"));
        assert_int_equal(hf_lock_break(f->b, "x", NULL, &f->error), HF_OK);
        assert_int_equal(hft_taken(&taker), HF_OK);
        assert_false(hf_lease_is_valid(lease));
        assert_int_equal(hf_lease_reason(lease), HF_REASON_REVOKED);
        assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
        assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    }
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_question_about_the_last_of_a_lease_does_not_lengthen_it(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN];
    hf_lease *lease = must_take(f, f->a, "x", HF_LOCK(.lease_ms = 2000, .max_hold_ms = 1900, .stop_ms = 1800));
    HFT_UNTIL_TRUE(hf_lease_reason(lease) != HF_REASON_NONE);
    hft_held_by(f->server, "x", token, sizeof token);
    HFT_UNTIL_TRUE(hf_lease_remaining_ms(lease) < 1000);
    uint64_t before = hft_renewals(f->a);
    int64_t pttl = hft_server_ask_integer(f->server, "PTTL hf:{x}");
    hft_send_message(f->server, "B %s -", token);
    HFT_UNTIL_TRUE(hft_renewals(f->a) > before);
    assert_in_range(hf_lease_remaining_ms(lease), 0, 1000);
    assert_in_range(hft_server_ask_integer(f->server, "PTTL hf:{x}"), 0, pttl);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

/* The second takes away what the first has left. */
static void two_breaks_leave_no_key_behind(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "x", LONG);
    bool had = false;
    assert_int_equal(hf_lock_break(f->b, "x", &had, &f->error), HF_OK);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hft_lock_exists(f->server, "x"), 1); /* guard_ms to stop */
    assert_int_equal(hf_lock_break(f->b, "x", &had, &f->error), HF_OK);
    assert_true(had);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

/* The time to stop holds however often the lease is broken, and for every waiter; but a close ends it. */
static void a_revoked_holder_has_its_time_to_stop(void **state)
{
    struct fixture *f = *state;
    char token[TOKEN];
    hf_client *holder = hft_client(f->server, HF_CLIENT(.guard_ms = LONG_MS));
    hf_lease *lease = must_take(f, holder, "x", LONG);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hf_lock_break(f->b, "x", NULL, &f->error), HF_OK);
        HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
        hft_held_by(f->server, "x", token, sizeof token);
        hft_send_message(f->server, "R %s hf:{x}", token);
        hears_out(f, token, f->b);
        assert_int_equal(hft_lock_exists(f->server, "x"), 1);
    }
    assert_int_equal(hf_client_close(holder, &f->error), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

/* It was handed the lock and has not heard of it; then that is broken. */
static void a_break_of_what_a_waiter_owns_without_knowing_keeps_its_place(void **state)
{
    struct fixture *f = *state;
    struct hft_taker first, next;
    char token[TOKEN];
    freeReplyObject(hft_server_ask(f->server, "SET hf:{x} hf1:of-a-dead-one PX %d", LONG_MS));
    hft_take(&first, f->b, "x", LONG);
    char *waiter = waiter_of(f, "x");
    /* Its client subscribes to the foreign key's events when it has read its place from the answer. */
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EVAL %s 0",
                                          "return redis.call('PUBSUB', 'NUMSUB', '__keyspace@0__:hf:{x}')[2]") == 1);
    hft_take(&next, f->a, "x", LONG);
    HFT_UNTIL_TRUE(hft_queued(f->server, "x") == 2);
    (void)snprintf(token, sizeof token, "%s", waiter);
    hft_revoke(token);
    assert_int_equal(hft_server_ask_integer(f->server, /* at once: a re-check in between would take a new place, the last */
                                            "EVAL %s 2 hf:queue:{x}:hf:{x} hf:{x} %s %s %d",
                                            "redis.call('ZREM', KEYS[1], ARGV[1]) redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) "
                                            "return redis.call('PUBLISH', 'hf:c:' .. string.sub(ARGV[1], 5, 36), "
                                            "'B ' .. ARGV[1] .. ' ' .. ARGV[2])",
                                            waiter, token, LONG_MS),
                     1);
    assert_int_equal(hft_taken(&first), HF_OK);
    assert_int_equal(hf_lease_verify(first.lease, NULL), HF_OK);
    assert_false(atomic_load(&next.done));
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
    assert_int_equal(hft_taken(&next), HF_OK);
    assert_int_equal(hf_lease_release(next.lease, NULL), HF_OK);
    free(waiter);
}

static void a_load_of_a_forgotten_value_is_told_at_once_and_not_stored(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "outdated", .stay = true};
    struct hft_fetcher fetcher;
    hft_fetch(&fetcher, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .lease_ms = LONG_MS, .wait_ms = 20000));
    HFT_UNTIL_TRUE(atomic_load(&page.inside) == 1);
    assert_int_equal(hf_fetch_forget(f->b, "page", &f->error), HF_OK);
    HFT_UNTIL_TRUE(atomic_load(&page.unwanted));
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    assert_false(fetcher.value->stored);
    hf_value_free(fetcher.value);
    assert_int_equal(hft_server_ask_integer(f->server, "EXISTS page"), 0);
}

static void a_made_up_forget_costs_a_load_nothing(void **state)
{
    struct fixture *f = *state;
    struct hft_page page = {.data = "good", .stay = true};
    struct hft_fetcher fetcher;
    hft_fetch(&fetcher, f->a, "page", HF_FETCH(.load = hft_load, .arg = &page, .lease_ms = LONG_MS, .wait_ms = 20000));
    HFT_UNTIL_TRUE(atomic_load(&page.inside) == 1);
    redisReply *reply = hft_server_ask(f->server, "GET hf:fetch:{page}");
    uint64_t before = hft_renewals(f->a);
    hft_send_message(f->server, "B %s -", reply->str);
    HFT_UNTIL_TRUE(hft_renewals(f->a) > before || atomic_load(&page.unwanted));
    atomic_store(&page.stay, false);
    assert_int_equal(hft_fetched(&fetcher), HF_OK);
    assert_false(atomic_load(&page.unwanted));
    assert_true(fetcher.value->stored);
    hf_value_free(fetcher.value);
    freeReplyObject(reply);
}

static void a_flood_of_breaks_is_a_question_in_ten_milliseconds(void **state)
{
    enum { BREAKS = 3000 };
    struct fixture *f = *state;
    char token[TOKEN];
    hf_lease *lease = must_take(f, f->a, "x", LONG);
    hft_held_by(f->server, "x", token, sizeof token);
    int64_t before = hft_server_calls(f->server, "evalsha"), began = hft_boottime_ms();
    for (int i = 0; i < BREAKS; i++)
        hft_send_message(f->server, "B %s -", token);
    hears_out(f, token, f->b);
    int64_t questions = hft_server_calls(f->server, "evalsha") - before;
    assert_in_range(questions, 1, (hft_boottime_ms() - began) / 10 + 20);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static double cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

enum { TOLD = 64, TIMES = 1000 };

/* CPU time of this thread for a thousand messages about tokens in retirement, while that many are. */
static double cpu_of_messages(struct fixture *f, int open)
{
    static char said[TOLD][TOKEN + 32];
    hf_lease **leases = calloc((size_t)open, sizeof *leases);
    for (int i = 0; i < open; i++) {
        char name[16], token[TOKEN];
        (void)snprintf(name, sizeof name, "n%d", i);
        leases[i] = must_take(f, f->a, name, LONG);
        if (i % (open / TOLD) != 0 || i / (open / TOLD) >= TOLD)
            continue;
        hft_held_by(f->server, name, token, sizeof token);
        (void)snprintf(said[i / (open / TOLD)], sizeof said[0], "R %s hf:{%s}", token, name);
    }
    hft_server_freeze(f->server);
    for (int i = 0; i < open; i++)
        (void)hf_lease_post_release(leases[i], NULL);
    double took = cpu_ns();
    for (int i = 0; i < TIMES; i++)
        hfi_inbound_message(f->a, f->a->identity.channel, HFI_CHANNEL_SIZE, said[i % TOLD], strlen(said[i % TOLD]));
    took = cpu_ns() - took;
    hft_server_thaw(f->server);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
    free(leases);
    return took;
}

/* For a thousand events of keys that are watched, while so many are. */
static double cpu_of_events(struct fixture *f, int watched)
{
    struct hfi_lock **locks = calloc((size_t)watched, sizeof(struct hfi_lock *));
    char channel[64];
    for (int i = 0; i < watched; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%d", i);
        struct hfi_name taken = hfi_name_of(HFI_MUTEX, name, strlen(name));
        assert_int_equal(hfi_table_get(f->a, &taken, &locks[i], NULL), HF_OK);
        hfi_mutex_lock(locks[i]->mutex);
        hfi_key_events_watch(locks[i], true);
        hfi_mutex_unlock(locks[i]->mutex);
    }
    double took = cpu_ns();
    for (int i = 0; i < TIMES; i++) {
        int size = snprintf(channel, sizeof channel, "__keyspace@0__:hf:{n%d}", i % TOLD * (watched / TOLD));
        hfi_inbound_message(f->a, channel, (size_t)size, "del", 3);
    }
    took = cpu_ns() - took;
    for (int i = 0; i < watched; i++) {
        hfi_mutex_lock(locks[i]->mutex);
        hfi_key_events_watch(locks[i], false);
        hfi_mutex_unlock(locks[i]->mutex);
        hfi_table_unref(locks[i]);
    }
    free(locks);
    return took;
}

static void a_message_costs_the_same_however_much_the_client_has(void **state)
{
    struct fixture *f = *state;
    double (*const costs[])(struct fixture *, int) = {cpu_of_messages, cpu_of_events};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        double few = 1e12, many = 1e12;
        for (int j = 0; j < 3; j++) { /* the least of three: other programs on this machine take the caches, not this
                                       * thread's CPU time */
            double took = costs[i](f, 256);
            few = took < few ? took : few;
            took = costs[i](f, 16 * 256);
            many = took < many ? took : many;
        }
        if (many > 4 * few)
            fail_msg("%s: %.1f times as much for sixteen times as many", i == 0 ? "messages" : "events", many / few);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(made_up_breaks_take_nothing_from_anybody),
        TEST(a_break_is_asked_about_at_once),
        TEST(a_question_about_the_last_of_a_lease_does_not_lengthen_it),
        TEST(two_breaks_leave_no_key_behind),
        TEST(a_revoked_holder_has_its_time_to_stop),
        TEST(a_break_of_what_a_waiter_owns_without_knowing_keeps_its_place),
        TEST(a_load_of_a_forgotten_value_is_told_at_once_and_not_stored),
        TEST(a_made_up_forget_costs_a_load_nothing),
        TEST(a_flood_of_breaks_is_a_question_in_ten_milliseconds),
        TEST(a_message_costs_the_same_however_much_the_client_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
