/* SPDX-License-Identifier: MIT */
/* aside_test.c - jobs for loader threads: one a key, in which order, how many, what ends them; and each copy of arg is freed
 * once, whatever becomes of its job. The threads are real; the clock stands still. */
#include "core/fetch/aside.h"
#include "tests/support/clock_fake.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct bench {
    struct hft_clock clock;
    hf_client client;
    _Atomic(bool) stay;      /* the jobs do not come back */
    _Atomic(int) inside, ran, copies, frees, copied_here;
    char order[200][8];      /* keys, as they ran */
    hf_status answers;       /* what the jobs come to */
    bool exits;              /* they end their thread */
    bool no_copy;
    int64_t came_ns;         /* when what they give was seen; 0: it is for all */
    pthread_t poster;
};

static struct bench *bench; /* run() is given the client alone */

struct copied {
    struct bench *of;
    _Atomic(int) freed;
};

static void *copy(void *arg)
{
    struct bench *b = arg;
    atomic_fetch_add(&b->copied_here, pthread_equal(pthread_self(), b->poster) != 0);
    if (b->no_copy)
        return NULL;
    struct copied *copied = calloc(1, sizeof *copied);
    copied->of = b;
    atomic_fetch_add(&b->copies, 1);
    return copied;
}

static void free_copy(void *arg)
{
    struct copied *copied = arg;
    if (atomic_fetch_add(&copied->freed, 1) != 0)
        abort(); /* twice */
    atomic_fetch_add(&copied->of->frees, 1);
    free(copied);
}

static void run(hf_client *client, struct hfi_aside_job *job)
{
    struct hfi_body *body = hfi_body_copy("made", 4);
    int at = atomic_fetch_add(&bench->ran, 1);
    (void)snprintf(bench->order[at], sizeof bench->order[at], "%s", job->key.text);
    atomic_fetch_add(&bench->inside, 1);
    while (atomic_load(&bench->stay))
        (void)poll(NULL, 0, 1);
    atomic_fetch_sub(&bench->inside, 1);
    job->status = bench->answers;
    if (bench->exits) {
        hfi_body_unref(body);
        pthread_exit(NULL);
    }
    if (job->status == HF_OK)
        (void)hfi_value_new(body, HF_LOADED, true, 1000, &job->value, NULL);
    if (bench->came_ns != 0)
        job->came_ns = bench->came_ns;
    hfi_body_unref(body);
    (void)client;
}

static int open_bench(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    hft_clock_init(&b->clock, INT64_C(1000000000));
    b->client.clock = &b->clock.clock;
    hfi_mutex_init(&b->client.cancel_mutex, HFI_RANK_INNER);
    b->poster = pthread_self();
    *state = bench = b;
    return hfi_aside_open(&b->client, 1, run) ? 0 : -1;
}

static int close_bench(void **state)
{
    struct bench *b = *state;
    atomic_store(&b->stay, false);
    atomic_store(&b->client.closing, true);
    hfi_aside_close(&b->client);
    hfi_aside_stop(&b->client);
    hfi_aside_free(&b->client);
    int wrong = b->copies != b->frees; /* of each test */
    if (wrong)
        print_error("%d copies, %d freed\n", b->copies, b->frees);
    hfi_mutex_destroy(&b->client.cancel_mutex);
    free(b);
    return -wrong;
}

static hf_status post(struct bench *b, const char *key, enum hfi_load_kind kind, struct hfi_aside_waiter *waiter, hf_error *error)
{
    struct hfi_name name = hfi_name_of(HFI_FETCH, key, strlen(key));
    hf_fetch_options options = {.size = sizeof options, .arg = b, .copy_arg = copy, .free_arg = free_copy, .retry_ms = 1000,
                                .stale_ms = 10, .where = HF_LOAD_ASIDE};
    const struct hfi_aside_order order = {.key = &name, .kind = kind, .options = &options};
    return hfi_aside_post(&b->client, &order, waiter, error);
}

static void occupy(struct bench *b, const char *key)
{
    atomic_store(&b->stay, true);
    assert_int_equal(post(b, key, HFI_LOAD, NULL, NULL), HF_OK);
    HFT_UNTIL_TRUE(b->inside == 1);
}

