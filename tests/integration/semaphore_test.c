/* SPDX-License-Identifier: MIT */
/* semaphore_test.c - permits: threads and processes that take some of a limited number. */
#include "tests/support/pair.h"
#include "tests/support/takers.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FOREVER HF_LOCK(.wait_ms = HF_FOREVER)
#define MANY    8

static hf_lease *must_have(struct fixture *f, hf_client *client, int limit, int permits, const hf_lock_options *options)
{
    hf_lease *lease;
    if (hf_semaphore_acquire(client, "s", limit, permits, options, &lease, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return lease;
}

static void must_release(hf_lease *lease)
{
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
}

static hf_status try(struct fixture *f, hf_client *client, int limit, int permits)
{
    hf_lease *lease;
    hf_status status = hf_semaphore_acquire(client, "s", limit, permits, NULL, &lease, &f->error);
    if (status == HF_OK)
        must_release(lease);
    return status;
}

static int64_t out(struct fixture *f)
{
    return hft_server_ask_integer(f->server, "ZCARD hf:sem:{s}");
}

static int64_t queued(struct fixture *f)
{
    return hft_server_ask_integer(f->server, "ZCARD hf:queue:{s}:hf:sem:{s}");
}

static void as_many_as_the_limit_are_out(void **state)
{
    struct fixture *f = *state;
    hf_lease *two = must_have(f, f->a, 3, 2, NULL), *one = must_have(f, f->b, 3, 1, NULL);
    assert_int_equal(hf_lease_permits(two), 2);
    assert_int_equal(hf_lease_permits(one), 1);
    assert_string_equal(hf_lease_name(two), "s");
    assert_int_equal(out(f), 3);
    assert_int_equal(try(f, f->a, 3, 1), HF_BUSY);
    assert_int_equal(try(f, f->b, 3, 1), HF_BUSY);
    assert_non_null(strstr(f->error.message, "semaphore \"s\""));
    assert_int_equal(hf_lease_verify(two, &f->error), HF_OK);
    assert_int_equal(hf_lease_verify(one, &f->error), HF_OK);
    must_release(two);
    assert_int_equal(out(f), 1);
    assert_int_equal(try(f, f->b, 3, 2), HF_OK);
    assert_int_equal(try(f, f->b, 3, 3), HF_BUSY);
    must_release(one);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void who_wants_many_is_not_passed(void **state)
{
    struct fixture *f = *state;
    struct hft_taker many;
    hf_lease *one = must_have(f, f->a, 3, 1, NULL), *other = must_have(f, f->a, 3, 1, NULL);
    hft_take_permits(&many, f->b, "s", 3, 3, FOREVER);
    HFT_UNTIL_TRUE(queued(f) == 1);
    assert_int_equal(try(f, f->a, 3, 1), HF_BUSY);
    must_release(one);
    assert_int_equal(try(f, f->a, 3, 1), HF_BUSY);
    assert_false(atomic_load(&many.done));
    must_release(other);
    assert_int_equal(hft_taken(&many), HF_OK);
    assert_int_equal(hf_lease_permits(many.lease), 3);
    must_release(many.lease);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

/* Nobody else waits: the first one's question brings what all of them need. */
static void threads_that_wait_get_their_permits_by_one_script(void **state)
{
    struct fixture *f = *state;
    struct hft_taker takers[MANY];
    hf_lease *all = must_have(f, f->b, MANY, MANY, HF_LOCK(.lease_ms = 60000));
    for (int i = 0; i < MANY; i++)
        hft_take_permits(&takers[i], f->a, "s", MANY, 1, FOREVER);
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "s") == MANY && queued(f) == 1);
    must_release(all);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(hft_taken(&takers[i]), HF_OK);
    assert_int_equal(out(f), MANY);
    for (int i = 0; i < MANY; i++) {
        for (int k = 0; k < i; k++)
            assert_true(hf_lease_fence(takers[i].lease) != hf_lease_fence(takers[k].lease));
        must_release(takers[i].lease);
        assert_int_equal(out(f), MANY - 1 - i);
    }
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void a_new_limit_needs_no_migration(void **state)
{
    struct fixture *f = *state;
    struct hft_taker smaller;
    hf_lease *one = must_have(f, f->a, 2, 1, NULL), *two = must_have(f, f->a, 2, 1, NULL);
    assert_int_equal(try(f, f->b, 2, 1), HF_BUSY);
    hf_lease *three = must_have(f, f->b, 3, 1, NULL);
    hft_take_permits(&smaller, f->b, "s", 2, 1, FOREVER);
    HFT_UNTIL_TRUE(queued(f) == 1);
    must_release(one);
    assert_false(atomic_load(&smaller.done));
    must_release(two);
    assert_int_equal(hft_taken(&smaller), HF_OK);
    must_release(three);
    must_release(smaller.lease);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

/* Within the process, as long as nobody else waits. */
static void a_permit_passes_from_thread_to_thread_without_the_server(void **state)
{
    struct fixture *f = *state;
    struct hft_taker takers[MANY];
    hf_lease *lease = must_have(f, f->a, 1, 1, HF_LOCK(.lease_ms = 60000));
    for (int i = 0; i < MANY; i++) {
        hft_take_permits(&takers[i], f->a, "s", 1, 1, FOREVER);
        HFT_UNTIL_TRUE(hft_waiting_here(f->a, "s") == i + 1);
    }
    HFT_UNTIL_TRUE(queued(f) == 1);
    int64_t fence = hf_lease_fence(lease);
    for (int i = 0; i < MANY; i++) {
        must_release(lease);
        assert_int_equal(hft_taken(&takers[i]), HF_OK);
        lease = takers[i].lease;
        assert_true(hf_lease_fence(lease) > fence);
        fence = hf_lease_fence(lease);
    }
    must_release(lease);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

static void what_lingers_serves_the_next_and_goes_back_when_it_is_wanted(void **state)
{
    struct fixture *f = *state;
    const hf_lock_options *lingering = HF_LOCK(.linger_ms = 60000, .lease_ms = 60000);
    hft_until_it_listens(f, f->a);
    must_release(must_have(f, f->a, 4, 3, lingering));
    assert_int_equal(out(f), 3);
    uint64_t before = hft_commands(f->a);
    hf_lease *one = must_have(f, f->a, 4, 1, lingering), *two = must_have(f, f->a, 4, 2, lingering);
    assert_int_equal(hft_commands(f->a), before);
    must_release(two);
    assert_int_equal(hft_commands(f->a), before);
    hf_lease *three = must_have(f, f->b, 4, 3, FOREVER); /* its wish takes the two that linger */
    assert_int_equal(out(f), 4);
    assert_true(hf_lease_is_valid(one));
    must_release(three);
    must_release(one); /* as far as it knows another process still waits */
    assert_int_equal(out(f), 0);
    must_release(must_have(f, f->a, 4, 1, lingering));
    assert_int_equal(out(f), 1);
    hf_lease *four = must_have(f, f->a, 4, 4, NULL); /* more than lingers: that goes back first */
    must_release(four);
    HFT_UNTIL_TRUE(hft_lock_keys(f->server) == 0);
}

static void permits_are_renewed(void **state)
{
    struct fixture *f = *state;
    hf_lease *two = must_have(f, f->a, 3, 2, HF_LOCK(.lease_ms = 900)), *one = must_have(f, f->a, 3, 1, HF_LOCK(.lease_ms = 900));
    HFT_WHILE_RENEWED(f->a, 6, hf_lease_is_valid(two) && hf_lease_is_valid(one) && out(f) == 3);
    must_release(two);
    HFT_WHILE_RENEWED(f->a, 2, hf_lease_is_valid(one) && out(f) == 1);
    must_release(one);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void those_of_one_grant_are_lost_together(void **state)
{
    struct fixture *f = *state;
    struct hft_taker takers[3];
    hf_lease *all = must_have(f, f->b, 3, 3, NULL);
    for (int i = 0; i < 3; i++)
        hft_take_permits(&takers[i], f->a, "s", 3, 1, FOREVER);
    HFT_UNTIL_TRUE(hft_waiting_here(f->a, "s") == 3);
    must_release(all);
    for (int i = 0; i < 3; i++)
        assert_int_equal(hft_taken(&takers[i]), HF_OK);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:sem:{s}"));
    int lost = 0;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hf_lease_verify(takers[i].lease, &f->error), HF_LOST);
        lost += hf_lease_is_valid(takers[i].lease) ? 0 : 1;
        assert_int_equal(hf_lease_release(takers[i].lease, NULL), HF_LOST);
    }
    assert_int_equal(lost, 3);
    assert_int_equal(try(f, f->b, 3, 3), HF_OK);
}

static void a_release_tells_of_permits_that_are_gone(void **state)
{
    struct fixture *f = *state;
    hf_lease *two = must_have(f, f->a, 2, 2, NULL);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:sem:{s}"));
    assert_int_equal(hf_lease_release(two, &f->error), HF_LOST);
    assert_non_null(strstr(f->error.message, "semaphore \"s\""));
}

static int hold_until_killed(int from, int to, void *arg)
{
    const struct hft_server *server = arg;
    hf_client *client = hft_client(server, NULL);
    hf_lease *lease;
    (void)from;
    hf_status status = hf_semaphore_acquire(client, "s", 3, 2, HF_LOCK(.lease_ms = 500), &lease, NULL);
    (void)!write(to, status == HF_OK ? "y" : "n", 1);
    for (;;)
        (void)pause();
    return 0;
}

static void a_killed_processs_permits_come_back(void **state)
{
    struct hft_process killed;
    struct fixture f = {.server = hft_server_start(NULL)};
    (void)state;
    hft_process_start(&killed, hold_until_killed, f.server);
    assert_int_equal(hft_process_read(&killed), 'y');
    f.a = hft_client(f.server, NULL);
    hf_lease *one = must_have(&f, f.a, 3, 1, HF_LOCK(.lease_ms = 60000));
    assert_int_equal(try(&f, f.a, 3, 1), HF_BUSY);
    hft_process_kill(&killed);
    hf_lease *two = must_have(&f, f.a, 3, 2, HF_LOCK(.wait_ms = 20000)); /* not after a minute */
    assert_int_equal(out(&f), 3);
    must_release(two);
    must_release(one);
    assert_true(hft_closes(f.server, f.a, &f.error));
    hft_server_stop(f.server);
}

static void a_waiter_that_gives_up_lets_the_next_one_in(void **state)
{
    struct fixture *f = *state;
    struct hft_taker many, few;
    hf_cancel *cancel;
    assert_int_equal(hf_cancel_open(f->a, &cancel, &f->error), HF_OK);
    hf_lease *one = must_have(f, f->b, 3, 1, NULL);
    hft_take_permits(&many, f->a, "s", 3, 3, HF_LOCK(.wait_ms = HF_FOREVER, .cancel = cancel));
    HFT_UNTIL_TRUE(queued(f) == 1);
    hft_take_permits(&few, f->b, "s", 3, 2, FOREVER);
    HFT_UNTIL_TRUE(queued(f) == 2);
    hf_cancel_fire(cancel);
    assert_int_equal(hft_taken(&many), HF_CANCELED);
    assert_int_equal(hft_taken(&few), HF_OK);
    must_release(few.lease);
    must_release(one);
    hf_cancel_close(cancel);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

/* In the same process: the one behind wants less than there is. */
static void the_next_thread_asks_for_what_it_wants_itself(void **state)
{
    struct fixture *f = *state;
    struct hft_taker few;
    hf_lease *one = must_have(f, f->b, 3, 1, NULL), *none;
    hft_take_permits(&few, f->a, "s", 3, 2, HF_LOCK(.wait_ms = HF_FOREVER));
    assert_int_equal(hft_taken(&few), HF_OK);
    assert_int_equal(hf_semaphore_acquire(f->a, "s", 3, 3, HF_LOCK(.wait_ms = 50), &none, &f->error), HF_TIMEOUT);
    must_release(few.lease);
    must_release(one);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void semaphores_and_locks_do_not_meet(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, HF_CLIENT(.key_template = "x:%s"));
    hf_lease *lock = must_take(f, f->a, "s", NULL), *one = must_have(f, f->a, 1, 1, NULL);
    assert_int_equal(try(f, client, 1, 1), HF_BUSY);
    must_release(one);
    assert_int_equal(try(f, client, 1, 1), HF_OK);
    must_release(lock);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_pending_takes_permits(void **state)
{
    struct fixture *f = *state;
    hf_pending *pending;
    hf_lease *lease, *all = must_have(f, f->b, 2, 2, NULL);
    assert_int_equal(hf_semaphore_acquire_start(f->a, "s", 2, 1, FOREVER, NULL, NULL, &pending, &f->error), HF_OK);
    struct pollfd decided = {hf_pending_fd(pending), POLLIN, 0};
    HFT_UNTIL_TRUE(queued(f) == 1);
    assert_false(hf_pending_is_done(pending));
    must_release(all);
    assert_int_equal(poll(&decided, 1, 20000), 1);
    assert_int_equal(hf_pending_take(pending, &lease, &f->error), HF_OK);
    assert_int_equal(hf_lease_permits(lease), 1);
    hf_lease *other = must_have(f, f->b, 2, 1, NULL), *none;
    assert_int_equal(hf_semaphore_acquire_start(f->a, "s", 2, 1, FOREVER, NULL, NULL, &pending, &f->error), HF_OK);
    assert_int_equal(hf_pending_take(pending, &none, &f->error), HF_CANCELED);
    must_release(other);
    assert_int_equal(out(f), 1);
    must_release(lease);
}

static void close_gives_all_permits_back(void **state)
{
    struct fixture *f = *state;
    hf_client *client = hft_client(f->server, NULL);
    hf_lease *one = must_have(f, client, 5, 1, NULL), *two = must_have(f, client, 5, 2, NULL);
    must_release(must_have(f, client, 5, 1, HF_LOCK(.linger_ms = 60000)));
    assert_int_equal(out(f), 4);
    assert_int_equal(hf_client_close(client, &f->error), HF_OK);
    assert_int_equal(out(f), 0);
    assert_int_equal(hf_lease_release(one, NULL), HF_CLOSED);
    assert_int_equal(hf_lease_release(two, NULL), HF_CLOSED);
}

struct seen {
    int count, waiters;
    hf_holder last;
    int64_t permits;
    char label[64];
};

static bool see(const hf_holder *holder, void *arg)
{
    struct seen *seen = arg;
    seen->count++;
    seen->permits += holder->permits;
    seen->last = *holder;
    (void)snprintf(seen->label, sizeof seen->label, "%s", holder->label);
    return true;
}

static bool see_waiter(const hf_waiter *waiter, void *arg)
{
    struct seen *seen = arg;
    seen->waiters += waiter->pid == getpid();
    return true;
}

static void an_operator_sees_who_has_how_many_and_who_waits(void **state)
{
    struct fixture *f = *state;
    struct seen seen = {.count = 0};
    struct hft_taker waits;
    assert_int_equal(hf_semaphore_info(f->a, "s", see, &seen, &f->error), HF_OK);
    assert_int_equal(seen.count, 0);
    hf_lease *two = must_have(f, f->a, 3, 2, HF_LOCK(.owner_label = "importer"));
    hft_take_permits(&waits, f->b, "s", 3, 3, FOREVER);
    HFT_UNTIL_TRUE(queued(f) == 1);
    assert_int_equal(hf_semaphore_info(f->b, "s", see, &seen, &f->error), HF_OK);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.permits, 2);
    assert_string_equal(seen.label, "importer");
    assert_true(seen.last.fence == hf_lease_fence(two));
    assert_int_equal(seen.last.waiting, 1);
    assert_in_range(seen.last.remaining_ms, 5000, 10500);
    assert_int_equal(hf_semaphore_waiters(f->a, "s", see_waiter, &seen, &f->error), HF_OK);
    assert_int_equal(seen.waiters, 1);
    assert_int_equal(hf_lock_list(f->a, NULL, see, &seen, &f->error), HF_OK); /* locks */
    assert_int_equal(seen.count, 1);
    assert_int_equal(hf_semaphore_list(f->a, "s*", see, &seen, &f->error), HF_OK);
    assert_int_equal(seen.count, 2);
    assert_int_equal(hf_semaphore_list(f->a, "x*", see, &seen, &f->error), HF_OK);
    assert_int_equal(seen.count, 2);
    must_release(two);
    assert_int_equal(hft_taken(&waits), HF_OK);
    must_release(waits.lease);
}

/* Two threads have permits of one grant, another process has one by itself. */
static void a_break_takes_all_permits_and_gives_them_on_when_their_holders_have_stopped(void **state)
{
    struct fixture *f = *state;
    struct hft_taker waits;
    bool had;
    assert_int_equal(hf_semaphore_break(f->a, "s", &had, &f->error), HF_OK);
    assert_false(had);
    hf_lease *of_a = must_have(f, f->a, 3, 2, NULL), *of_b = must_have(f, f->b, 3, 1, NULL);
    hft_take_permits(&waits, f->b, "s", 3, 3, FOREVER);
    HFT_UNTIL_TRUE(queued(f) == 1);
    assert_int_equal(hf_semaphore_break(f->b, "s", &had, &f->error), HF_OK);
    assert_true(had);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(of_a) && !hf_lease_is_valid(of_b));
    assert_int_equal(hf_lease_release(of_a, &f->error), HF_LOST);
    assert_non_null(strstr(f->error.message, "broke"));
    assert_int_equal(hf_lease_release(of_b, NULL), HF_LOST);
    assert_int_equal(hft_taken(&waits), HF_OK);
    must_release(waits.lease);
    HFT_UNTIL_TRUE(out(f) == 0);
}

static void permits_broken_by_force_are_free_at_once(void **state)
{
    struct fixture *f = *state;
    bool had;
    hf_lease *lease = must_have(f, f->a, 2, 2, NULL);
    assert_int_equal(hf_semaphore_break_now(f->b, "s", &had, &f->error), HF_OK);
    assert_true(had);
    assert_int_equal(try(f, f->b, 2, 2), HF_OK);
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
    freeReplyObject(hft_server_ask(f->server, "SET hf:sem:{s} x"));
    assert_int_equal(hf_semaphore_break(f->a, "s", &had, &f->error), HF_FOREIGN);
    assert_false(had);
    assert_int_equal(hf_semaphore_info(f->a, "s", see, &had, &f->error), HF_FOREIGN);
    assert_non_null(strstr(f->error.message, "hf:sem:{s}"));
    assert_int_equal(hf_semaphore_info(f->a, "s", NULL, NULL, &f->error), HF_INVALID);
    assert_int_equal(hf_semaphore_info(f->a, "", see, NULL, &f->error), HF_INVALID);
}

static void what_makes_no_sense_is_refused_with_words(void **state)
{
    struct fixture *f = *state;
    static const struct {
        int limit, permits;
        const char *word;
    } wrong[] = {{0, 1, "limit"}, {-1, 1, "limit"}, {HF_LIMIT_MAX + 1, 1, "limit"}, {3, 0, "permits"}, {3, -2, "permits"},
                 {3, 4, "permits"}, {HF_LIMIT_MAX, HF_PERMITS_MAX + 1, "permits"}};
    hf_lease *lease;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(hf_semaphore_acquire(f->a, "s", wrong[i].limit, wrong[i].permits, NULL, &lease, &f->error), HF_INVALID);
        assert_non_null(strstr(f->error.message, wrong[i].word));
        assert_null(lease);
    }
    const hf_lock_options options[] = {*HF_LOCK(.shared = true), *HF_LOCK(.reentrant = true), *HF_LOCK(.max_hold_ms = 1000),
                                       *HF_LOCK(.order_class = "c")};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        assert_int_equal(hf_semaphore_acquire(f->a, "s", 3, 1, &options[i], &lease, &f->error), HF_INVALID);
    assert_int_equal(hf_semaphore_acquire(f->a, "", 3, 1, NULL, &lease, &f->error), HF_INVALID);
    assert_int_equal(hf_semaphore_acquire(f->a, "s", 3, 1, NULL, NULL, &f->error), HF_INVALID);
    assert_int_equal(hf_semaphore_acquire(NULL, "s", 3, 1, NULL, &lease, &f->error), HF_INVALID);
    assert_int_equal(hf_lease_permits(NULL), 0);
    hf_lease *most = must_have(f, f->a, HF_LIMIT_MAX, HF_PERMITS_MAX, NULL);
    assert_int_equal(out(f), HF_PERMITS_MAX);
    assert_int_equal(hf_lease_downgrade(most, &f->error), HF_INVALID);
    must_release(most);
    hf_lease *lock = must_take(f, f->a, "s", NULL);
    assert_int_equal(hf_lease_permits(lock), 1);
    must_release(lock);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void another_programs_key_is_told_and_left_alone(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *set, *word, *again;
    } keys[] = {{"SET hf:sem:{s} theirs", "hf:sem:{s}", "DEL hf:sem:{s}"},
                {"SET hf:queue:{s}:hf:sem:{s} theirs", "hf:queue:", "DEL hf:queue:{s}:hf:sem:{s}"},
                {"SET hf:wait:{s}:hf:sem:{s} theirs", "hf:wait:", "DEL hf:wait:{s}:hf:sem:{s}"},
                {"SET hf:fence theirs", "hf:fence", "DEL hf:fence"}};
    hf_lease *lease;
    for (int i = 0; i < 4; i++) {
        hf_lease *all = i == 1 || i == 2 ? must_have(f, f->b, 1, 1, NULL) : NULL; /* only who has to wait needs these keys */
        freeReplyObject(hft_server_ask(f->server, "%s", keys[i].set));
        redisReply *set = hft_server_ask(f->server, keys[i].set);
        freeReplyObject(set);
        assert_int_equal(hf_semaphore_acquire(f->a, "s", 1, 1, HF_LOCK(.wait_ms = 2000), &lease, &f->error), HF_FOREIGN);
        assert_non_null(strstr(f->error.message, keys[i].word));
        freeReplyObject(hft_server_ask(f->server, keys[i].again));
        if (all != NULL)
            must_release(all);
        assert_int_equal(out(f), 0);
    }
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, hft_pair_set_up, hft_pair_tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_processs_permits_come_back), /* forks before there are threads */
        TEST(as_many_as_the_limit_are_out),
        TEST(who_wants_many_is_not_passed),
        TEST(threads_that_wait_get_their_permits_by_one_script),
        TEST(a_new_limit_needs_no_migration),
        TEST(a_permit_passes_from_thread_to_thread_without_the_server),
        TEST(what_lingers_serves_the_next_and_goes_back_when_it_is_wanted),
        TEST(permits_are_renewed),
        TEST(those_of_one_grant_are_lost_together),
        TEST(a_release_tells_of_permits_that_are_gone),
        TEST(a_waiter_that_gives_up_lets_the_next_one_in),
        TEST(the_next_thread_asks_for_what_it_wants_itself),
        TEST(semaphores_and_locks_do_not_meet),
        TEST(a_pending_takes_permits),
        TEST(close_gives_all_permits_back),
        TEST(an_operator_sees_who_has_how_many_and_who_waits),
        TEST(a_break_takes_all_permits_and_gives_them_on_when_their_holders_have_stopped),
        TEST(permits_broken_by_force_are_free_at_once),
        TEST(what_makes_no_sense_is_refused_with_words),
        TEST(another_programs_key_is_told_and_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
