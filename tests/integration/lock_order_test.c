/* SPDX-License-Identifier: MIT */
/* lock_order_test.c - .check_order: deadlocks that did not happen, but could. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct { /* what the checked client of the running test has logged about orders */
    pthread_mutex_t mutex;
    char text[200000];
} said = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void write_log(hf_log_level level, const char *line, void *arg)
{
    hf_client **client = arg;
    hf_stats stats;
    if (strncmp(line, "lock order", 10) != 0)
        return;
    hf_client_stats(*client, &stats); /* no mutex of the library is held */
    (void)pthread_mutex_lock(&said.mutex);
    size_t at = strlen(said.text);
    (void)snprintf(said.text + at, sizeof said.text - at, "%d %s\n", (int)level, line);
    (void)pthread_mutex_unlock(&said.mutex);
}

static int times(const char *words)
{
    int count = 0;
    (void)pthread_mutex_lock(&said.mutex);
    for (const char *at = said.text; (at = strstr(at, words)) != NULL; at += strlen(words))
        count++;
    (void)pthread_mutex_unlock(&said.mutex);
    return count;
}

static int reports(void)
{
    return times("closes a circle");
}

static hf_client *checked; /* the client of the running test */

static int set_up(void **state)
{
    if (hft_pair_set_up(state) != 0)
        return -1;
    struct fixture *f = *state;
    said.text[0] = 0;
    checked = hft_client(f->server, HF_CLIENT(.check_order = true, .log = write_log, .log_arg = &checked));
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    int wrong = !hft_closes(f->server, checked, &f->error);
    return hft_pair_tear_down(state) - wrong;
}

static void must_release(hf_lease *lease)
{
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

struct nesting {
    const char *outer, *inner;
    hf_status status;
};

static void *nest_here(void *arg)
{
    struct nesting *nesting = arg;
    hf_lease *outer, *inner = NULL;
    nesting->status = hf_lock_acquire(checked, nesting->outer, NULL, &outer, NULL);
    if (nesting->status == HF_OK)
        nesting->status = hf_lock_acquire(checked, nesting->inner, NULL, &inner, NULL);
    (void)hf_lease_release(inner, NULL);
    (void)hf_lease_release(outer, NULL);
    return NULL;
}

/* A thread of its own takes both and has ended on return: it meets nobody. */
static void nest(const char *outer, const char *inner)
{
    struct nesting nesting = {.outer = outer, .inner = inner};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, nest_here, &nesting), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(nesting.status, HF_OK);
}

static void two_orders_are_reported_once_though_nobody_waited(void **state)
{
    (void)state;
    nest("from:1", "to:20");
    nest("from:1", "to:20");
    assert_string_equal(said.text, "");
    nest("to:33", "from:444");
    assert_int_equal(reports(), 1);
    nest("to:33", "from:444");
    nest("to:20", "from:1");
    nest("from:1", "to:20");
    assert_int_equal(reports(), 1);
}

static void a_report_has_both_orders_with_names_classes_and_stacks(void **state)
{
    (void)state;
    nest("from:1", "to:20");
    nest("to:33", "from:444");
    assert_int_equal(times("2 lock order 1: lock \"from:444\" is wanted while lock \"to:33\" is held"), 1);
    const char *new = strstr(said.text, "\"to:#\", then \"from:#\": thread ");
    const char *old = strstr(said.text, "\"from:#\", then \"to:#\": thread ");
    assert_non_null(new);
    assert_non_null(old);
    assert_true(new < old);
    assert_non_null(strstr(new, "held lock \"to:33\" and wanted lock \"from:444\", at\n2 lock order 1:     "));
    assert_non_null(strstr(old, "held lock \"from:1\" and wanted lock \"to:20\", at\n2 lock order 1:     "));
    const char *frame = strstr(new, "integration_lock_order"); /* the program's name, in its frames */
    assert_true(frame != NULL && frame < old);
    assert_non_null(strstr(old, "integration_lock_order"));
}

