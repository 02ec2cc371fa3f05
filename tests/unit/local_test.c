/* SPDX-License-Identifier: MIT */
/* local_test.c - the values that a process saw last: found again, replaced, near or not, and limited in number. */
#include "core/fetch/local.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define END INT64_C(9000000000)

static int open_cache(void **state)
{
    hf_client *client = calloc(1, sizeof *client);
    if (client == NULL)
        return -1;
    client->local_bytes = 100000;
    *state = client;
    return hfi_local_open(client) ? 0 : -1;
}

static int close_cache(void **state)
{
    hf_client *client = *state;
    hfi_local_free(client);
    hfi_local_free(client); /* twice is once */
    free(client);
    return 0;
}

static const struct hfi_name *named(const char *key)
{
    static struct hfi_name name;
    name = hfi_name_of(HFI_FETCH, key, strlen(key));
    return &name;
}

static struct hfi_seen looked(hf_client *client, const char *key)
{
    struct hfi_seen seen;
    hfi_local_look(client, named(key), &seen);
    hfi_body_unref(seen.body);
    return seen;
}

static void remember_with(hf_client *client, const char *key, const char *value, struct hfi_seen saw)
{
    saw.body = hfi_body_copy(value, strlen(value));
    assert_non_null(saw.body);
    (void)hfi_local_observe(client, named(key), &saw, 0);
    hfi_body_unref(saw.body);
}

/* Seen by one who looked before so many forgets. */
static void remember(hf_client *client, const char *key, const char *value, uint64_t forgets)
{
    remember_with(client, key, value, (struct hfi_seen){.stored = true, .forgets = forgets});
}

static void saw(hf_client *client, const char *key, const char *value, int64_t end_ns, int64_t load_ms)
{
    remember_with(client, key, value,
                  (struct hfi_seen){.end_ns = end_ns, .asked_ns = 1, .load_ms = load_ms, .stored = true,
                                    .forgets = looked(client, key).forgets});
}

/* "" if nothing is remembered. */
static const char *look(hf_client *client, const char *key)
{
    static char value[64]; /* the beginning is enough */
    struct hfi_seen seen;
    hfi_local_look(client, named(key), &seen);
    (void)snprintf(value, sizeof value, "%s", seen.body == NULL ? "" : seen.body->data);
    hfi_body_unref(seen.body);
    return value;
}

static void a_seen_value_is_found_with_its_times(void **state)
{
    struct hfi_seen seen;
    saw(*state, "k", "value", END, 300);
    hfi_local_look(*state, named("k"), &seen);
    assert_string_equal(seen.body->data, "value");
    assert_int_equal(seen.end_ns, END);
    assert_int_equal(seen.asked_ns, 1);
    assert_int_equal(seen.load_ms, 300);
    hfi_body_unref(seen.body);
    assert_string_equal(look(*state, "K"), "");
    assert_string_equal(look(*state, "kk"), "");
}

static void the_same_bytes_again_are_kept_once(void **state)
{
    struct hfi_seen seen;
    saw(*state, "k", "value", END, 300);
    hfi_local_look(*state, named("k"), &seen);
    struct hfi_seen again = {.body = hfi_body_copy("value", 5), .stored = true};
    assert_non_null(again.body);
    (void)hfi_local_observe(*state, named("k"), &again, 0);
    assert_ptr_equal(again.body, seen.body); /* the caller's reference has moved */
    hfi_body_unref(again.body);
    hfi_body_unref(seen.body);
    hfi_local_look(*state, named("k"), &seen);
    assert_int_equal(seen.end_ns, END); /* 0: what is known stays */
    assert_int_equal(seen.load_ms, 300);
    hfi_body_unref(seen.body);
}

static void another_value_takes_the_place_and_has_an_end_of_its_own(void **state)
{
    struct hfi_seen seen;
    saw(*state, "k", "old", END, 300);
    saw(*state, "k", "new", 0, 0);
    hfi_local_look(*state, named("k"), &seen);
    assert_string_equal(seen.body->data, "new");
    assert_int_equal(seen.end_ns, 0);
    assert_int_equal(seen.load_ms, 300);
    hfi_body_unref(seen.body);
}

static void an_empty_value_and_none_are_two_things(void **state)
{
    struct hfi_seen seen;
    saw(*state, "k", "", END, 0);
    struct hfi_seen absent = {.body = hfi_body_absent(), .end_ns = END, .asked_ns = 1, .stored = true};
    assert_non_null(absent.body);
    (void)hfi_local_observe(*state, named("k"), &absent, 0);
    hfi_body_unref(absent.body);
    hfi_local_look(*state, named("k"), &seen);
    assert_true(seen.body->absent);
    hfi_body_unref(seen.body);
}

#define SHARDS 64 /* of local.c: what follows happens in one of them */

/* The i-th key of one shard. */
static const char *of_one_shard(int i)
{
    static char key[16];
    for (int number = 0;; number++) {
        (void)snprintf(key, sizeof key, "k%d", number);
        if (named(key)->hash % SHARDS == 7 && i-- == 0)
            return key;
    }
}

