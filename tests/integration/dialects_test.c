/* SPDX-License-Identifier: MIT */
/* dialects_test.c - other programs' locks, by the commands that those programs send: who holds excludes who comes, whichever of
 * them it is, and wakes who waits. tests/interop has the programs themselves. */
#include "tests/support/child.h"
#include "tests/support/speaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WOKEN_MS 200 /* a re-check is 400 ms away */

/* What the others send about the lock "x", and what a refusal looks like to them. */
struct spelling {
    const char *dialect;
    const char *take, *took, *refused; /* a command and its replies, as text; of a script EVAL's */
    const char *give[3];               /* the commands of a release, the last one frees it */
    const char *garbage, *key;         /* something of another type, and where that is */
    const char *told[2];               /* a command by which they see our release, and its reply; NULL: they poll */
};

#define STRING(name_, key_)                                                                                                      \
    {.dialect = name_, .take = "SET " key_ " theirs NX PX 60000", .took = "OK", .refused = "(nil)", .give = {"DEL " key_},        \
     .garbage = "HSET " key_ " a b", .key = key_}

static const struct spelling spellings[] = {
    STRING("warlock", "x:lock"),
    STRING("redlock", "x"),
    STRING("redis-semaphore", "mutex:x"),
    STRING("redis-py", "x"),
    STRING("shedlock", "job-lock:default:x"),
    STRING("rueidislock", "rueidislock:0:x"),
    STRING("spring", "locks:x"),
    STRING("spring:orders", "orders:x"),
    {.dialect = "python-redis-lock", .take = "SET lock:x theirs NX PX 60000", .took = "OK", .refused = "(nil)",
     .give = {"LPUSH lock-signal:x 1", "DEL lock:x"}, .garbage = "HSET lock:x a b", .key = "lock:x", .told = {"LPOP lock-signal:x", "1"}},
    {.dialect = "setnx", .take = "SETNX x theirs", .took = "1", .refused = "0", .give = {"DEL x"}, .garbage = "HSET x a b", .key = "x"},
    {.dialect = "counter", .take = "INCR x", .took = "1", .refused = "2", .give = {"DECR x"}, .garbage = "SET x many", .key = "x"},
    {.dialect = "set", .take = "SADD locks x", .took = "1", .refused = "0", .give = {"SREM locks x"}, .garbage = "SET locks a",
     .key = "locks"},
    {.dialect = "set:busy", .take = "SADD busy x", .took = "1", .refused = "0", .give = {"SREM busy x"}, .garbage = "SET busy a",
     .key = "busy"},
    {.dialect = "tokens", .take = "LPOP SEMAPHORE:x:AVAILABLE", .took = "0", .refused = "(nil)",
     .give = {"HDEL SEMAPHORE:x:GRABBED 0", "LPUSH SEMAPHORE:x:AVAILABLE 0"}, .garbage = "SET SEMAPHORE:x:AVAILABLE a",
     .key = "SEMAPHORE:x:AVAILABLE"},
    {.dialect = "redisson",
     .take = "EVAL return(redis.call('exists',KEYS[1])==0)and(redis.call('hset',KEYS[1],ARGV[1],'1'))or(0) 1 x uuid:7",
     .took = "1", .refused = "0", .give = {"DEL x"}, .garbage = "SET x a", .key = "x"},
};

#define SPELLINGS (sizeof spellings / sizeof spellings[0])

static void they_take(struct hft_speaker *f, const struct spelling *way)
{
    if (strcmp(way->dialect, "tokens") == 0) /* who comes first makes them */
        assert_int_equal(hf_lease_release(hft_must_take(f->client), NULL), HF_OK);
    assert_string_equal(hft_says(f, way->take), way->took);
}

static void they_give(struct hft_speaker *f, const struct spelling *way)
{
    for (int i = 0; i < 3 && way->give[i] != NULL; i++)
        (void)hft_says(f, way->give[i]);
}

static void what_they_hold_is_busy_and_their_release_wakes(void **state)
{
    struct hft_speaker *f = *state;
    for (size_t i = 0; i < SPELLINGS; i++) {
        const struct spelling *way = &spellings[i];
        struct hft_taker taker;
        hf_lease *lease;
        print_message("  %s\n", way->dialect);
        hft_speak(f, way->dialect);
        they_take(f, way);
        assert_int_equal(hf_lock_acquire(f->client, "x", NULL, &lease, NULL), HF_BUSY);
        hft_take(&taker, f->client, "x", HF_LOCK(.wait_ms = 20000));
        HFT_UNTIL_TRUE(hft_watched(f) == 1);
        int64_t given_ms = hft_boottime_ms();
        they_give(f, way);
        assert_int_equal(hft_taken(&taker), HF_OK);
        assert_true(taker.got_ms - given_ms < WOKEN_MS);
        assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    }
}