static void three_classes_in_a_ring_are_reported(void **state)
{
    (void)state;
    nest("a", "b");
    nest("b", "c");
    nest("a", "c");
    assert_string_equal(said.text, "");
    nest("c", "a"); /* the short way back is a, then c */
    assert_int_equal(times("circle of 2 classes"), 1);
    nest("x", "y");
    nest("y", "z");
    nest("z", "x");
    assert_int_equal(times("lock order 2: lock \"x\" is wanted while lock \"z\" is held, which closes a circle of 3 classes"), 1);
    assert_int_equal(times("lock order 2: \"z\", then \"x\""), 1);
    assert_int_equal(times("lock order 2: \"x\", then \"y\""), 1);
    assert_int_equal(times("lock order 2: \"y\", then \"z\""), 1);
    assert_int_equal(reports(), 2);
}

static void one_class_twice_is_no_order(void **state)
{
    struct fixture *f = *state;
    nest("row:1", "row:2");
    nest("row:2", "row:1");
    hf_lease *one = must_take(f, checked, "one", HF_LOCK(.order_class = "same"));
    hf_lease *two = must_take(f, checked, "two", HF_LOCK(.order_class = "same"));
    must_release(one);
    one = must_take(f, checked, "one", HF_LOCK(.order_class = "same"));
    must_release(one);
    must_release(two);
    assert_string_equal(said.text, "");
    assert_false(hft_dump_says(checked, "order "));
}

static void an_order_class_stands_for_the_name(void **state)
{
    struct fixture *f = *state;
    hf_lease *high = must_take(f, checked, "row:1", HF_LOCK(.order_class = "high"));
    must_release(must_take(f, checked, "row:2", HF_LOCK(.order_class = "low")));
    must_release(high);
    hf_lease *low = must_take(f, checked, "row:3", HF_LOCK(.order_class = "low"));
    must_release(must_take(f, checked, "row:4", HF_LOCK(.order_class = "high")));
    must_release(low);
    assert_int_equal(times("\"low\", then \"high\": thread "), 1);
    assert_int_equal(times("\"high\", then \"low\": thread "), 1);
    assert_int_equal(reports(), 1);
}

static void a_try_and_a_cancelled_wait_count(void **state)
{
    struct fixture *f = *state;
    hf_cancel *cancel;
    hf_lease *none;
    nest("a", "b");
    nest("a", "c");
    hf_lease *others = must_take(f, f->b, "a", NULL);
    hf_lease *held = must_take(f, checked, "b", NULL);
    assert_int_equal(hf_lock_acquire(checked, "a", NULL, &none, NULL), HF_BUSY);
    assert_int_equal(reports(), 1);
    must_release(held);
    held = must_take(f, checked, "c", NULL);
    assert_int_equal(hf_cancel_open(checked, &cancel, NULL), HF_OK);
    hf_cancel_fire(cancel);
    assert_int_equal(hf_lock_acquire(checked, "a", HF_LOCK(.wait_ms = 20000, .cancel = cancel), &none, NULL), HF_CANCELED);
    assert_int_equal(reports(), 2);
    hf_cancel_close(cancel);
    must_release(held);
    must_release(others);
}

/* The report comes before the wait: here nobody ends it but the test. */
static void a_real_deadlock_is_reported_before_it_is_waited_for(void **state)
{
    struct fixture *f = *state;
    struct hft_taker taker;
    hf_cancel *cancel;
    nest("a", "b");
    hf_lease *others = must_take(f, f->b, "a", NULL);
    hf_lease *held = must_take(f, checked, "b", HF_LOCK(.owner = 5));
    assert_int_equal(hf_cancel_open(checked, &cancel, NULL), HF_OK);
    hft_take(&taker, checked, "a", HF_LOCK(.owner = 5, .wait_ms = HF_FOREVER, .cancel = cancel));
    HFT_UNTIL_TRUE(hft_waiting_here(checked, "a") == 1);
    int found = reports(), owner = times("owner 5 held lock \"b\" and wanted lock \"a\"");
    hf_cancel_fire(cancel);
    assert_int_equal(hft_taken(&taker), HF_CANCELED);
    assert_int_equal(found, 1);
    assert_int_equal(owner, 1);
    hf_cancel_close(cancel);
    must_release(held);
    must_release(others);
}

