/* SPDX-License-Identifier: MIT */
/* table_test.c - the table of locks alone: the locks in it are made and freed here, and counted. */
#include "core/lock/table.h"
#include "core/lock/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STAY    512  /* locks that nobody uses: table.h */
#define NAMES   3000
#define FEW     200  /* locks: none of 64 shards has more than 16 of them */
#define THREADS 4
#define STEPS   60000

static hf_client client;
static _Atomic(int) made, alive, wrong;
static bool looks_meanwhile;

static void name_of(int number, char out[24])
{
    (void)snprintf(out, 24, "name:%d", number);
}

static struct hfi_lock *get(enum hfi_use use, int number)
{
    struct hfi_lock *lock;
    char name[24];
    name_of(number, name);
    struct hfi_name taken = hfi_name_of(use, name, strlen(name));
    return hfi_table_get(&client, &taken, &lock, NULL) == HF_OK ? lock : NULL;
}

static bool is(const struct hfi_lock *lock, int number)
{
    char name[24];
    name_of(number, name);
    return lock != NULL && strcmp(hfi_keys_name(&lock->keys), name) == 0;
}

/* What the table calls of the floor above it, instead of lock.c. */

hf_status hfi_lock_new(hf_client *of, const struct hfi_name *name, struct hfi_lock **lock, hf_error *error)
{
    (void)error;
    struct hfi_lock *fresh = calloc(1, sizeof *fresh + 1 + name->size + 1);
    if (fresh == NULL)
        return HF_NOMEM;
    fresh->client = of;
    fresh->keys.use = (uint8_t)name->use;
    fresh->keys.lock = (char *)(fresh + 1); /* empty: the name is behind its NUL */
    fresh->keys.name_size = (uint16_t)name->size;
    memcpy(hfi_keys_name(&fresh->keys), name->text, name->size);
    atomic_fetch_add(&made, 1);
    atomic_fetch_add(&alive, 1);
    for (int i = 0; looks_meanwhile && i < STAY / 4; i++) { /* the table is being changed: a mutex is held */
        struct hfi_lock *other = get(HFI_MUTEX, i);
        hfi_table_unref(other);
    }
    *lock = fresh;
    return HF_OK;
}

void hfi_lock_free(struct hfi_lock *lock)
{
    atomic_fetch_sub(&alive, 1);
    memset(lock, 0xee, sizeof *lock);
    free(lock);
}

static int open_table(void **state)
{
    (void)state;
    memset(&client, 0, sizeof client);
    atomic_store(&made, 0);
    atomic_store(&wrong, 0);
    looks_meanwhile = false;
    return hfi_table_open(&client) ? 0 : -1;
}

static int close_table(void **state)
{
    (void)state;
    hfi_table_free(&client);
    return atomic_load(&alive) == 0 ? 0 : -1;
}

static void use_names(int from, int to)
{
    for (int i = from; i < to; i++) {
        struct hfi_lock *lock = get(HFI_MUTEX, i);
        assert_true(is(lock, i));
        hfi_table_unref(lock);
    }
}

static void a_name_in_use_is_one_lock(void **state)
{
    (void)state;
    struct hfi_lock *lock = get(HFI_MUTEX, 1), *fetch = get(HFI_FETCH, 1);
    use_names(2, NAMES);
    assert_ptr_equal(get(HFI_MUTEX, 1), lock);
    assert_ptr_equal(get(HFI_FETCH, 1), fetch);
    assert_ptr_not_equal(lock, fetch);
    for (int i = 0; i < 2; i++) {
        hfi_table_unref(lock);
        hfi_table_unref(fetch);
    }
}

static void a_name_that_comes_again_is_not_made_again(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++)
        use_names(0, 64);
    assert_int_equal(atomic_load(&made), 64);
}

static void so_many_stay_and_no_more(void **state)
{
    (void)state;
    use_names(0, NAMES);
    assert_int_equal(atomic_load(&alive), STAY);
    hfi_table_forget(&client);
    assert_int_equal(atomic_load(&alive), 0);
    use_names(0, 10); /* and it goes on */
    assert_int_equal(atomic_load(&alive), 10);
}

/* Also after a peak, which left the shards' slots in any order. */
static void few_locks_have_a_mutex_each(void **state)
{
    (void)state;
    struct hfi_lock *locks[NAMES];
    for (int peak = 0; peak < 2; peak++) {
        for (int i = 0; i < NAMES; i++)
            locks[i] = get(HFI_FETCH, i);
        for (int i = 0; i < NAMES; i++)
            hfi_table_unref(locks[(i * 7 + 5) % NAMES]);
        for (int i = 0; i < FEW; i++)
            locks[i] = get(HFI_FETCH, NAMES + i);
        int shared = 0;
        for (int i = 0; i < FEW; i++)
            for (int j = 0; j < i; j++)
                shared += locks[i]->mutex == locks[j]->mutex;
        assert_int_equal(shared, 0);
        for (int i = 0; i < FEW; i++)
            hfi_table_unref(locks[i]);
    }
}

static void a_fetch_goes_with_its_last_user(void **state)
{
    (void)state;
    struct hfi_lock *lock = get(HFI_FETCH, 7);
    hfi_table_ref(lock);
    hfi_table_unref(lock);
    assert_int_equal(atomic_load(&alive), 1);
    hfi_table_unref(lock);
    assert_int_equal(atomic_load(&alive), 0);
}