static hf_status waited(struct bench *b, struct hfi_aside_waiter *waiter)
{
    hf_status status = hfi_aside_wait(&b->client, waiter, NULL, HFI_NEVER);
    if (status == HF_OK)
        hfi_body_unref(waiter->body);
    return status != HF_OK ? status : waiter->status;
}

static void a_key_has_one_job_whose_result_is_for_all(void **state)
{
    struct bench *b = *state;
    struct hfi_aside_waiter first, second;
    occupy(b, "other");
    assert_int_equal(post(b, "page", HFI_LOAD, &first, NULL), HF_OK);
    assert_int_equal(post(b, "page", HFI_LOAD, &second, NULL), HF_OK);
    assert_int_equal(post(b, "page", HFI_REFRESH, NULL, NULL), HF_OK);
    assert_int_equal(hfi_aside_queued(&b->client), 1);
    assert_int_equal(b->copies, 2);
    assert_int_equal(b->copied_here, 2); /* in this thread */
    atomic_store(&b->stay, false);
    assert_int_equal(waited(b, &first), HF_OK);
    assert_int_equal(waited(b, &second), HF_OK);
    assert_true(first.is_owner);
    assert_false(second.is_owner);
    assert_int_equal(second.source, HF_LOADED);
    assert_int_equal(second.fresh_ms, 1000);
    assert_int_equal(second.stale_ms, 10);
    assert_int_equal(b->ran, 2);
}

/* It may have read that there is none because the value was forgotten after it was seen. */
static void who_joins_after_the_value_was_seen_asks_again(void **state)
{
    struct bench *b = *state;
    struct hfi_aside_waiter first, second, late;
    occupy(b, "other");
    assert_int_equal(post(b, "page", HFI_LOAD, &first, NULL), HF_OK);
    assert_int_equal(post(b, "page", HFI_LOAD, &second, NULL), HF_OK);
    hft_clock_move_ms(&b->clock, 5);
    b->came_ns = hfi_now(&b->clock.clock);
    assert_int_equal(post(b, "page", HFI_LOAD, &late, NULL), HF_OK);
    atomic_store(&b->stay, false);
    assert_int_equal(waited(b, &first), HF_OK);
    assert_int_equal(waited(b, &second), HF_OK);
    assert_int_equal(waited(b, &late), HF_BUSY);
    assert_int_equal(b->ran, 2);
}

static void loads_come_before_refreshes_and_the_oldest_first(void **state)
{
    static const char *const expected[] = {"busy", "c", "d", "b", "a", "e"};
    struct bench *b = *state;
    struct hfi_aside_waiter last;
    occupy(b, "busy");
    (void)post(b, "a", HFI_REFRESH, NULL, NULL);
    (void)post(b, "b", HFI_REFRESH, NULL, NULL);
    (void)post(b, "c", HFI_LOAD, NULL, NULL);
    (void)post(b, "d", HFI_LOAD, NULL, NULL);
    (void)post(b, "b", HFI_LOAD, NULL, NULL); /* it is waited for now: behind those that were before */
    (void)post(b, "e", HFI_REFRESH, &last, NULL);
    atomic_store(&b->stay, false);
    assert_int_equal(waited(b, &last), HF_OK);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_string_equal(b->order[i], expected[i]);
}

static void a_full_queue_refuses_and_copies_nothing(void **state)
{
    struct bench *b = *state;
    hf_error error;
    char key[8];
    occupy(b, "busy");
    for (int i = 0; i < HFI_LOADS_QUEUED; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        assert_int_equal(post(b, key, i % 2 == 0 ? HFI_LOAD : HFI_REFRESH, NULL, NULL), HF_OK);
    }
    assert_int_equal(post(b, "more", HFI_LOAD, NULL, &error), HF_LIMIT);
    assert_string_equal(error.hint, "raise loaders");
    assert_int_equal(post(b, "more", HFI_REFRESH, NULL, NULL), HF_LIMIT);
    assert_int_equal(post(b, "0", HFI_LOAD, NULL, NULL), HF_OK); /* has its job */
    assert_int_equal(b->client.counters.loads_refused, 2);
    assert_int_equal(b->copies, HFI_LOADS_QUEUED + 1);
}