static void ones_own_lock_is_no_order(void **state)
{
    struct fixture *f = *state;
    hf_lease *again;
    hf_lease *a = must_take(f, checked, "a", HF_LOCK(.reentrant = true));
    hf_lease *b = must_take(f, checked, "b", NULL);
    assert_ptr_equal(must_take(f, checked, "a", HF_LOCK(.reentrant = true)), a);
    assert_int_equal(hf_lock_acquire(checked, "a", NULL, &again, NULL), HF_DEADLOCK);
    assert_int_equal(hf_lock_acquire(checked, "b", NULL, &again, NULL), HF_DEADLOCK);
    must_release(a);
    must_release(must_take(f, checked, "c", NULL)); /* a is held once more */
    must_release(a);
    must_release(b);
    assert_string_equal(said.text, "");
    nest("c", "a");
    assert_int_equal(reports(), 1);
}

static void what_is_over_is_not_held(void **state)
{
    struct fixture *f = *state;
    must_release(must_take(f, checked, "a", NULL));
    must_release(must_take(f, checked, "b", NULL));
    hf_lease *lost = must_take(f, checked, "c", HF_LOCK(.max_hold_ms = 100));
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lost));
    must_release(must_take(f, checked, "b", NULL));
    assert_int_equal(hf_lease_release(lost, NULL), HF_LOST);
    nest("b", "a");
    nest("b", "c");
    assert_string_equal(said.text, "");
    nest("c", "b"); /* but this is one */
    assert_int_equal(reports(), 1);
}

static void *take_and_end(void *arg)
{
    hf_lease **lease = arg;
    if (hf_lock_acquire(checked, "a", NULL, lease, NULL) != HF_OK)
        *lease = NULL;
    return NULL;
}