static const char *ten_thousand(char letter)
{
    static char big[10001];
    memset(big, letter, 10000);
    return big;
}

static void what_nobody_asked_for_goes_first_and_the_oldest_of_that(void **state)
{
    hf_client *client = *state;
    for (int i = 0; i < 9; i++)
        saw(client, of_one_shard(i), ten_thousand('x'), END, 0);
    assert_int_equal(look(client, of_one_shard(0))[0], 'x'); /* `saw` has looked before it was there, which is no look at it */
    assert_int_equal(look(client, of_one_shard(2))[0], 'x');
    saw(client, of_one_shard(9), ten_thousand('x'), END, 0); /* passes 0 by, takes 1 */
    saw(client, of_one_shard(10), ten_thousand('x'), END, 0); /* goes on with 2, passes it by, takes 3 */
    assert_string_equal(look(client, of_one_shard(1)), "");
    assert_string_equal(look(client, of_one_shard(3)), "");
    for (int i = 4; i <= 10; i++)
        assert_int_equal(look(client, of_one_shard(i))[0], 'x');
    assert_int_equal(look(client, of_one_shard(0))[0], 'x');
    assert_int_equal(look(client, of_one_shard(2))[0], 'x');
}

static void all_asked_for_the_hand_goes_round_once_and_takes_one(void **state)
{
    hf_client *client = *state;
    int left = 0;
    for (int i = 0; i < 9; i++)
        saw(client, of_one_shard(i), ten_thousand('x'), END, 0);
    for (int i = 0; i < 9; i++)
        assert_int_equal(look(client, of_one_shard(i))[0], 'x');
    saw(client, of_one_shard(9), ten_thousand('x'), END, 0);
    assert_int_equal(look(client, of_one_shard(0))[0], 'x'); /* the newest was the only one that nobody had asked for */
    assert_string_equal(look(client, of_one_shard(9)), "");
    for (int i = 0; i < 10; i++)
        left += look(client, of_one_shard(i))[0] == 'x';
    assert_int_equal(left, 9);
}

static void the_budget_is_one_for_all_shards(void **state)
{
    hf_client *client = *state;
    char key[16];
    int left = 0;
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "n%d", i);
        saw(client, key, ten_thousand('y'), END, 0);
    }
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "n%d", i);
        left += look(client, key)[0] == 'y';
    }
    assert_int_equal(left, 9);
}

/* ---- near ---- */

static bool read_near(hf_client *client, const char *key, const char *value, uint64_t changes)
{
    struct hfi_seen saw = {.body = hfi_body_copy(value, strlen(value)), .stored = true, .forgets = looked(client, key).forgets,
                           .near = {.epoch = 1, .read_ns = 5, .end_ns = END}};
    assert_non_null(saw.body);
    bool is_near = hfi_local_observe(client, named(key), &saw, changes);
    hfi_body_unref(saw.body);
    return is_near;
}

static struct hfi_local_amount amount(const hf_client *client)
{
    struct hfi_local_amount amount;
    hfi_local_count(client, &amount);
    return amount;
}

static void a_change_ends_what_is_near_and_what_is_on_its_way(void **state)
{
    hf_client *client = *state;
    uint64_t before = hfi_local_changes(client, named("k"));
    assert_true(read_near(client, "k", "value", before));
    assert_int_equal(looked(client, "k").near.epoch, 1);
    assert_int_equal(amount(client).near_values, 1);
    assert_true(amount(client).near_bytes > 5);
    hfi_local_changed(client, named("k"));
    assert_int_equal(looked(client, "k").near.epoch, 0);
    assert_string_equal(look(client, "k"), "value"); /* the last seen it still is */
    assert_int_equal(amount(client).near_values, 0);
    assert_int_equal(amount(client).near_bytes, 0);
    assert_false(read_near(client, "k", "value", before)); /* read before the change, kept after it */
    assert_int_equal(looked(client, "k").near.epoch, 0);
    assert_true(read_near(client, "k", "value", hfi_local_changes(client, named("k"))));
    hfi_local_forget(client, named("k"));
    assert_false(read_near(client, "k", "value", before + 1));
}

static void other_bytes_end_what_is_near_and_the_same_do_not(void **state)
{
    hf_client *client = *state;
    assert_true(read_near(client, "k", "value", 0));
    saw(client, "k", "value", END, 0);
    assert_int_equal(looked(client, "k").near.epoch, 1);
    saw(client, "k", "other", END, 0);
    assert_int_equal(looked(client, "k").near.epoch, 0);
    assert_int_equal(amount(client).near_bytes, 0);
}

static void what_makes_room_is_near_no_more(void **state)
{
    hf_client *client = *state;
    char key[16];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "n%d", i);
        assert_true(read_near(client, key, ten_thousand('z'), 0) || i > 8);
    }
    assert_int_equal(amount(client).near_values, 9);
}

