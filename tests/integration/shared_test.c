/* SPDX-License-Identifier: MIT */
/* shared_test.c - readers: a lock that threads and processes hold together, beside those that want it alone. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SHARED(...) HF_LOCK(.shared = true, __VA_ARGS__)

static hf_lease *must_share(struct fixture *f, hf_client *client, const char *name)
{
    return must_take(f, client, name, SHARED(.wait_ms = HF_FOREVER));
}

struct verifier {
    pthread_t thread;
    hf_lease *lease;
    _Atomic(int) times, status;
    _Atomic(bool) over;
};

static void *verify_until(void *arg)
{
    struct verifier *me = arg;
    while (!atomic_load(&me->over) && atomic_load(&me->status) == HF_OK) {
        atomic_store(&me->status, (int)hf_lease_verify(me->lease, NULL));
        (void)atomic_fetch_add(&me->times, 1);
    }
    return NULL;
}

static void must_release(hf_lease *lease)
{
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static hf_status try(struct fixture *f, hf_client *client, const char *name, bool shared)
{
    hf_lease *lease;
    hf_status status = hf_lock_acquire(client, name, HF_LOCK(.shared = shared), &lease, &f->error);
    if (status == HF_OK)
        must_release(lease);
    return status;
}

static bool is_free(struct fixture *f, const char *name)
{
    return hft_lock_exists(f->server, name) == 0;
}

static void processes_read_together_and_who_wants_it_alone_is_kept_out(void **state)
{
    struct fixture *f = *state;
    hf_lease *one = must_share(f, f->a, "r"), *other = must_share(f, f->b, "r");
    assert_true(hf_lease_is_valid(one) && hf_lease_is_valid(other));
    assert_int_equal(hf_lease_verify(one, NULL), HF_OK);
    hf_client *third = hft_client(f->server, NULL);
    assert_int_equal(try(f, third, "r", false), HF_BUSY);
    assert_int_equal(try(f, third, "r", true), HF_OK);
    redisReply *foreign = hft_server_ask(f->server, "SET hf:{r} theirs NX PX 1000");
    assert_int_equal(foreign->type, REDIS_REPLY_NIL);
    freeReplyObject(foreign);
    must_release(one);
    assert_int_equal(try(f, third, "r", false), HF_BUSY);
    must_release(other);
    assert_int_equal(hf_client_close(third, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    hf_lease *alone = must_take(f, f->a, "r", NULL);
    assert_int_equal(try(f, f->b, "r", true), HF_BUSY);
    must_release(alone);
}

static void another_librarys_lock_keeps_readers_out(void **state)
{
    struct fixture *f = *state;
    struct hft_taker reader;
    freeReplyObject(hft_server_ask(f->server, "SET hf:{r} theirs NX PX 60000"));
    assert_int_equal(try(f, f->a, "r", true), HF_BUSY);
    hft_take(&reader, f->a, "r", SHARED(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 1);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{r}"));
    assert_int_equal(hft_taken(&reader), HF_OK);
    must_release(reader.lease);
}

static void readers_of_a_process_ride_one_lease_without_a_command(void **state)
{
    enum { MANY = 100 };
    struct fixture *f = *state;
    hft_until_it_listens(f, f->a);
    hf_lease *first = must_share(f, f->a, "r"), *more[MANY];
    uint64_t before = hft_commands(f->a);
    for (int i = 0; i < MANY; i++) {
        more[i] = must_share(f, f->a, "r");
        assert_true(hf_lease_fence(more[i]) == hf_lease_fence(first));
    }
    must_release(first);
    for (int i = 1; i < MANY; i++)
        must_release(more[i]);
    assert_int_equal(hft_commands(f->a), before);
    assert_int_equal(hf_lease_verify(more[0], NULL), HF_OK);
    must_release(more[0]);
    assert_true(is_free(f, "r"));
}

/* Another process's, and this one's: both come behind a waiter that was there before. */
static void later_readers_do_not_pass_a_waiter_that_wants_it_alone(void **state)
{
    struct fixture *f = *state;
    struct hft_taker writer, later, own;
    hf_client *third = hft_client(f->server, NULL);
    hf_lease *reader = must_take(f, f->a, "r", SHARED(.owner = 7));
    int64_t fence = hf_lease_fence(reader);
    hft_take(&writer, f->b, "r", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 1);
    hft_take(&later, third, "r", SHARED(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 2);
    while (try(f, f->a, "r", true) == HF_OK) /* until R has come, and the batch of 20 ms is over */
        (void)poll(NULL, 0, 1);
    hft_take(&own, f->a, "r", SHARED(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "r") == 1);
    assert_false(atomic_load(&writer.done) || atomic_load(&later.done));
    must_release(reader);
    assert_int_equal(hft_taken(&writer), HF_OK);
    assert_true(hf_lease_fence(writer.lease) > fence);
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 2); /* the own reader too */
    assert_false(atomic_load(&later.done) || atomic_load(&own.done));
    must_release(writer.lease);
    assert_int_equal(hft_taken(&later), HF_OK);
    assert_int_equal(hft_taken(&own), HF_OK);
    assert_true(hf_lease_fence(later.lease) > hf_lease_fence(writer.lease));
    assert_true(hf_lease_fence(own.lease) > hf_lease_fence(writer.lease));
    must_release(later.lease);
    must_release(own.lease);
    assert_int_equal(hf_client_close(third, NULL), HF_OK);
}