static void what_we_hold_they_do_not_get_until_it_is_released(void **state)
{
    struct hft_speaker *f = *state;
    for (size_t i = 0; i < SPELLINGS; i++) {
        const struct spelling *way = &spellings[i];
        print_message("  %s\n", way->dialect);
        hft_speak(f, way->dialect);
        hf_lease *lease = hft_must_take(f->client);
        assert_string_equal(hft_says(f, way->take), way->refused);
        if (strcmp(way->dialect, "counter") == 0) /* as they do, when it was not theirs */
            (void)hft_says(f, "DECR x");
        assert_int_equal(hf_lease_verify(lease, NULL), HF_OK);
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
        if (way->told[0] != NULL)
            assert_string_equal(hft_says(f, way->told[0]), way->told[1]);
        assert_string_equal(hft_says(f, way->take), way->took);
        they_give(f, way);
    }
}

static void something_else_in_its_place_is_named(void **state)
{
    struct hft_speaker *f = *state;
    for (size_t i = 0; i < SPELLINGS; i++) {
        const struct spelling *way = &spellings[i];
        hf_lease *lease;
        hf_error error;
        print_message("  %s\n", way->dialect);
        hft_speak(f, way->dialect);
        (void)hft_says(f, way->garbage);
        assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.wait_ms = 20000), &lease, &error), HF_FOREIGN);
        assert_non_null(strstr(error.message, way->key));
    }
}

/* A client that is gone, without a word: its record stays behind, and what it has marked. */
static void a_dead_holder_of_ours_is_cleared_away_by_the_next(void **state)
{
    struct hft_speaker *f = *state;
    static const char *const dialects[] = {"set", "counter", "tokens", "redisson", "python-redis-lock"};
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        hf_lease *lease;
        print_message("  %s\n", dialects[i]);
        freeReplyObject(hft_server_ask(f->server, "FLUSHALL"));
        pid_t child = hft_fork(); /* while this process has no threads */
        if (child == 0) {
            hf_client *client = hft_client(f->server, HF_CLIENT(.dialect = dialects[i]));
            _exit(hf_lock_acquire(client, "x", HF_LOCK(.lease_ms = 300), &lease, NULL) == HF_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        f->client = hft_client(f->server, HF_CLIENT(.dialect = dialects[i]));
        assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.wait_ms = 5000), &lease, NULL), HF_OK);
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
        static const char left[] = "EXISTS hf:lease:count:{x}:x hf:lease:set5:{locks:x}:locks:x "
                                   "hf:lease:list:{SEMAPHORE:x:AVAILABLE}:SEMAPHORE:x:AVAILABLE";
        assert_int_equal(hft_server_ask_integer(f->server, left), 0);
        assert_int_equal(hf_client_close(f->client, NULL), HF_OK);
        f->client = NULL;
        if (strcmp(dialects[i], "tokens") == 0)
            assert_int_equal(hft_server_ask_integer(f->server, "LLEN SEMAPHORE:x:AVAILABLE"), 1);
    }
}

/* Of two clients of ours: one holds, the other waits. */
static void who_polls_has_a_turn_when_we_have_handed_it_on_for_long(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hft_speak(f, "redlock");
    hf_client *other = hft_client(f->server, HF_CLIENT(.dialect = "redlock"));
    hf_lease *lease = hft_must_take(f->client);
    hft_take(&taker, other, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "ZCARD hf:queue:{x}:x") == 1);
    freeReplyObject(hft_server_ask(f->server, "HSET hf:wait:{x}:x turn 1")); /* begun long ago */
    int64_t released_ms = hft_boottime_ms();
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_string_equal(hft_says(f, "SET x theirs NX PX 100"), "OK");
    assert_int_equal(hft_taken(&taker), HF_OK); /* and when they are gone, or had not come, it goes on */
    assert_true(taker.got_ms - released_ms < 2000);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
}