static void a_value_larger_than_the_room_is_not_kept_and_evicts_none(void **state)
{
    hf_client *client = *state;
    char *big = malloc(100001);
    assert_non_null(big);
    memset(big, 'x', 100000);
    big[100000] = 0;
    saw(client, "small", "s", END, 0);
    saw(client, "big", big, END, 0);
    assert_string_equal(look(client, "big"), "");
    assert_string_equal(look(client, "small"), "s");
    free(big);
}

static void a_forgotten_value_is_gone(void **state)
{
    saw(*state, "k", "value", END, 300);
    hfi_local_forget(*state, named("other"));
    assert_string_equal(look(*state, "k"), "value");
    hfi_local_forget(*state, named("k"));
    assert_string_equal(look(*state, "k"), "");
    saw(*state, "k", "value", END, 300);
    assert_string_equal(look(*state, "k"), "value");
}

static void a_value_read_before_a_forget_is_not_kept_after_it(void **state)
{
    saw(*state, "k", "value", END, 300);
    struct hfi_seen reader = looked(*state, "k"), other = looked(*state, "other");
    hfi_local_forget(*state, named("k"));
    remember(*state, "k", "value", reader.forgets);
    assert_string_equal(look(*state, "k"), "");
    remember(*state, "other", "value", other.forgets);
    assert_string_equal(look(*state, "other"), "value");
    remember(*state, "k", "newer", looked(*state, "k").forgets);
    remember(*state, "k", "value", reader.forgets);
    assert_string_equal(look(*state, "k"), "newer");
}

static int64_t tell_time(void *now)
{
    return *(int64_t *)now;
}

/* A tag's index does not name what is over at the server. */
static void what_may_be_over_is_forgotten_whatever_its_key(void **state)
{
    enum { COMMAND_MS = 1000 };
    hf_client *client = *state;
    int64_t now = 100 * HFI_SECOND, just_alive = now + COMMAND_MS * HFI_MS + 2 * HFI_SECOND;
    const struct hfi_clock clock = {tell_time, &now};
    client->clock = &clock;
    client->command_ms = COMMAND_MS;
    saw(client, "over", "value", now - 1, 0);
    saw(client, "about to be over", "value", just_alive - 1000, 0); /* 2 % of the time since it was asked for, at 1 ns */
    saw(client, "alive", "value", just_alive + 200 * HFI_MS, 0);
    saw(client, "for ever", "value", HFI_NEVER, 0);
    saw(client, "not stored", "value", 0, 0);
    struct hfi_seen reader = looked(client, "another");
    hfi_local_forget_over(client, false);
    assert_string_equal(look(client, "over"), "");
    assert_string_equal(look(client, "about to be over"), "");
    assert_string_equal(look(client, "alive"), "value");
    assert_string_equal(look(client, "for ever"), "value");
    assert_string_equal(look(client, "not stored"), "");
    remember(client, "another", "value", reader.forgets); /* read before, whatever its key */
    assert_string_equal(look(client, "another"), "");
    hfi_local_forget_over(client, true);
    assert_string_equal(look(client, "alive"), "");
    assert_string_equal(look(client, "for ever"), "");
}

static void a_value_that_is_too_large_counts_as_no_forget(void **state)
{
    char *big = malloc(100001);
    assert_non_null(big);
    memset(big, 'x', 100000);
    big[100000] = 0;
    struct hfi_seen reader = looked(*state, "k");
    remember(*state, "k", big, reader.forgets);
    remember(*state, "k", "value", reader.forgets);
    assert_string_equal(look(*state, "k"), "value");
    free(big);
}

static void switched_off_it_remembers_nothing(void **state)
{
    (void)state;
    hf_client client = {.local_bytes = HF_OFF};
    assert_true(hfi_local_open(&client));
    saw(&client, "k", "value", END, 300);
    assert_string_equal(look(&client, "k"), "");
    hfi_local_forget(&client, named("k"));
    hfi_local_free(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_seen_value_is_found_with_its_times, open_cache,
                                        close_cache),
        cmocka_unit_test_setup_teardown(the_same_bytes_again_are_kept_once, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(another_value_takes_the_place_and_has_an_end_of_its_own, open_cache,
                                        close_cache),
        cmocka_unit_test_setup_teardown(an_empty_value_and_none_are_two_things, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(what_nobody_asked_for_goes_first_and_the_oldest_of_that, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(all_asked_for_the_hand_goes_round_once_and_takes_one, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(the_budget_is_one_for_all_shards, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(a_change_ends_what_is_near_and_what_is_on_its_way, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(other_bytes_end_what_is_near_and_the_same_do_not, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(what_makes_room_is_near_no_more, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(a_value_larger_than_the_room_is_not_kept_and_evicts_none,
                                        open_cache, close_cache),
        cmocka_unit_test_setup_teardown(a_forgotten_value_is_gone, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(a_value_read_before_a_forget_is_not_kept_after_it, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(what_may_be_over_is_forgotten_whatever_its_key, open_cache, close_cache),
        cmocka_unit_test_setup_teardown(a_value_that_is_too_large_counts_as_no_forget, open_cache, close_cache),
        cmocka_unit_test(switched_off_it_remembers_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