/* It stood in the way of the readers behind it. */
static void readers_come_in_when_the_waiter_before_them_gives_up(void **state)
{
    struct fixture *f = *state;
    struct hft_taker writer, later;
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->b, &cancel, NULL), HF_OK);
    hf_client *third = hft_client(f->server, NULL);
    hf_lease *reader = must_share(f, f->a, "r");
    hft_take(&writer, f->b, "r", HF_LOCK(.wait_ms = HF_FOREVER, .cancel = cancel));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 1);
    hft_take(&later, third, "r", SHARED(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 2);
    hf_cancel_fire(cancel);
    assert_int_equal(hft_taken(&writer), HF_CANCELED);
    assert_int_equal(hft_taken(&later), HF_OK);
    assert_true(hf_lease_is_valid(reader));
    must_release(later.lease);
    must_release(reader);
    hf_cancel_close(cancel);
    assert_int_equal(hf_client_close(third, NULL), HF_OK);
}

static bool is_shut_for_another_thread(struct fixture *f)
{
    struct hft_taker other;
    hft_take(&other, f->a, "r", SHARED());
    hf_status status = hft_taken(&other);
    if (status == HF_OK)
        must_release(other.lease);
    return status == HF_BUSY;
}

static void who_reads_already_reads_again_though_another_one_waits(void **state)
{
    struct fixture *f = *state;
    struct hft_taker writer;
    hf_lease *reader = must_share(f, f->a, "r");
    hft_take(&writer, f->b, "r", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 1);
    HFT_UNTIL_TRUE(is_shut_for_another_thread(f));
    hf_lease *again = must_share(f, f->a, "r");
    must_release(reader);
    assert_true(hf_lease_is_valid(again));
    assert_false(atomic_load(&writer.done));
    must_release(again);
    assert_int_equal(hft_taken(&writer), HF_OK);
    must_release(writer.lease);
}

static void a_thread_that_would_wait_for_itself_is_told_so(void **state)
{
    struct fixture *f = *state;
    hf_lease *none, *reader = must_share(f, f->a, "r");
    assert_int_equal(hf_lock_acquire(f->a, "r", HF_LOCK(.wait_ms = HF_FOREVER), &none, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "already shares"));
    must_release(reader);
    hf_lease *alone = must_take(f, f->a, "r", NULL);
    assert_int_equal(hf_lock_acquire(f->a, "r", SHARED(.wait_ms = HF_FOREVER), &none, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "already has alone"));
    must_release(alone);
    assert_int_equal(hft_queued(f->server, "r"), 0);
}