static void a_grant_number_finds_its_lock_while_it_is_there(void **state)
{
    (void)state;
    static struct hfi_lock *locks[NAMES];
    static uint64_t grants[NAMES];
    for (int i = 0; i < NAMES; i++) {
        locks[i] = get(HFI_FETCH, i);
        grants[i] = hfi_table_grant(&client, locks[i]);
    }
    for (int i = 0; i < NAMES; i++) {
        assert_ptr_equal(hfi_table_by_grant(&client, grants[i]), locks[i]);
        hfi_table_unref(locks[i]);
    }
    for (int i = 0; i < NAMES; i++)
        hfi_table_unref(locks[i]);
    for (int i = 0; i < NAMES; i++)
        assert_null(hfi_table_by_grant(&client, grants[i]));
    assert_null(hfi_table_by_grant(&client, UINT64_MAX)); /* anybody's number */
}

static void count_it(struct hfi_lock *lock, void *arg)
{
    (void)lock;
    ++*(int *)arg;
}

static void each_is_each(void **state)
{
    (void)state;
    static struct hfi_lock *locks[NAMES];
    int count = 0;
    for (int i = 0; i < NAMES; i++)
        locks[i] = get(HFI_FETCH, i);
    for (int i = 0; i < NAMES; i += 2)
        hfi_table_unref(locks[i]);
    hfi_table_each(&client, count_it, &count);
    assert_int_equal(count, NAMES / 2);
    for (int i = 1; i < NAMES; i += 2)
        hfi_table_unref(locks[i]);
}

/* With a mutex for the look-up this one would wait for itself. */
static void a_present_lock_is_found_while_the_table_changes(void **state)
{
    (void)state;
    use_names(0, STAY / 4);
    looks_meanwhile = true;
    (void)alarm(60);
    for (int i = NAMES - 64; i < NAMES; i++)
        hfi_table_unref(get(HFI_FETCH, i));
    (void)alarm(0);
    assert_int_equal(atomic_load(&made), STAY / 4 + 64);
}

static void *come_and_go(void *arg)
{
    unsigned rng = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < STEPS; i++) {
        rng = rng * 1664525u + 1013904223u;
        int number = (int)((rng >> 8) % (i % 3 == 0 ? NAMES : 40u));
        struct hfi_lock *lock = get(HFI_MUTEX, number);
        uint64_t grant = hfi_table_grant(&client, lock);
        struct hfi_lock *same = hfi_table_by_grant(&client, grant);
        struct hfi_lock *any = hfi_table_by_grant(&client, rng >> 4 & 0xffff), *again = get(HFI_MUTEX, number);
        if (!is(lock, number) || same != lock || again != lock ||
            (any != NULL && (any->client != &client || strncmp(hfi_keys_name(&any->keys), "name:", 5) != 0)))
            atomic_fetch_add(&wrong, 1);
        if (any != NULL)
            hfi_table_unref(any);
        hfi_table_unref(again);
        hfi_table_unref(same);
        hfi_table_unref(lock);
    }
    return NULL;
}

static void threads_come_and_go(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(atomic_load(&alive) <= STAY);
    assert_true(atomic_load(&made) > NAMES);
}

static _Atomic(int) given_back; /* the number of the lock that is about to lose its last reference; -1: there are no more */

static void *look_at_lanes(void *arg)
{
    char text[24];
    (void)arg;
    for (int number; (number = atomic_load(&given_back)) >= 0;) {
        name_of(number, text);
        struct hfi_name name = hfi_name_of(HFI_FETCH, text, strlen(text));
        (void)hfi_table_lane_in_use(&client, &name);
    }
    return NULL;
}

static void who_looks_for_a_lane_keeps_no_lock(void **state)
{
    (void)state;
    pthread_t thread;
    int before = atomic_load(&alive);
    atomic_store(&given_back, 0);
    assert_int_equal(pthread_create(&thread, NULL, look_at_lanes, NULL), 0);
    for (int i = 0; i < 10 * STEPS; i++) {
        struct hfi_lock *lock = get(HFI_FETCH, i); /* the cache has none of them */
        atomic_store(&given_back, i);
        hfi_table_unref(lock);
    }
    atomic_store(&given_back, -1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&alive), before);
}

/* Makes so many other names that a name falls out of the cache. */
static void push_out(void)
{
    for (int i = 1; i <= NAMES; i++)
        hfi_table_unref(get(HFI_MUTEX, i));
}

static void the_only_reference_is_known_as_such(void **state)
{
    (void)state;
    struct hfi_lock *lock = get(HFI_MUTEX, 0), *fetch = get(HFI_FETCH, 0);
    assert_true(hfi_table_is_alone(lock, 1)); /* but for the cache's */
    assert_true(hfi_table_is_alone(fetch, 1));
    hfi_table_ref(lock);
    assert_false(hfi_table_is_alone(lock, 1));
    assert_true(hfi_table_is_alone(lock, 2));
    hfi_table_unref(lock);
    assert_ptr_equal(get(HFI_MUTEX, 0), lock);
    assert_false(hfi_table_is_alone(lock, 1));
    hfi_table_unref(lock);
    assert_true(hfi_table_is_alone(lock, 1));
    push_out();
    assert_true(hfi_table_is_alone(lock, 1));
    hfi_table_ref(lock);
    assert_false(hfi_table_is_alone(lock, 1)); /* a second one is not taken for the cache's */
    hfi_table_unref(lock);
    hfi_table_forget(&client);
    assert_true(hfi_table_is_alone(lock, 1));
    hfi_table_unref(lock);
    hfi_table_unref(fetch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_in_use_is_one_lock),
        TEST(a_name_that_comes_again_is_not_made_again),
        TEST(so_many_stay_and_no_more),
        TEST(few_locks_have_a_mutex_each),
        TEST(a_fetch_goes_with_its_last_user),
        TEST(a_grant_number_finds_its_lock_while_it_is_there),
        TEST(who_looks_for_a_lane_keeps_no_lock),
        TEST(the_only_reference_is_known_as_such),
        TEST(each_is_each),
        TEST(a_present_lock_is_found_while_the_table_changes),
        TEST(threads_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