static void after_a_failure_a_refresh_pauses(void **state)
{
    struct bench *b = *state;
    struct hfi_aside_waiter waiter;
    b->answers = HF_LOAD_FAILED;
    assert_int_equal(post(b, "page", HFI_REFRESH, &waiter, NULL), HF_OK);
    assert_int_equal(waited(b, &waiter), HF_LOAD_FAILED);
    hft_clock_move_ms(&b->clock, 999);
    assert_int_equal(post(b, "page", HFI_REFRESH, NULL, NULL), HF_BUSY);
    assert_int_equal(b->copies, 1);
    assert_int_equal(post(b, "other", HFI_REFRESH, &waiter, NULL), HF_OK);
    assert_int_equal(waited(b, &waiter), HF_LOAD_FAILED);
    b->answers = HF_OK;
    assert_int_equal(post(b, "page", HFI_LOAD, &waiter, NULL), HF_OK); /* who has nothing does not wait for that */
    assert_int_equal(waited(b, &waiter), HF_OK);
    assert_int_equal(post(b, "page", HFI_REFRESH, &waiter, NULL), HF_OK); /* and it went well */
    assert_int_equal(waited(b, &waiter), HF_OK);
    hft_clock_move_ms(&b->clock, 999);
    assert_int_equal(post(b, "other", HFI_REFRESH, NULL, NULL), HF_BUSY);
    hft_clock_move_ms(&b->clock, 1);
    assert_int_equal(post(b, "other", HFI_REFRESH, &waiter, NULL), HF_OK);
    assert_int_equal(waited(b, &waiter), HF_OK);
}

static void who_leaves_ends_the_wait_and_not_the_job(void **state)
{
    struct bench *b = *state;
    struct hfi_aside_waiter waiter, other;
    occupy(b, "page");
    assert_int_equal(post(b, "page", HFI_LOAD, &waiter, NULL), HF_OK);
    assert_int_equal(hfi_aside_wait(&b->client, &waiter, NULL, hfi_now(b->client.clock)), HF_TIMEOUT);
    assert_int_equal(b->frees, 0);
    assert_int_equal(post(b, "page", HFI_LOAD, &other, NULL), HF_OK);
    atomic_store(&b->stay, false);
    assert_int_equal(waited(b, &other), HF_OK);
    assert_int_equal(b->ran, 1);
    HFT_UNTIL_TRUE(b->frees == 1);
}

static void without_memory_for_a_copy_nothing_is_posted(void **state)
{
    struct bench *b = *state;
    struct hfi_aside_waiter waiter;
    hf_error error;
    b->no_copy = true;
    assert_int_equal(post(b, "page", HFI_LOAD, &waiter, &error), HF_NOMEM);
    assert_non_null(strstr(error.message, "arg"));
    assert_int_equal(hfi_aside_queued(&b->client), 0);
    b->no_copy = false;
    assert_int_equal(post(b, "page", HFI_LOAD, &waiter, NULL), HF_OK);
    assert_int_equal(waited(b, &waiter), HF_OK);
}

static void a_close_drops_what_waits_and_waits_for_what_runs(void **state)
{
    struct bench *b = *state;
    struct hfi_aside_waiter queued, running, late, untouched;
    occupy(b, "busy");
    assert_int_equal(post(b, "busy", HFI_LOAD, &running, NULL), HF_OK);
    assert_int_equal(post(b, "page", HFI_LOAD, &queued, NULL), HF_OK);
    assert_int_equal(post(b, "old", HFI_REFRESH, NULL, NULL), HF_OK);
    atomic_store(&b->client.closing, true);
    hfi_aside_close(&b->client);
    assert_int_equal(b->frees, 2);
    assert_int_equal(waited(b, &queued), HF_CLOSED);
    assert_int_equal(hfi_aside_wait(&b->client, &running, NULL, HFI_NEVER), HF_CLOSED);
    assert_int_equal(post(b, "more", HFI_LOAD, NULL, NULL), HF_CLOSED);
    memset(&late, 0x5a, sizeof late);
    memset(&untouched, 0x5a, sizeof untouched);
    assert_int_equal(post(b, "busy", HFI_LOAD, &late, NULL), HF_CLOSED); /* its caller returns while that one runs */
    assert_int_equal(b->copies, 3);
    atomic_store(&b->stay, false);
    hfi_aside_stop(&b->client);
    assert_memory_equal(&late, &untouched, sizeof late);
    assert_int_equal(b->frees, 3);
    assert_int_equal(b->ran, 1);
}