static void leases_of_readers_are_renewed_each_by_its_own_process(void **state)
{
    struct fixture *f = *state;
    hf_lease *one = must_take(f, f->a, "r", SHARED(.lease_ms = 900)), *two = must_take(f, f->a, "r", SHARED(.lease_ms = 900)),
             *other = must_take(f, f->b, "r", SHARED(.lease_ms = 900));
    HFT_WHILE_RENEWED(f->a, 8, hf_lease_is_valid(one) && hf_lease_is_valid(two) && hf_lease_is_valid(other));
    must_release(two);
    must_release(one);
    HFT_WHILE_RENEWED(f->b, 8, hf_lease_is_valid(other));
    must_release(other);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

/* The longest lease and the earliest warning of those who ride it. */
static void a_lease_is_as_long_as_its_longest_reader_wants(void **state)
{
    struct fixture *f = *state;
    hf_lease *brief = must_take(f, f->a, "r", SHARED(.lease_ms = 900)), *lengthy = must_take(f, f->a, "r", SHARED(.lease_ms = 5000));
    HFT_UNTIL_TRUE(hf_lease_remaining_ms(lengthy) > 1000);
    must_release(brief);
    must_release(lengthy);
}

static void all_readers_of_a_lease_hear_of_its_loss(void **state)
{
    enum { MANY = 5 };
    struct fixture *f = *state;
    hf_lease *leases[MANY], *other = must_take(f, f->b, "r", SHARED(.lease_ms = 900));
    for (int i = 0; i < MANY; i++)
        leases[i] = must_take(f, f->a, "r", SHARED(.lease_ms = 900, .event_fd = true));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{r}"));
    for (int i = 0; i < MANY; i++) {
        struct pollfd fd = {.fd = hf_lease_event_fd(leases[i]), .events = POLLIN};
        assert_int_equal(poll(&fd, 1, 20000), 1);
        assert_int_equal(hf_lease_reason(leases[i]), HF_REASON_GONE);
        assert_int_equal(hf_lease_release(leases[i], NULL), HF_LOST);
    }
    assert_int_equal(hf_lease_verify(other, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(other, NULL), HF_LOST);
    assert_int_equal(try(f, f->a, "r", false), HF_OK);
}

/* Who read before the lock was somebody else's does not read on in a later batch. */
static void a_new_batch_of_readers_begins_anew(void **state)
{
    struct fixture *f = *state;
    hf_lease *old = must_share(f, f->a, "r");
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{r}"));
    hf_lease *young = must_share(f, f->b, "r");
    assert_int_equal(hf_lease_verify(old, NULL), HF_LOST);
    assert_int_equal(hf_lease_verify(young, NULL), HF_OK);
    assert_int_equal(hf_lease_release(old, NULL), HF_LOST);
    assert_int_equal(try(f, f->a, "r", false), HF_BUSY);
    must_release(young);
}

static void a_break_takes_it_from_every_reader(void **state)
{
    struct fixture *f = *state;
    bool had = false;
    hf_lease *one = must_share(f, f->a, "r"), *two = must_share(f, f->a, "r"), *other = must_share(f, f->b, "r");
    assert_int_equal(hf_lock_break(f->b, "r", &had, &f->error), HF_OK);
    assert_true(had);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(one) && !hf_lease_is_valid(two) && !hf_lease_is_valid(other));
    assert_int_equal(hf_lease_reason(one), HF_REASON_REVOKED);
    assert_int_equal(hf_lease_reason(other), HF_REASON_REVOKED);
    HFT_UNTIL_TRUE(is_free(f, "r"));
    assert_int_equal(hf_lease_release(one, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(two, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(other, NULL), HF_LOST);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_shared_lease_lingers_for_the_next_reader(void **state)
{
    struct fixture *f = *state;
    hft_until_it_listens(f, f->a);
    must_release(must_take(f, f->a, "r", SHARED(.linger_ms = 60000)));
    uint64_t before = hft_commands(f->a);
    must_release(must_take(f, f->a, "r", SHARED(.linger_ms = 60000)));
    assert_int_equal(hft_commands(f->a), before);
    must_release(must_take(f, f->b, "r", HF_LOCK(.wait_ms = HF_FOREVER)));
}

static int read_until_killed(int from, int to, void *arg)
{
    const struct hft_server *server = arg;
    hf_client *client = hft_client(server, NULL);
    hf_lease *lease;
    (void)from;
    hf_status status = hf_lock_acquire(client, "r", SHARED(.lease_ms = 500), &lease, NULL);
    (void)!write(to, status == HF_OK ? "y" : "n", 1);
    for (;;)
        (void)pause();
    return 0;
}

/* An end of its own: the others' renewals do not keep it. */
static void a_killed_reader_keeps_others_out_for_its_own_lease_only(void **state)
{
    struct hft_process killed;
    struct fixture f = {.server = hft_server_start(NULL)};
    (void)state;
    hft_process_start(&killed, read_until_killed, f.server);
    assert_int_equal(hft_process_read(&killed), 'y');
    f.a = hft_client(f.server, NULL);
    f.b = hft_client(f.server, NULL);
    hf_lease *reader = must_take(&f, f.a, "r", SHARED(.lease_ms = 60000));
    hft_process_kill(&killed);
    must_release(reader);
    hf_lease *alone = must_take(&f, f.b, "r", HF_LOCK(.wait_ms = 20000)); /* not after a minute */
    must_release(alone);
    assert_true(hft_closes(f.server, f.a, &f.error));
    assert_true(hft_closes(f.server, f.b, &f.error));
    hft_server_stop(f.server);
}

static int wait_until_killed(int from, int to, void *arg)
{
    const struct hft_server *server = arg;
    hf_client *client = hft_client(server, NULL);
    hf_lease *lease;
    char go;
    (void)to;
    (void)!read(from, &go, 1);
    return hf_lock_acquire(client, "r", HF_LOCK(.wait_ms = HF_FOREVER), &lease, NULL) == HF_OK;
}

/* Threads of the process that reads, too, which send nothing to the server while they wait. */
static void a_killed_writer_does_not_keep_readers_out(void **state)
{
    struct hft_process killed;
    struct hft_taker waiting;
    struct fixture f = {.server = hft_server_start(NULL)};
    (void)state;
    hft_process_start(&killed, wait_until_killed, f.server);
    f.a = hft_client(f.server, NULL);
    hf_lease *reader = must_take(&f, f.a, "r", SHARED(.owner = 7, .lease_ms = 60000, .wait_ms = 20000));
    hft_process_tell(&killed, 'g');
    HFT_UNTIL_TRUE(hft_queued(f.server, "r") == 1);
    HFT_UNTIL_TRUE(try(&f, f.a, "r", true) == HF_BUSY);
    hft_take(&waiting, f.a, "r", SHARED(.wait_ms = 20000));
    HFT_UNTIL_TRUE(hft_waiting_here(f.a, "r") == 1);
    hft_process_kill(&killed);
    assert_int_equal(hft_taken(&waiting), HF_OK);
    must_release(waiting.lease);
    must_release(reader);
    assert_true(hft_closes(f.server, f.a, &f.error));
    hft_server_stop(f.server);
}

/* It comes in beside itself as soon as it may, though another process has begun to wait meanwhile, for it as well. */
static void an_owner_that_reads_and_has_to_wait_comes_in_beside_itself(void **state)
{
    struct fixture *f = *state;
    struct hft_taker again, alone;
    hf_lease *first = must_take(f, f->a, "r", SHARED(.owner = 7, .lease_ms = 1000, .stop_ms = 50));
    HFT_UNTIL_TRUE(hf_lease_remaining_ms(first) < 960);
    hft_take(&again, f->a, "r", SHARED(.owner = 7, .lease_ms = 1000, .stop_ms = 970, .wait_ms = HF_FOREVER)); /* more than is left */
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "r") == 1);
    hft_take(&alone, f->b, "r", HF_LOCK(.wait_ms = HF_FOREVER));
    assert_int_equal(hft_taken(&again), HF_OK);
    must_release(again.lease);
    must_release(first);
    assert_int_equal(hft_taken(&alone), HF_OK);
    must_release(alone.lease);
    assert_true(is_free(f, "r"));
}

/* Of its own process, and of others; who waits to have it alone waits for all of them. */
static void readers_come_in_beside_a_downgraded_holder(void **state)
{
    struct fixture *f = *state;
    struct hft_taker own, other, alone;
    hf_lease *first = must_take(f, f->a, "r", HF_LOCK(.owner = 7));
    int64_t fence = hf_lease_fence(first);
    hft_take(&own, f->a, "r", SHARED(.wait_ms = HF_FOREVER));
    hft_take(&other, f->b, "r", SHARED(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 2);
    assert_int_equal(hf_lease_downgrade(first, &f->error), HF_OK);
    assert_int_equal(hft_taken(&own), HF_OK);
    assert_int_equal(hft_taken(&other), HF_OK);
    assert_true(hf_lease_fence(first) == fence && fence < hf_lease_fence(own.lease) && fence < hf_lease_fence(other.lease));
    assert_int_equal(hf_lease_downgrade(first, &f->error), HF_OK);
    assert_int_equal(hf_lease_downgrade(own.lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_verify(first, &f->error), HF_OK);
    hft_take(&alone, f->a, "r", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "r") == 1);
    must_release(own.lease);
    must_release(other.lease);
    assert_false(atomic_load(&alone.done));
    must_release(first); /* and not to the thread that waits beside it without a word to the server */
    assert_int_equal(hft_taken(&alone), HF_OK);
    assert_true(hf_lease_fence(alone.lease) > hf_lease_fence(other.lease));
    must_release(alone.lease);
    assert_true(is_free(f, "r"));
}

/* The readers that it let in stay when it goes; its renewals go on as a reader's. */
static void a_downgraded_lease_lives_and_ends_as_a_readers(void **state)
{
    struct fixture *f = *state;
    hf_lease *first = must_take(f, f->a, "r", HF_LOCK(.lease_ms = 900, .linger_ms = 60000));
    assert_int_equal(hf_lease_downgrade(first, &f->error), HF_OK);
    must_release(must_share(f, f->a, "r")); /* nobody waits: it does not wait for itself */
    hf_lease *other = must_share(f, f->b, "r");
    HFT_WHILE_RENEWED(f->a, 4, hf_lease_is_valid(first) && hf_lease_is_valid(other));
    must_release(first);
    assert_int_equal(try(f, f->a, "r", false), HF_BUSY);
    assert_int_equal(hf_lease_verify(other, &f->error), HF_OK);
    must_release(other);
    assert_true(is_free(f, "r"));
}

/* It would believe itself alone. */
static void a_downgraded_lease_is_not_entered_again_by_one_that_wants_it_alone(void **state)
{
    struct fixture *f = *state;
    hf_lease *first = must_take(f, f->a, "r", HF_LOCK(.reentrant = true)), *again;
    assert_int_equal(hf_lock_acquire(f->a, "r", HF_LOCK(.reentrant = true), &again, &f->error), HF_OK);
    must_release(again);
    assert_int_equal(hf_lease_downgrade(first, &f->error), HF_OK);
    assert_int_equal(hf_lock_acquire(f->a, "r", HF_LOCK(.reentrant = true), &again, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "shares"));
    must_release(first);
    assert_true(is_free(f, "r"));
}

/* It would wait behind one who waits for it. */
static void who_has_downgraded_does_not_wait_behind_a_writer(void **state)
{
    struct fixture *f = *state;
    struct hft_taker alone;
    hf_lease *first = must_take(f, f->a, "r", HF_LOCK(.owner = 7)), *again;
    assert_int_equal(hf_lease_downgrade(first, &f->error), HF_OK);
    hft_take(&alone, f->b, "r", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 1);
    assert_int_equal(hf_lock_acquire(f->a, "r", SHARED(.owner = 7, .wait_ms = HF_FOREVER), &again, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "shares"));
    must_release(first);
    assert_int_equal(hft_taken(&alone), HF_OK);
    must_release(alone.lease);
    assert_true(is_free(f, "r"));
}

/* Beside a reader of its own process, whose lease it shares. */
static void who_has_downgraded_comes_in_beside_a_thread_that_reads(void **state)
{
    struct fixture *f = *state;
    struct hft_taker alone;
    hf_pending *pending;
    hf_lease *first = must_take(f, f->a, "r", HF_LOCK(.owner = 7)), *again;
    assert_int_equal(hf_lease_downgrade(first, &f->error), HF_OK);
    hf_lease *other = must_take(f, f->a, "r", SHARED(.owner = 8));
    hft_take(&alone, f->b, "r", HF_LOCK(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 1);
    HFT_UNTIL_TRUE(try(f, f->a, "r", true) == HF_BUSY); /* the door is shut */
    again = must_take(f, f->a, "r", SHARED(.owner = 7, .wait_ms = 20000));
    must_release(again);
    assert_int_equal(hf_lock_acquire_start(f->a, "r", SHARED(.owner = 7, .wait_ms = 20000), NULL, NULL, &pending, &f->error), HF_OK);
    assert_true(hf_pending_is_done(pending));
    assert_int_equal(hf_pending_take(pending, &again, &f->error), HF_OK);
    must_release(again);
    must_release(other);
    must_release(first);
    assert_int_equal(hft_taken(&alone), HF_OK);
    must_release(alone.lease);
}

/* What a script did before an error is done. */
static void a_downgrade_that_fails_on_its_way_may_have_been_carried_out(void **state)
{
    struct fixture *f = *state;
    struct hft_taker reader;
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER silent on >pw ~* resetchannels +@all"));
    hf_client *silent = hft_client(f->server, HF_CLIENT(.user = "silent", .password = "pw"));
    hf_lease *lease = must_take(f, silent, "r", NULL);
    hft_take(&reader, f->b, "r", SHARED(.wait_ms = HF_FOREVER));
    HFT_UNTIL_TRUE(hft_queued(f->server, "r") == 1);
    assert_int_equal(hf_lease_downgrade(lease, &f->error), HF_UNKNOWN);
    assert_int_equal(f->error.status, HF_UNKNOWN);
    assert_non_null(strstr(f->error.message, "cannot downgrade"));
    assert_int_equal(hft_taken(&reader), HF_OK); /* at its re-check, at the latest */
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER silent -evalsha -eval"));
    assert_int_equal(hf_lease_downgrade(lease, &f->error), HF_DENIED);
    freeReplyObject(hft_server_ask(f->server, "ACL SETUSER silent +@all"));
    must_release(reader.lease);
    must_release(lease);
    (void)hf_client_close(silent, NULL);
}

/* Neither key without the other: nobody would give it back. */
static void who_may_not_write_both_keys_of_readers_leaves_none(void **state)
{
    static const char *const refused[] = {"zadd", "set"};
    struct fixture *f = *state;
    hf_lease *none;
    for (int i = 0; i < 2; i++) {
        freeReplyObject(hft_server_ask(f->server, "ACL SETUSER few on >pw ~* &* +@all"));
        hf_client *few = hft_client(f->server, HF_CLIENT(.user = "few", .password = "pw"));
        freeReplyObject(hft_server_ask(f->server, "ACL SETUSER few -%s", refused[i]));
        assert_int_equal(hf_lock_acquire(few, "r", SHARED(), &none, &f->error), HF_DENIED);
        assert_int_equal(hft_lock_keys(f->server), 0);
        freeReplyObject(hft_server_ask(f->server, "ACL SETUSER few +@all"));
        hf_lease *lease = must_take(f, few, "r", NULL);
        freeReplyObject(hft_server_ask(f->server, "ACL SETUSER few -%s", refused[i]));
        assert_int_equal(hf_lease_downgrade(lease, &f->error), HF_UNKNOWN);
        freeReplyObject(hft_server_ask(f->server, "ACL SETUSER few +@all"));
        assert_int_equal(hf_lease_downgrade(lease, &f->error), HF_OK);
        must_release(lease);
        (void)hf_client_close(few, NULL);
    }
}

/* The calls that do not wait in a thread of their own find it out as well. */
static void a_pending_and_a_multilock_of_a_reader_do_not_wait_for_it(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"q", "r"};
    hf_pending *pending;
    hf_lease *lease, *q = must_take(f, f->b, "q", NULL), *reader = must_take(f, f->a, "r", SHARED(.owner = 7));
    assert_int_equal(hf_multilock_acquire(f->a, names, 2, HF_LOCK(.owner = 7, .wait_ms = HF_FOREVER), &lease, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "shares"));
    assert_int_equal(hf_lock_acquire_start(f->a, "r", HF_LOCK(.owner = 7, .wait_ms = HF_FOREVER), NULL, NULL, &pending, &f->error), HF_OK);
    assert_true(hf_pending_is_done(pending));
    assert_int_equal(hf_pending_take(pending, &lease, &f->error), HF_DEADLOCK);
    assert_non_null(strstr(f->error.message, "shares"));
    must_release(q);
    must_release(reader);
}

/* The lock is ours all the same, and ours alone. */
static void with_a_foreign_list_of_readers_a_lease_stays_as_it_is(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, f->a, "r", HF_LOCK(.reentrant = true));
    freeReplyObject(hft_server_ask(f->server, "SET hf:held:{r}:hf:{r} theirs"));
    assert_int_equal(hf_lease_downgrade(lease, &f->error), HF_FOREIGN);
    assert_non_null(strstr(f->error.message, "hf:held:{r}"));
    assert_int_equal(hf_lease_verify(lease, &f->error), HF_OK);
    must_release(must_take(f, f->a, "r", HF_LOCK(.reentrant = true)));
    must_release(lease);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:held:{r}:hf:{r}"));
}

static void a_lease_that_is_gone_is_not_downgraded(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"m1", "m2"};
    hf_lease *lease = must_take(f, f->a, "r", HF_LOCK(.lease_ms = 60000)), *several;
    freeReplyObject(hft_server_ask(f->server, "SET hf:{r} theirs PX 60000"));
    assert_int_equal(hf_lease_downgrade(lease, &f->error), HF_LOST);
    assert_false(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_downgrade(lease, &f->error), HF_LOST);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    assert_int_equal(hf_multilock_acquire(f->a, names, 2, NULL, &several, &f->error), HF_OK);
    assert_int_equal(hf_lease_downgrade(several, &f->error), HF_INVALID);
    must_release(several);
    assert_int_equal(hf_lease_downgrade(NULL, &f->error), HF_INVALID);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{r}"));
}

/* A GET that is under way then comes before the downgrade; what follows asks by a renewal. */
static void a_lease_is_verified_while_it_is_downgraded(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 50; i++) {
        struct verifier verifier = {0};
        verifier.lease = must_take(f, f->a, "r", NULL);
        assert_int_equal(pthread_create(&verifier.thread, NULL, verify_until, &verifier), 0);
        HFT_UNTIL_TRUE(atomic_load(&verifier.times) > 2);
        assert_int_equal(hf_lease_downgrade(verifier.lease, &f->error), HF_OK);
        int times = atomic_load(&verifier.times);
        HFT_UNTIL_TRUE(atomic_load(&verifier.times) > times + 2 || atomic_load(&verifier.status) != HF_OK);
        atomic_store(&verifier.over, true);
        (void)pthread_join(verifier.thread, NULL);
        assert_int_equal(atomic_load(&verifier.status), HF_OK);
        must_release(verifier.lease);
    }
}

