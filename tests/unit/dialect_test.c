/* SPDX-License-Identifier: MIT */
/* dialect_test.c - what an option's text makes of a dialect. */
#include "core/protocol/dialect.h"
#include "core/protocol/key.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hfi_dialect *keys_of(const char *text, const char *template, const char *word, struct hfi_keys *keys)
{
    struct hfi_dialect *dialect;
    assert_int_equal(hfi_dialect_make(text, template, &dialect, NULL), HF_OK);
    struct hfi_name name = hfi_name_in(dialect, hfi_name_of(HFI_MUTEX, word, strlen(word)));
    assert_int_equal(hfi_keys_make(NULL, &name, keys, NULL), HF_OK);
    return dialect;
}

static void assert_key(const char *text, const char *template, const char *key)
{
    struct hfi_keys keys;
    struct hfi_dialect *dialect = keys_of(text, template, "x", &keys);
    assert_string_equal(keys.lock, key);
    hfi_keys_done(&keys);
    free(dialect);
}

static void each_has_the_key_that_its_programs_use(void **state)
{
    (void)state;
    assert_key("warlock", NULL, "x:lock");
    assert_key("redlock", NULL, "x");
    assert_key("redis-semaphore", NULL, "mutex:x");
    assert_key("redis-py", NULL, "x");
    assert_key("shedlock", NULL, "job-lock:default:x");
    assert_key("rueidislock", NULL, "rueidislock:0:x");
    assert_key("python-redis-lock", NULL, "lock:x");
    assert_key("spring", NULL, "locks:x");
    assert_key("spring:orders", NULL, "orders:x");
    assert_key("redisson", NULL, "x");
    assert_key("setnx", NULL, "x");
    assert_key("counter", NULL, "x");
    assert_key("tokens:3", NULL, "SEMAPHORE:x:AVAILABLE");
}

static void a_template_of_the_users_goes_first(void **state)
{
    (void)state;
    assert_key("warlock", "jobs/%s", "jobs/x");
    assert_key("spring:orders", "%s!", "x!");
}

static void a_members_events_are_those_of_its_set(void **state)
{
    (void)state;
    struct hfi_keys keys;
    size_t size;
    struct hfi_dialect *dialect = keys_of("set:busy", NULL, "x", &keys);
    const char *watched = hfi_watched_key(&keys, &size);
    assert_int_equal(size, 4);
    assert_memory_equal(watched, "busy", 4);
    assert_string_equal(keys.lock, "busy:x");
    hfi_keys_done(&keys);
    free(dialect);
}