static void a_lease_counts_for_its_owner_only(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    hf_lease *lease;
    assert_int_equal(pthread_create(&thread, NULL, take_and_end, &lease), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_non_null(lease);
    must_release(must_take(f, checked, "b", NULL)); /* a is held by a thread that is gone */
    assert_int_equal(hf_lease_bind(lease, NULL), HF_OK);
    must_release(must_take(f, checked, "c", NULL));
    assert_int_equal(hf_lease_unbind(lease, NULL), HF_OK);
    must_release(must_take(f, checked, "d", NULL));
    must_release(lease);
    lease = must_take(f, checked, "a", HF_LOCK(.owner = 7));
    must_release(must_take(f, checked, "e", HF_LOCK(.owner = 7 + 64))); /* listed beside it, and not its */
    must_release(must_take(f, checked, "f", HF_LOCK(.owner = 7)));
    must_release(must_take(f, checked, "d", NULL));
    must_release(lease);
    nest("b", "a");
    nest("d", "a");
    nest("e", "a");
    assert_string_equal(said.text, "");
    nest("c", "a");
    nest("f", "a");
    assert_int_equal(reports(), 2);
    assert_int_equal(times("owner 7 held lock \"a\" and wanted lock \"f\""), 1);
}

static hf_status load_under_lock(hf_loading *loading, void *arg)
{
    hf_lease *lease;
    hf_status status = hf_lock_acquire(checked, arg, NULL, &lease, NULL);
    if (status == HF_OK)
        status = hf_loading_set(loading, "x", 1);
    (void)hf_lease_release(lease, NULL);
    return status;
}

static void a_loader_holds_its_load(void **state)
{
    struct fixture *f = *state;
    hf_value *value;
    char name[] = "users";
    assert_int_equal(hf_fetch(checked, "user:1", HF_FETCH(.load = load_under_lock, .arg = name), &value, NULL), HF_OK);
    hf_value_free(value);
    hf_lease *lease = must_take(f, checked, "users", NULL);
    char other[] = "log";
    assert_int_equal(hf_fetch(checked, "user:1", HF_FETCH(.load = load_under_lock, .arg = other), &value, NULL), HF_OK);
    hf_value_free(value);
    assert_int_equal(reports(), 0); /* a hit waits for nobody */
    assert_int_equal(hf_fetch(checked, "user:2", HF_FETCH(.load = load_under_lock, .arg = other), &value, NULL), HF_OK);
    hf_value_free(value);
    must_release(lease);
    assert_int_equal(reports(), 1);
    assert_int_equal(times("load of \"user:2\" is wanted while lock \"users\" is held"), 1);
    assert_int_equal(times("load of \"user:#\", then \"users\": thread "), 1);
    nest("users", "user:9"); /* the lock of that name is another class */
    nest("user:9", "x");
    assert_int_equal(reports(), 1);
}

/* 92 locks of classes of their own, each taken under all before it: 4,186 orders. */
static void too_many_orders_end_the_check_with_one_line(void **state)
{
    struct fixture *f = *state;
    hf_lease *leases[92];
    for (int i = 0; i < 92; i++) {
        char name[] = {(char)('a' + i / 10), (char)('a' + i % 10), 0};
        leases[i] = must_take(f, checked, name, NULL);
        assert_int_equal(times("check has stopped"), i >= 91);
    }
    for (int i = 0; i < 92; i++)
        must_release(leases[i]);
    nest("ab", "aa");
    assert_int_equal(times("check has stopped"), 1);
    assert_int_equal(reports(), 0);
}

static void a_fork_child_frees_what_was_listed(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, checked, "a", NULL);
    pid_t child = fork();
    if (child == 0) {
        hf_lease *none;
        bool good = hf_lock_acquire(checked, "b", NULL, &none, NULL) == HF_FORKED &&
                    hf_lease_unbind(lease, NULL) == HF_FORKED && hf_lease_release(lease, NULL) == HF_FORKED &&
                    hf_client_close(checked, NULL) == HF_FORKED;
        _exit(good ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    must_release(must_take(f, checked, "b", NULL));
    must_release(lease);
    nest("b", "a");
    assert_int_equal(reports(), 1);
}

static void the_dump_lists_the_orders(void **state)
{
    struct fixture *f = *state;
    char uri[200];
    hf_client *client;
    nest("a:1", "b");
    assert_true(hft_dump_says(checked, "order \"a:#\", then \"b\"\n"));
    (void)snprintf(uri, sizeof uri, "%s?check_order=1", hft_server_url(f->server));
    assert_int_equal(hf_client_open(uri, NULL, &client, &f->error), HF_OK);
    hf_lease *lease = must_take(f, client, "x", NULL);
    must_release(must_take(f, client, "y", NULL));
    must_release(lease);
    assert_true(hft_dump_says(client, "order \"x\", then \"y\"\n"));
    lease = must_take(f, f->a, "x", NULL);
    must_release(must_take(f, f->a, "y", NULL));
    must_release(lease);
    assert_false(hft_dump_says(f->a, "order \"x\"")); /* it does not check */
    lease = must_take(f, client, "left", NULL);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_CLOSED);
}

#define THREADS 4
#define ROUNDS  100

static void *nest_at_random(void *arg)
{
    static const char *const names[] = {"p:1", "q:1", "r:1", "s:1"};
    unsigned *seed = arg;
    hf_lease *outer, *inner;
    for (int i = 0; i < ROUNDS; i++) {
        int first = rand_r(seed) / 16 % 4, second = rand_r(seed) / 16 % 4;
        bool task = rand_r(seed) / 16 % 2 == 0;
        if (hf_lock_acquire(checked, names[first], HF_LOCK(.reentrant = true, .owner = task ? 3 : 0), &outer, NULL) != HF_OK)
            continue;
        if (rand_r(seed) / 16 % 2 == 0)
            (void)hf_lease_bind(outer, NULL);
        if (hf_lock_acquire(checked, names[second], HF_LOCK(.reentrant = true, .owner = task ? 3 : 0), &inner, NULL) == HF_OK)
            (void)hf_lease_release(inner, NULL);
        (void)hf_lease_release(outer, NULL);
    }
    return NULL;
}

/* For the sanitizers; and twelve orders of four classes close a limited number of circles, each told once. */
static void many_threads_are_checked_at_once(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    unsigned seeds[THREADS] = {1, 2, 3, 4};
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, nest_at_random, &seeds[i]), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_in_range(reports(), 1, 12);
}

/* ---- several locks at once, and locks of an event loop ---- */