static void what_cannot_be_shared_is_refused_with_words(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"m1", "m2"};
    hf_lease *none;
    assert_int_equal(hf_lock_acquire(f->a, "r", SHARED(.max_hold_ms = 100), &none, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "max_hold_ms"));
    assert_int_equal(hf_multilock_acquire(f->a, names, 2, SHARED(.wait_ms = 0), &none, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "shared"));
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_reader_keeps_others_out_for_its_own_lease_only), /* forks before there are threads */
        cmocka_unit_test(a_killed_writer_does_not_keep_readers_out),
        TEST(processes_read_together_and_who_wants_it_alone_is_kept_out),
        TEST(another_librarys_lock_keeps_readers_out),
        TEST(readers_of_a_process_ride_one_lease_without_a_command),
        TEST(later_readers_do_not_pass_a_waiter_that_wants_it_alone),
        TEST(readers_come_in_when_the_waiter_before_them_gives_up),
        TEST(who_reads_already_reads_again_though_another_one_waits),
        TEST(a_thread_that_would_wait_for_itself_is_told_so),
        TEST(leases_of_readers_are_renewed_each_by_its_own_process),
        TEST(a_lease_is_as_long_as_its_longest_reader_wants),
        TEST(all_readers_of_a_lease_hear_of_its_loss),
        TEST(a_new_batch_of_readers_begins_anew),
        TEST(a_break_takes_it_from_every_reader),
        TEST(a_shared_lease_lingers_for_the_next_reader),
        TEST(readers_come_in_beside_a_downgraded_holder),
        TEST(a_downgraded_lease_lives_and_ends_as_a_readers),
        TEST(a_downgraded_lease_is_not_entered_again_by_one_that_wants_it_alone),
        TEST(a_lease_that_is_gone_is_not_downgraded),
        TEST(who_has_downgraded_does_not_wait_behind_a_writer),
        TEST(who_has_downgraded_comes_in_beside_a_thread_that_reads),
        TEST(a_downgrade_that_fails_on_its_way_may_have_been_carried_out),
        TEST(with_a_foreign_list_of_readers_a_lease_stays_as_it_is),
        TEST(who_may_not_write_both_keys_of_readers_leaves_none),
        TEST(a_pending_and_a_multilock_of_a_reader_do_not_wait_for_it),
        TEST(an_owner_that_reads_and_has_to_wait_comes_in_beside_itself),
        TEST(a_lease_is_verified_while_it_is_downgraded),
        TEST(what_cannot_be_shared_is_refused_with_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