static void a_key_without_expiry_gets_one_where_the_recipe_says_so(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *lease;
    hft_speak(f, "setnx");
    freeReplyObject(hft_server_ask(f->server, "SETNX x theirs"));
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 900, .wait_ms = 20000), &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static void two_dialects_of_one_client_are_two_locks(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *all[4];
    static const char *const dialects[] = {NULL, "warlock", "set", "holdfast"};
    hft_speak(f, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.dialect = dialects[i]), &all[i], NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.dialect = dialects[3]), &all[3], NULL), HF_DEADLOCK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hf_lease_release(all[i], NULL), HF_OK);
}

static void what_no_dialect_has_is_refused(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *lease;
    hf_observer *observer;
    hf_error error;
    bool had;
    hft_speak(f, "warlock");
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.shared = true), &lease, &error), HF_INVALID);
    assert_int_equal(hf_semaphore_acquire(f->client, "x", 2, 1, NULL, &lease, &error), HF_INVALID);
    assert_int_equal(hf_election_observe(f->client, "x", NULL, NULL, &observer, &error), HF_INVALID);
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.dialect = "esperanto"), &lease, &error), HF_INVALID);
    assert_non_null(strstr(error.message, "esperanto"));
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.dialect = "holdfast", .shared = true), &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    lease = hft_must_take(f->client);
    assert_int_equal(hf_lease_downgrade(lease, &error), HF_INVALID);
    assert_int_equal(hf_lock_break(f->client, "x", &had, &error), HF_INVALID);
    assert_int_equal(hf_lock_break_now(f->client, "x", &had, &error), HF_OK);
    assert_true(had);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

/* As many passes from thread to thread as need a second block of fences, and a renewal on the way. */
static void fences_rise_in_a_dialect_too(void **state)
{
    struct hft_speaker *f = *state;
    int64_t last = 0;
    hft_speak(f, "counter");
    for (int i = 0; i < 3000; i++) {
        hf_lease *lease;
        assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.linger_ms = 2000), &lease, NULL), HF_OK);
        assert_true(hf_lease_fence(lease) > last);
        last = hf_lease_fence(lease);
        assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    }
    hf_lease *lease = NULL;
    assert_int_equal(hf_lock_acquire(f->client, "y", HF_LOCK(.lease_ms = 900), &lease, NULL), HF_OK);
    HFT_WHILE_RENEWED(f->client, 4, hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_string_equal(hft_says(f, "GET y"), "0");
}

static void several_names_are_taken_one_after_the_other(void **state)
{
    struct hft_speaker *f = *state;
    static const char *const names[] = {"x", "y"};
    hf_lease *lease;
    hf_error error;
    hft_speak(f, "set");
    freeReplyObject(hft_server_ask(f->server, "SADD locks y"));
    assert_int_equal(hf_multilock_acquire(f->client, names, 2, NULL, &lease, &error), HF_BUSY);
    HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "SCARD locks") == 1); /* x was given back */
    freeReplyObject(hft_server_ask(f->server, "SREM locks y"));
    assert_int_equal(hf_multilock_acquire(f->client, names, 2, HF_LOCK(.wait_ms = 5000), &lease, &error), HF_OK);
    assert_int_equal(hft_server_ask_integer(f->server, "SCARD locks"), 2);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hft_server_ask_integer(f->server, "SCARD locks"), 0);
}