static void a_job_that_ends_its_thread_ends_and_another_thread_takes_the_place(void **state)
{
    enum { ROUNDS = 5 };
    struct bench *b = *state;
    struct hfi_aside_waiter waiter;
    int threads = hft_running_threads();
    b->exits = true;
    b->answers = HF_LOAD_FAILED;
    for (int i = 0; i < ROUNDS; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "%d", i);
        assert_int_equal(post(b, key, HFI_LOAD, &waiter, NULL), HF_OK);
        assert_int_equal(waited(b, &waiter), HF_LOAD_FAILED);
        assert_int_equal(b->frees, i + 1); /* before the waiters are told */
    }
    atomic_store(&b->stay, true);
    (void)post(b, "first", HFI_LOAD, NULL, NULL);
    (void)post(b, "second", HFI_LOAD, &waiter, NULL); /* nobody posts after this: the place is taken all the same */
    atomic_store(&b->stay, false);
    assert_int_equal(waited(b, &waiter), HF_LOAD_FAILED);
    b->exits = false;
    b->answers = HF_OK;
    assert_int_equal(post(b, "page", HFI_LOAD, &waiter, NULL), HF_OK);
    assert_int_equal(waited(b, &waiter), HF_OK);
    assert_true(hft_comes_down_to(hft_running_threads, threads + 1));
}

static void the_list_for_people_has_what_hangs(void **state)
{
    struct bench *b = *state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct hfi_aside_waiter waiter;
    occupy(b, "hung");
    hft_clock_move_ms(&b->clock, 5000);
    assert_int_equal(post(b, "page", HFI_LOAD, &waiter, NULL), HF_OK);
    hfi_aside_dump(&b->client, out);
    (void)fclose(out);
    bool lists = strstr(text, "\"hung\"") != NULL && strstr(text, "loading for 5000 ms, 0 waiting here") != NULL &&
                 strstr(text, "\"page\"") != NULL && strstr(text, "queued  for 0 ms, 1 waiting here") != NULL;
    if (!lists)
        print_message("%s", text);
    free(text);
    atomic_store(&b->stay, false);
    assert_int_equal(waited(b, &waiter), HF_OK);
    assert_true(lists);
}

/* Many posters of few keys, some of which do not wait for the end; close_bench counts the copies. */
static void *post_many(void *arg)
{
    struct bench *b = arg;
    for (int i = 0; i < 500; i++) {
        char key[8];
        struct hfi_aside_waiter waiter;
        (void)snprintf(key, sizeof key, "%d", i % 7);
        if (i % 3 == 0)
            (void)post(b, key, HFI_REFRESH, NULL, NULL);
        else if (post(b, key, HFI_LOAD, &waiter, NULL) == HF_OK &&
                 hfi_aside_wait(&b->client, &waiter, NULL, i % 3 == 1 ? HFI_NEVER : hfi_now(b->client.clock)) == HF_OK)
            hfi_body_unref(waiter.body);
    }
    return NULL;
}

static void run_shortly(hf_client *client, struct hfi_aside_job *job)
{
    (void)client;
    job->status = atomic_fetch_add(&bench->inside, 1) % 3 == 0 ? HF_BUSY : HF_LOAD_FAILED;
}

static void in_a_crowd_each_copy_is_freed_once(void **state)
{
    enum { THREADS = 6 };
    struct bench *b = *state;
    pthread_t threads[THREADS];
    hfi_aside_stop(&b->client);
    hfi_aside_free(&b->client);
    assert_true(hfi_aside_open(&b->client, 3, run_shortly));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, b), 0);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    assert_true(b->copies > 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)
    const struct CMUnitTest tests[] = {
        TEST(a_key_has_one_job_whose_result_is_for_all),
        TEST(who_joins_after_the_value_was_seen_asks_again),
        TEST(loads_come_before_refreshes_and_the_oldest_first),
        TEST(a_full_queue_refuses_and_copies_nothing),
        TEST(after_a_failure_a_refresh_pauses),
        TEST(who_leaves_ends_the_wait_and_not_the_job),
        TEST(without_memory_for_a_copy_nothing_is_posted),
        TEST(a_close_drops_what_waits_and_waits_for_what_runs),
        TEST(a_job_that_ends_its_thread_ends_and_another_thread_takes_the_place),
        TEST(the_list_for_people_has_what_hangs),
        TEST(in_a_crowd_each_copy_is_freed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