static void take_both(const char *one, const char *other)
{
    const char *const names[] = {one, other};
    hf_lease *lease;
    assert_int_equal(hf_multilock_acquire(checked, names, 2, NULL, &lease, NULL), HF_OK);
    must_release(lease);
}

static void a_multilock_takes_its_names_in_the_order_of_their_keys(void **state)
{
    (void)state;
    take_both("b", "a");
    take_both("a", "b");
    nest("a", "b"); /* the same order */
    assert_int_equal(reports(), 0);
    nest("b", "a");
    assert_int_equal(reports(), 1);
}

static void names_that_share_a_class_have_no_order_in_a_multilock(void **state)
{
    (void)state;
    take_both("1:x", "2:y");
    take_both("1:y", "2:x");
    assert_int_equal(reports(), 0);
}

static void a_try_of_several_that_begins_with_the_busy_one_has_no_other_order(void **state)
{
    struct fixture *f = *state;
    const char *const names[] = {"a", "b"};
    hf_lease *lease, *busy = must_take(f, f->b, "b", NULL);
    assert_int_equal(hf_multilock_acquire(checked, names, 2, NULL, &lease, NULL), HF_BUSY);
    must_release(busy);
    take_both("a", "b");
    assert_int_equal(reports(), 0);
}

static void what_is_held_already_comes_before_all_names_of_a_multilock(void **state)
{
    struct fixture *f = *state;
    nest("b", "z");
    hf_lease *held = must_take(f, checked, "z", NULL);
    take_both("b", "c");
    must_release(held);
    assert_int_equal(reports(), 1);
}

static void a_task_that_begins_to_acquire_has_an_order_too(void **state)
{
    (void)state;
    hf_pending *pending;
    hf_lease *outer, *inner;
    nest("in", "out");
    assert_int_equal(hf_lock_acquire(checked, "out", HF_LOCK(.owner = 7), &outer, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire_start(checked, "in", HF_LOCK(.owner = 7), NULL, NULL, &pending, NULL), HF_OK);
    assert_int_equal(reports(), 1);
    HFT_UNTIL_TRUE(hf_pending_is_done(pending));
    assert_int_equal(hf_pending_take(pending, &inner, NULL), HF_OK);
    must_release(inner);
    must_release(outer);
}

/* Neither of a thread nor of a task: the name is that of a lock, too. */
static void permits_have_no_order(void **state)
{
    (void)state;
    hf_pending *pending;
    hf_lease *permit, *lease;
    assert_int_equal(hf_semaphore_acquire_start(checked, "pool", 2, 1, HF_LOCK(.owner = 7), NULL, NULL, &pending, NULL), HF_OK);
    HFT_UNTIL_TRUE(hf_pending_is_done(pending));
    assert_int_equal(hf_pending_take(pending, &permit, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(checked, "b", HF_LOCK(.owner = 7), &lease, NULL), HF_OK);
    must_release(lease);
    must_release(permit);
    nest("b", "pool");
    assert_int_equal(reports(), 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(two_orders_are_reported_once_though_nobody_waited),
        TEST(permits_have_no_order),
        TEST(a_report_has_both_orders_with_names_classes_and_stacks),
        TEST(three_classes_in_a_ring_are_reported),
        TEST(one_class_twice_is_no_order),
        TEST(an_order_class_stands_for_the_name),
        TEST(a_try_and_a_cancelled_wait_count),
        TEST(a_real_deadlock_is_reported_before_it_is_waited_for),
        TEST(ones_own_lock_is_no_order),
        TEST(what_is_over_is_not_held),
        TEST(a_lease_counts_for_its_owner_only),
        TEST(a_loader_holds_its_load),
        TEST(too_many_orders_end_the_check_with_one_line),
        TEST(a_fork_child_frees_what_was_listed),
        TEST(the_dump_lists_the_orders),
        TEST(many_threads_are_checked_at_once),
        TEST(a_multilock_takes_its_names_in_the_order_of_their_keys),
        TEST(names_that_share_a_class_have_no_order_in_a_multilock),
        TEST(a_try_of_several_that_begins_with_the_busy_one_has_no_other_order),
        TEST(what_is_held_already_comes_before_all_names_of_a_multilock),
        TEST(a_task_that_begins_to_acquire_has_an_order_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