static void tokens_that_are_made_anew_leave_out_what_is_held(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *second;
    hft_speak(f, "tokens");
    hf_client *other = hft_client(f->server, HF_CLIENT(.dialect = "tokens"));
    hf_lease *lease = hft_must_take(f->client);
    HFT_DO(f, "DEL SEMAPHORE:x:AVAILABLE SEMAPHORE:x:GRABBED SEMAPHORE:x:EXISTS SEMAPHORE:x:VERSION");
    assert_int_equal(hf_lease_verify(lease, NULL), HF_LOST); /* who looks makes none */
    assert_string_equal(hft_says(f, "EXISTS SEMAPHORE:x:EXISTS"), "0");
    (void)hf_lease_release(lease, NULL);
    lease = hft_must_take(f->client);
    HFT_DO(f, "DEL SEMAPHORE:x:AVAILABLE SEMAPHORE:x:GRABBED SEMAPHORE:x:EXISTS SEMAPHORE:x:VERSION");
    assert_int_equal(hf_lock_acquire(other, "x", NULL, &second, NULL), HF_BUSY);
    assert_int_equal(hf_lease_verify(lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_string_equal(hft_says(f, "LLEN SEMAPHORE:x:AVAILABLE"), "1");
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
}

static void a_token_that_they_have_given_back_for_us_is_theirs(void **state)
{
    struct hft_speaker *f = *state;
    hft_speak(f, "tokens");
    hf_lease *lease = hft_must_take(f->client);
    HFT_DO(f, "HDEL SEMAPHORE:x:GRABBED 0", "LPUSH SEMAPHORE:x:AVAILABLE 0", "LPOP SEMAPHORE:x:AVAILABLE",
           "HSET SEMAPHORE:x:GRABBED 0 1.5");
    assert_int_equal(hf_lease_verify(lease, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    assert_string_equal(hft_says(f, "HGET SEMAPHORE:x:GRABBED 0"), "1.5");
    assert_string_equal(hft_says(f, "LLEN SEMAPHORE:x:AVAILABLE"), "0");
}

static void tokens_that_were_lost_come_back(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *lease;
    bool had;
    hft_speak(f, "tokens");
    HFT_DO(f, "SET SEMAPHORE:x:EXISTS 1 PX 700"); /* its maker has died */
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.wait_ms = 20000), &lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    HFT_DO(f, "FLUSHALL", "SET SEMAPHORE:x:EXISTS 1"); /* before it could say when to begin anew */
    assert_int_equal(hf_lock_acquire(f->client, "x", NULL, &lease, NULL), HF_BUSY);
    assert_true(hft_server_ask_integer(f->server, "PTTL SEMAPHORE:x:EXISTS") > 9000);
    HFT_DO(f, "FLUSHALL");
    assert_int_equal(hf_lease_release(hft_must_take(f->client), NULL), HF_OK);
    HFT_DO(f, "LPOP SEMAPHORE:x:AVAILABLE"); /* by who has died before HSET */
    assert_int_equal(hf_lock_acquire(f->client, "x", NULL, &lease, NULL), HF_BUSY);
    assert_int_equal(hf_lock_break_now(f->client, "x", &had, NULL), HF_OK);
    lease = hft_must_take(f->client);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_string_equal(hft_says(f, "LLEN SEMAPHORE:x:AVAILABLE"), "1");
}

static void of_several_tokens_theirs_wakes_too(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hft_speak(f, "tokens:2");
    hf_client *other = hft_client(f->server, HF_CLIENT(.dialect = "tokens:2"));
    hf_lease *lease = hft_must_take(f->client);
    HFT_DO(f, "LPOP SEMAPHORE:x:AVAILABLE", "HSET SEMAPHORE:x:GRABBED 1 1.5");
    hft_take(&taker, other, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_watched(f) == 1);
    int64_t given_ms = hft_boottime_ms();
    HFT_DO(f, "HDEL SEMAPHORE:x:GRABBED 1", "LPUSH SEMAPHORE:x:AVAILABLE 1");
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_true(taker.got_ms - given_ms < WOKEN_MS);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
}

static void a_dead_ones_mark_is_taken_off_only_where_it_is(void **state)
{
    struct hft_speaker *f = *state;
    hft_speak(f, "counter");
    HFT_DO(f, "HSET hf:lease:count:{x}:x hf1:dead 1"); /* and the counter has gone with an expiry of its own */
    hf_lease *lease = hft_must_take(f->client);
    assert_string_equal(hft_says(f, "GET x"), "1");
    HFT_DO(f, "DEL x");
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    assert_string_equal(hft_says(f, "EXISTS x"), "0");
}

static void what_is_no_string_shares_no_queue_with_what_is_one(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hf_lease *first, *second;
    hft_speak(f, NULL);
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.dialect = "spring"), &first, NULL), HF_OK);
    HFT_DO(f, "SADD locks x");
    hft_take(&taker, f->client, "x", HF_LOCK(.dialect = "set", .wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_watched(f) == 1);
    assert_int_equal(hf_lease_release(first, NULL), HF_OK);
    assert_string_equal(hft_says(f, "EXISTS locks:x"), "0");
    assert_false(atomic_load(&taker.done));
    HFT_DO(f, "SREM locks x");
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->client, "b:c", HF_LOCK(.dialect = "set:locks"), &first, NULL), HF_OK);
    assert_int_equal(hf_lock_acquire(f->client, "c", HF_LOCK(.dialect = "set:locks:b"), &second, NULL), HF_OK);
    assert_int_equal(hf_lease_verify(first, NULL), HF_OK);
    assert_int_equal(hf_lease_release(first, NULL), HF_OK);
    assert_int_equal(hf_lease_release(second, NULL), HF_OK);
}