/* What is no string could have the queue of a string's lock otherwise, and one be granted by the other's release. */
static void no_other_key_has_the_queue_of_a_mark(void **state)
{
    static const struct {
        const char *text, *name, *queue, *other; /* a lock key of a string with the same tag that would fit, were M behind it */
    } marks[] = {
        {"counter", "{a}x", "hf:queue:count:{a}:{a}x", "count:{a}x"},
        {"redisson", "{a}x", "hf:queue:hash:{a}:{a}x", "hash:{a}x"},
        {"set", "{a}x", "hf:queue:set5:{a}:locks:{a}x", "set5:locks:{a}x"},
        {"tokens", "{a}x", "hf:queue:list:{a}:SEMAPHORE:{a}x:AVAILABLE", "list:SEMAPHORE:{a}x:AVAILABLE"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        struct hfi_keys keys, other_keys;
        struct hfi_side_keys sides, other_sides;
        struct hfi_dialect *dialect = keys_of(marks[i].text, NULL, marks[i].name, &keys);
        struct hfi_dialect *other = keys_of("redlock", NULL, marks[i].other, &other_keys);
        assert_true(hfi_side_keys_print(&keys, &sides) && hfi_side_keys_print(&other_keys, &other_sides));
        assert_string_equal(sides.queue, marks[i].queue);
        assert_string_not_equal(sides.queue, other_sides.queue);
        hfi_side_keys_done(&sides);
        hfi_side_keys_done(&other_sides);
        hfi_keys_done(&keys);
        hfi_keys_done(&other_keys);
        free(dialect);
        free(other);
    }
}

static void a_name_is_another_lock_in_another_dialect(void **state)
{
    (void)state;
    struct hfi_dialect *one, *other;
    assert_int_equal(hfi_dialect_make("warlock", NULL, &one, NULL), HF_OK);
    assert_int_equal(hfi_dialect_make("redlock", NULL, &other, NULL), HF_OK);
    struct hfi_name plain = hfi_name_of(HFI_MUTEX, "x", 1), spoken = hfi_name_in(one, plain);
    assert_int_equal(spoken.use, HFI_DIALECT);
    assert_ptr_equal(spoken.dialect, one);
    assert_int_equal(hfi_name_in(NULL, plain).hash, plain.hash);
    assert_int_not_equal(spoken.hash, plain.hash);
    free(one);
    free(other);
}

static bool is_late(const char *text, redisReply reply)
{
    struct hfi_dialect *dialect;
    assert_int_equal(hfi_dialect_make(text, NULL, &dialect, NULL), HF_OK);
    bool is = dialect->is_late(&reply);
    free(dialect);
    return is;
}

#define REPLY(...) ((redisReply){__VA_ARGS__})

static void each_knows_what_was_free_before_it_was_tracked(void **state)
{
    (void)state;
    static char zero[] = "0", below[] = "-1", one[] = "1", wrong[] = "WRONGTYPE of another type", denied[] = "NOPERM no";
    const redisReply nil = REPLY(.type = REDIS_REPLY_NIL), error = REPLY(.type = REDIS_REPLY_ERROR, .str = wrong, .len = strlen(wrong));
    assert_true(is_late("redlock", nil));
    assert_false(is_late("redlock", REPLY(.type = REDIS_REPLY_STRING, .str = zero, .len = 1)));
    assert_false(is_late("redisson", error));
    assert_true(is_late("counter", nil));
    assert_true(is_late("counter", REPLY(.type = REDIS_REPLY_STRING, .str = zero, .len = 1)));
    assert_true(is_late("counter", REPLY(.type = REDIS_REPLY_STRING, .str = below, .len = 2)));
    assert_false(is_late("counter", REPLY(.type = REDIS_REPLY_STRING, .str = one, .len = 1)));
    assert_true(is_late("set", REPLY(.type = REDIS_REPLY_INTEGER, .integer = 0)));
    assert_false(is_late("set", REPLY(.type = REDIS_REPLY_INTEGER, .integer = 1)));
    assert_false(is_late("set", error));
    assert_true(is_late("tokens", error));
    assert_false(is_late("tokens", nil)); /* all are out */
    assert_false(is_late("tokens", REPLY(.type = REDIS_REPLY_ERROR, .str = denied, .len = strlen(denied))));
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",         "Warlock",   "warlock:", "warlock:x",   "set:",     "set:100%",
                                        "tokens:0", "tokens:-1", "tokens:x", "tokens: 2",   "tokens:+2", "tokens:2 ",
                                        "tokens:",  "tokens:1025", "redlock ", "counter:9"};
    hf_error error;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct hfi_dialect *dialect;
        if (hfi_dialect_make(wrong[i], NULL, &dialect, &error) != HF_INVALID)
            fail_msg("\"%s\" is taken for a dialect", wrong[i]);
        assert_non_null(strstr(error.message, "dialect"));
    }
    struct hfi_dialect *dialect;
    assert_int_equal(hfi_dialect_make("set", "%s", &dialect, &error), HF_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_the_key_that_its_programs_use),
        cmocka_unit_test(a_template_of_the_users_goes_first),
        cmocka_unit_test(a_members_events_are_those_of_its_set),
        cmocka_unit_test(no_other_key_has_the_queue_of_a_mark),
        cmocka_unit_test(a_name_is_another_lock_in_another_dialect),
        cmocka_unit_test(each_knows_what_was_free_before_it_was_tracked),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("dialect", tests, NULL, NULL);
}