static void what_is_broken_is_granted_only_if_it_is_free_then(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    bool had;
    hft_speak(f, "counter");
    HFT_DO(f, "SET x 2");
    hft_take(&taker, f->client, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_watched(f) == 1);
    assert_int_equal(hf_lock_break_now(f->client, "x", &had, NULL), HF_OK);
    assert_string_equal(hft_says(f, "GET x"), "1");
    assert_int_equal(hf_lock_break_now(f->client, "x", &had, NULL), HF_OK);
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_string_equal(hft_says(f, "GET x"), "1");
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

static void a_try_gives_their_key_no_expiry(void **state)
{
    struct hft_speaker *f = *state;
    hf_lease *lease;
    hft_speak(f, "setnx");
    HFT_DO(f, "SETNX x theirs");
    assert_int_equal(hf_lock_acquire(f->client, "x", NULL, &lease, NULL), HF_BUSY);
    assert_string_equal(hft_says(f, "PTTL x"), "-1");
}

/* Threads of one process, which pass it on among themselves. */
static void who_polls_has_a_turn_beside_threads_of_one_process_too(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker first, second;
    hft_speak(f, "redlock");
    hf_lease *lease = NULL;
    assert_int_equal(hf_lock_acquire(f->client, "x", HF_LOCK(.lease_ms = 900), &lease, NULL), HF_OK);
    hft_take(&first, f->client, "x", HF_LOCK(.lease_ms = 900, .wait_ms = 20000));
    hft_take(&second, f->client, "x", HF_LOCK(.lease_ms = 900, .wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_waiting_here(f->client, "x") == 2);
    HFT_DO(f, "HSET hf:wait:{x}:x turn 1"); /* begun long ago */
    HFT_WHILE_RENEWED(f->client, 2, hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_string_equal(hft_says(f, "SET x theirs NX PX 100"), "OK");
    HFT_UNTIL_TRUE(atomic_load(&first.done) || atomic_load(&second.done));
    struct hft_taker *next = atomic_load(&first.done) ? &first : &second, *last = next == &first ? &second : &first;
    assert_int_equal(hft_taken(next), HF_OK);
    assert_int_equal(hf_lease_release(next->lease, NULL), HF_OK);
    assert_int_equal(hft_taken(last), HF_OK);
    assert_int_equal(hf_lease_release(last->lease, NULL), HF_OK);
}

#define MANY 40

static void a_change_of_their_set_is_one_question(void **state)
{
    struct hft_speaker *f = *state;
    static struct hft_taker takers[MANY];
    static char names[MANY][8];
    hft_speak(f, "set");
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        freeReplyObject(hft_server_ask(f->server, "SADD locks %s", names[i]));
        hft_take(&takers[i], f->client, names[i], HF_LOCK(.wait_ms = 20000));
    }
    HFT_UNTIL_TRUE(hft_waiting_here(f->client, names[MANY - 1]) == 1 && hft_watched(f) == 1);
    int64_t scripts = hft_server_calls(f->server, "evalsha");
    for (int i = 0; i < 200; i++)
        HFT_DO(f, "SADD locks other", "SREM locks other");
    assert_true(hft_server_calls(f->server, "evalsha") - scripts < 10 * MANY); /* re-checks; where each asked: 200 times as many */
    for (int i = 0; i < MANY; i++) {
        int64_t given_ms = hft_boottime_ms();
        freeReplyObject(hft_server_ask(f->server, "SREM locks %s", names[i]));
        assert_int_equal(hft_taken(&takers[i]), HF_OK);
        assert_true(takers[i].got_ms - given_ms < WOKEN_MS);
        assert_int_equal(hf_lease_release(takers[i].lease, NULL), HF_OK);
    }
}

/* Its channel is live, as another name of the set is waited for. */
static void a_release_while_a_wait_begins_is_not_missed(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker first, second;
    hft_speak(f, "set");
    HFT_DO(f, "SADD locks a");
    hft_take(&first, f->client, "a", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_watched(f) == 1);
    for (int i = 0; i < 60; i++) {
        HFT_DO(f, "SADD locks b");
        hft_take(&second, f->client, "b", HF_LOCK(.wait_ms = 20000));
        HFT_UNTIL_TRUE(hft_server_ask_integer(f->server, "EXISTS hf:queue:set5:{locks:b}:locks:b") == 1);
        int64_t given_ms = hft_boottime_ms();
        HFT_DO(f, "SREM locks b");
        assert_int_equal(hft_taken(&second), HF_OK);
        assert_true(second.got_ms - given_ms < WOKEN_MS);
        assert_int_equal(hf_lease_release(second.lease, NULL), HF_OK);
    }
    HFT_DO(f, "SREM locks a");
    assert_int_equal(hft_taken(&first), HF_OK);
    assert_int_equal(hf_lease_release(first.lease, NULL), HF_OK);
}

/* Who counts up in vain is counted while nobody holds: that must not end the turn for which it asks. */
static void who_counts_in_vain_does_not_end_its_own_turn(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hft_speak(f, "counter");
    hf_lease *lease = hft_must_take(f->client);
    HFT_DO(f, "HSET hf:wait:count:{x}:x turn 1", "INCR x"); /* begun long ago; and somebody has just found it held */
    int64_t released_ms = hft_boottime_ms();
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    assert_string_equal(hft_says(f, "GET x"), "1");
    hft_take(&taker, f->client, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_watched(f) == 1);
    int64_t asked = hft_server_calls(f->server, "evalsha");
    HFT_DO(f, "DECR x");
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "evalsha") > asked);
    bool is_granted = strcmp(hft_says(f, "INCR x"), "1") != 0;
    HFT_DO(f, "DECR x");
    assert_true(!is_granted || hft_boottime_ms() - released_ms >= 200); /* else this machine has stood still */
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
}

/* A list whose tokens are all out is no key: to who tracks it that is no news. */
static void who_tracks_a_list_does_not_ask_all_the_time(void **state)
{
    struct hft_speaker *f = *state;
    struct hft_taker taker;
    hf_lease *lease;
    hft_speak(f, "tokens");
    HFT_DO(f, "ACL SETUSER web reset on >secret ~* &* +@all -config");
    assert_int_equal(hf_lease_release(hft_must_take(f->client), NULL), HF_OK);
    hf_client *other = hft_client(f->server, HF_CLIENT(.user = "web", .password = "secret", .dialect = "tokens"));
    HFT_DO(f, "LPOP SEMAPHORE:x:AVAILABLE", "HSET SEMAPHORE:x:GRABBED 0 1.5");
    hft_take(&taker, other, "x", HF_LOCK(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_server_calls(f->server, "client|tracking") > 0);
    assert_int_equal(hf_lock_acquire(f->client, "y", HF_LOCK(.lease_ms = 900), &lease, NULL), HF_OK);
    uint64_t asked = hft_commands(other);
    HFT_WHILE_RENEWED(f->client, 4, hft_commands(other) - asked < 10); /* a second */
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    int64_t given_ms = hft_boottime_ms();
    HFT_DO(f, "HDEL SEMAPHORE:x:GRABBED 0", "LPUSH SEMAPHORE:x:AVAILABLE 0");
    assert_int_equal(hft_taken(&taker), HF_OK);
    assert_true(taker.got_ms - given_ms < WOKEN_MS);
    assert_int_equal(hf_lease_release(taker.lease, NULL), HF_OK);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_they_hold_is_busy_and_their_release_wakes, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(what_we_hold_they_do_not_get_until_it_is_released, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(something_else_in_its_place_is_named, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_dead_holder_of_ours_is_cleared_away_by_the_next, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(who_polls_has_a_turn_when_we_have_handed_it_on_for_long, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_key_without_expiry_gets_one_where_the_recipe_says_so, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(two_dialects_of_one_client_are_two_locks, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(what_no_dialect_has_is_refused, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(fences_rise_in_a_dialect_too, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(several_names_are_taken_one_after_the_other, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(tokens_that_are_made_anew_leave_out_what_is_held, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_token_that_they_have_given_back_for_us_is_theirs, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(tokens_that_were_lost_come_back, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(of_several_tokens_theirs_wakes_too, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_dead_ones_mark_is_taken_off_only_where_it_is, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(what_is_no_string_shares_no_queue_with_what_is_one, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(what_is_broken_is_granted_only_if_it_is_free_then, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_try_gives_their_key_no_expiry, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(who_polls_has_a_turn_beside_threads_of_one_process_too, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_change_of_their_set_is_one_question, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(a_release_while_a_wait_begins_is_not_missed, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(who_counts_in_vain_does_not_end_its_own_turn, hft_speaker_begin, hft_speaker_end),
        cmocka_unit_test_setup_teardown(who_tracks_a_list_does_not_ask_all_the_time, hft_speaker_begin, hft_speaker_end),
    };
    return cmocka_run_group_tests_name("dialects", tests, NULL, NULL);
}
