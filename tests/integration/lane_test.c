/* SPDX-License-Identifier: MIT */
/* lane_test.c - many threads on one connection: each gets its own answer, in order, in few sends. */
#include "pool/lane_private.h"
#include "tests/support/script_source.h"
#include "tests/support/fds.h"
#include "tests/support/pool_kit.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 64
#define ROUNDS  300

static struct hft_server *server;
static struct hft_pool kit;
static struct hfi_lane *lane;

/* return ARGV[1] .. KEYS[1] */
static const struct hfi_piece pieces[] = {{0, 0}, {0, 7}, {17, 8}, {7, 10}};
static const struct hfi_script_text text = {"return .. KEYS[1]ARGV[1] ", pieces, "join"};
static const struct hfi_script join = {
    .text = &text, .size = 25, .pieces = {1, 2, 3}, .sha1 = "8d637e93c6e3b5eb0fd6dbd7b7dd69d5f7d0ddfb"};
static struct hfi_script real_join;
static const struct hfi_script *scripts[] = {&real_join, NULL};

static int start(void **state)
{
    hf_error error;
    (void)state;
    server = hft_server_start("save \"\"\nhz 500"); /* so often it ends what is blocked */
    redisReply *reply = hft_server_ask(server, "SCRIPT LOAD %s", hft_script_source(&join));
    real_join = join;
    (void)snprintf(real_join.sha1, sizeof real_join.sha1, "%s", reply->str);
    freeReplyObject(reply);
    hft_pool_init(&kit, server);
    if (hft_pool_open(&kit, scripts, &error) != HF_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        return -1;
    }
    lane = hfi_pool_lane(kit.pool, HFI_LOCK_LANE, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    hft_pool_close(&kit);
    hft_server_stop(server);
    return 0;
}

static void run_threads(void *(*run)(void *), void *args, size_t size, int count)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < count; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (char *)args + (size_t)i * size), 0);
    for (int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
}

struct worker {
    int number;
    int right, wrong, unanswered;
};

static void judge(struct worker *me, struct hft_call *call, const char *expected)
{
    if (call->outcome != HFI_ANSWERED || call->dones != 1)
        me->unanswered++;
    else if (call->reply->str != NULL && strcmp(call->reply->str, expected) == 0)
        me->right++;
    else
        me->wrong++;
}

static void *echo(void *arg)
{
    struct worker *me = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct hft_call call;
        char words[64];
        (void)snprintf(words, sizeof words, "ECHO thread-%d-round-%d", me->number, i);
        hft_ask(lane, &call, words);
        judge(me, &call, words + 5);
        hft_call_done(&call);
    }
    return NULL;
}

static void check(const struct worker *workers, int count, int each)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal(workers[i].wrong, 0);
        assert_int_equal(workers[i].unanswered, 0);
        assert_int_equal(workers[i].right, each);
    }
}

static void
sixty_four_threads_on_one_connection_each_get_their_own_answers_in_fewer_sends_than_commands(void **state)
{
    struct worker workers[THREADS] = {0};
    struct hfi_pool_counts before, after;
    (void)state;
    for (int i = 0; i < THREADS; i++)
        workers[i].number = i;
    hfi_pool_count(kit.pool, &before);
    int64_t calls = hft_server_calls(server, "echo");
    run_threads(echo, workers, sizeof workers[0], THREADS);
    hfi_pool_count(kit.pool, &after);
    check(workers, THREADS, ROUNDS);
    assert_int_equal(hft_server_calls(server, "echo") - calls, THREADS * ROUNDS);
    assert_int_equal(after.reconnects, before.reconnects);
    assert_true(after.commands - before.commands >= THREADS * ROUNDS);
    assert_true(after.round_trips - before.round_trips < after.commands - before.commands);
}

static void what_is_listed_together_is_sent_together(void **state)
{
    struct hfi_pool_counts before, after;
    struct hft_call calls[100];
    (void)state;
    hft_ask(lane, &calls[99], "PING"); /* so that no ROLE is asked for in between */
    hft_call_done(&calls[99]);
    while (atomic_load(&lane->watch) == HFI_LOOKS_SOON) /* the listener still looks, and sends what it finds */
        (void)sched_yield();
    hfi_pool_count(kit.pool, &before);
    for (int i = 0; i < 99; i++)
        hft_list(lane, &calls[i], hft_command("PING", hft_in_ms(5000)));
    hft_post(lane, &calls[99], hft_command("PING", hft_in_ms(5000)));
    for (int i = 0; i < 100; i++) {
        hft_wait(lane, &calls[i]);
        assert_int_equal(calls[i].outcome, HFI_ANSWERED);
        hft_call_done(&calls[i]);
    }
    hfi_pool_count(kit.pool, &after);
    assert_int_equal(after.commands - before.commands, 100);
    assert_int_equal(after.round_trips - before.round_trips, 1);
}

static void *four_at_once(void *arg)
{
    struct worker *me = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct hft_call call;
        char words[64];
        (void)snprintf(words, sizeof words, "%d.%d", me->number, i);
        const char *const multi[] = {"MULTI"}, *const set[] = {"SET", words, words},
                          *const get[] = {"GET", words};
        const char *const exec[] = {"EXEC"};
        struct hfi_command *command = hfi_command_new(1, multi, NULL);
        if (command == NULL || !hfi_command_append(command, 3, set, NULL) ||
            !hfi_command_append(command, 2, get, NULL) || !hfi_command_append(command, 1, exec, NULL))
            abort();
        command->until_ns = hft_in_ms(5000);
        hft_post(lane, &call, command);
        hft_wait(lane, &call);
        if (call.outcome == HFI_ANSWERED && call.reply->type == REDIS_REPLY_ARRAY &&
            call.reply->elements == 2 && strcmp(call.reply->element[1]->str, words) == 0)
            me->right++;
        else
            me->wrong++;
        hft_call_done(&call);
    }
    return NULL;
}

static void a_pipeline_is_one_command_and_its_last_reply_counts(void **state)
{
    struct worker workers[16] = {0};
    (void)state;
    for (int i = 0; i < 16; i++)
        workers[i].number = i;
    run_threads(four_at_once, workers, sizeof workers[0], 16);
    check(workers, 16, ROUNDS);
}

static void of_a_refused_transaction_the_reason_is_kept(void **state)
{
    struct hft_call call;
    (void)state;
    const char *const multi[] = {"MULTI"}, *const wrong[] = {"GET"}, *const exec[] = {"EXEC"};
    struct hfi_command *command = hfi_command_new(1, multi, NULL);
    assert_true(hfi_command_append(command, 1, wrong, NULL) && hfi_command_append(command, 1, exec, NULL));
    command->until_ns = hft_in_ms(5000);
    hft_post(lane, &call, command);
    hft_wait(lane, &call);
    assert_int_equal(call.outcome, HFI_ANSWERED);
    assert_non_null(strstr(call.reply->str, "wrong number of arguments"));
    hft_call_done(&call);
}

static void *join_words(void *arg)
{
    struct worker *me = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct hft_call call;
        char key[32], expected[64];
        (void)snprintf(key, sizeof key, "key-%d-%d", me->number, i);
        (void)snprintf(expected, sizeof expected, "of %s", key);
        const char *const argv[] = {key, "of "};
        struct hfi_command *command = hfi_command_script(&real_join, 1, 2, argv, NULL);
        command->until_ns = hft_in_ms(5000);
        hft_post(lane, &call, command);
        hft_wait(lane, &call);
        judge(me, &call, expected);
        hft_call_done(&call);
    }
    return NULL;
}

static void *flush_scripts(void *arg)
{
    _Atomic(bool) *over = arg;
    while (!atomic_load(over)) {
        redisReply *reply = hft_server_ask(server, "SCRIPT FLUSH");
        freeReplyObject(reply);
    }
    return NULL;
}

static void a_server_that_forgets_its_scripts_is_told_them_again_within_the_same_call(void **state)
{
    struct worker workers[16] = {0};
    _Atomic(bool) over = false;
    pthread_t flusher;
    (void)state;
    for (int i = 0; i < 16; i++)
        workers[i].number = i;
    int64_t evals = hft_server_calls(server, "eval");
    assert_int_equal(pthread_create(&flusher, NULL, flush_scripts, &over), 0);
    run_threads(join_words, workers, sizeof workers[0], 16);
    atomic_store(&over, true);
    (void)pthread_join(flusher, NULL);
    check(workers, 16, ROUNDS);
    assert_true(hft_server_calls(server, "eval") > evals);
}

struct line { /* threads that draw a number and list under one mutex */
    pthread_mutex_t mutex;
    long drawn;
};
static struct line line = {PTHREAD_MUTEX_INITIALIZER, 0};

static void *draw(void *arg)
{
    struct worker *me = arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct hft_call call = {.mutex = PTHREAD_MUTEX_INITIALIZER};
        struct hfi_command *command = hft_command("INCR drawn", hft_in_ms(5000));
        hft_call_done(&call);
        (void)pthread_mutex_lock(&line.mutex);
        long number = ++line.drawn;
        hft_post(lane, &call, command); /* flushes too: nobody's `done` here takes the mutex */
        (void)pthread_mutex_unlock(&line.mutex);
        hft_wait(lane, &call);
        if (call.outcome == HFI_ANSWERED && call.reply->integer == number)
            me->right++;
        else
            me->wrong++;
        hft_call_done(&call);
    }
    return NULL;
}

static void commands_reach_the_server_in_the_order_in_which_they_were_listed(void **state)
{
    struct worker workers[16] = {0};
    (void)state;
    run_threads(draw, workers, sizeof workers[0], 16);
    check(workers, 16, ROUNDS);
}

static void posted_commands_are_answered_although_no_thread_waits(void **state)
{
    struct hft_call calls[100];
    (void)state;
    for (int i = 0; i < 100; i++)
        hft_post(lane, &calls[i], hft_command("PING", hft_in_ms(5000)));
    for (int i = 0; i < 100; i++) {
        hft_sleep(&calls[i]);
        assert_int_equal(calls[i].outcome, HFI_ANSWERED);
        hft_call_done(&calls[i]);
    }
}

enum { TRIALS = 30 };

static void post_slow(struct hft_call *call, enum hfi_awaited awaited)
{
    struct hfi_command *command = hft_command("BLPOP nothing 0.005", hft_in_ms(5000));
    command->awaited = awaited;
    hft_post(lane, call, command);
}

/* Late on a busy machine: then all may be over. */
static int64_t listens_after_ns(int64_t began_ns, struct hft_call *call)
{
    while (atomic_load(&lane->watch) != HFI_POLLS_REPLIES && !hft_is_over(call))
        ;
    return hft_now() - began_ns;
}

static void end_call(struct hft_call *call)
{
    hft_sleep(call);
    assert_int_equal(call->outcome, HFI_ANSWERED);
    hft_call_done(call);
}

/* As if a send and a wake-up had cost so much till now; each that follows changes it a little. */
static void seem_to_cost(int64_t send_ns, int64_t wake_up_ns)
{
    atomic_store(&lane->deployment->costs.send_ns, send_ns);
    atomic_store(&lane->deployment->costs.wake_up_ns, wake_up_ns);
}

/* After so many ns the listener's poll() is for the reply. */
static int64_t awaited_ns(enum hfi_awaited awaited)
{
    struct hft_call call;
    seem_to_cost(atomic_load(&lane->nearest_rtt_ns), HFI_MS / 16); /* near; not so dear that a second command is left */
    HFT_UNTIL(hft_is_asleep(hft_thread_named("hf-listener")) && atomic_load(&lane->watch) == HFI_UNWATCHED);
    int64_t began_ns = hft_now();
    post_slow(&call, awaited);
    int64_t took_ns = listens_after_ns(began_ns, &call);
    end_call(&call);
    return took_ns;
}

/* The same behind a reply that is in no hurry, for which the listener sleeps already. */
static int64_t awaited_behind_ns(void)
{
    struct hft_call slow, call;
    int listener = hft_thread_named("hf-listener");
    seem_to_cost(atomic_load(&lane->nearest_rtt_ns), HFI_MS / 16); /* near; not so dear that a second command is left */
    HFT_UNTIL(hft_is_asleep(listener) && atomic_load(&lane->watch) == HFI_UNWATCHED);
    int64_t began_ns = hft_now();
    post_slow(&slow, HFI_AWAITED_BY_NOBODY);
    while (!hft_is_asleep(listener)) /* again */
        ;
    bool in_time = atomic_load(&lane->watch) == HFI_LOOKS_SOON;
    post_slow(&call, HFI_AWAITED_PROMPTLY);
    int64_t took_ns = listens_after_ns(began_ns, &call);
    end_call(&slow);
    end_call(&call);
    return in_time ? took_ns : INT64_MAX;
}

/* It looks for others after sixteen wake-ups, here a millisecond. How fast it is is the machine's affair: once in all trials is enough. */
static void a_listener_looks_at_once_for_what_is_awaited_promptly(void **state)
{
    int64_t least_ns = INT64_MAX, least_behind_ns = INT64_MAX;
    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        int64_t prompt_ns = awaited_ns(HFI_AWAITED_PROMPTLY), behind_ns = awaited_behind_ns();
        assert_true(awaited_ns(HFI_AWAITED_BY_NOBODY) >= HFI_MS / 2);
        least_ns = prompt_ns < least_ns ? prompt_ns : least_ns;
        least_behind_ns = behind_ns < least_behind_ns ? behind_ns : least_behind_ns;
    }
    assert_true(least_ns < HFI_MS / 2);
    assert_true(least_behind_ns < HFI_MS / 2);
}

/* Nine are under way, and no thread reads. To leave the tenth to the reader of the next reply would take as long as the listener
 * sleeps. It stays where it is for a moment if the listener just then writes, or reads: once in all trials is enough. */
static void a_command_is_not_left_to_a_listener_that_sleeps(void **state)
{
    struct hft_call slow[9], call;
    int sent = 0;
    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        hft_ask(lane, &call, "PING");
        hft_call_done(&call);
        seem_to_cost(1000 * HFI_MS, HFI_MS / 16); /* more than trips, slow ones too */
        for (int j = 0; j < 9; j++)
            post_slow(&slow[j], HFI_AWAITED_BY_NOBODY);
        bool are_under_way = atomic_load(&lane->in_flight_count) == 9;
        hft_post(lane, &call, hft_command("PING", hft_in_ms(5000)));
        sent += are_under_way && hfi_inbox_is_empty(&lane->inbox) && atomic_load(&lane->in_flight_count) == 10;
        for (int j = 0; j < 9; j++)
            end_call(&slow[j]);
        end_call(&call);
    }
    assert_true(sent > 0);
}

static void a_posted_command_wakes_a_listener_that_sleeps_for_ever(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct hft_call call;
        HFT_UNTIL(hft_is_asleep(hft_thread_named("hf-listener"))); /* it has no deadline and no traffic */
        hft_post(lane, &call, hft_command("PING", HFI_NEVER));
        hft_sleep(&call);
        assert_int_equal(call.outcome, HFI_ANSWERED);
        hft_call_done(&call);
    }
}

/* Each round may find the listener about to look, or about to sleep for ever. */
static void what_may_be_sent_soon_is_sent_without_another_call(void **state)
{
    struct hfi_pool_counts before, after;
    struct hft_call calls[3];
    (void)state;
    hft_ask(lane, &calls[0], "PING");
    hft_call_done(&calls[0]);
    hfi_pool_count(kit.pool, &before);
    for (int i = 0; i < 300; i++) {
        for (int j = 0; j < 3; j++) {
            hft_list(lane, &calls[j], hft_command("PING", HFI_NEVER));
            hfi_lane_flush_soon(lane);
        }
        for (int j = 0; j < 3; j++) {
            hft_sleep(&calls[j]);
            assert_int_equal(calls[j].outcome, HFI_ANSWERED);
            hft_call_done(&calls[j]);
        }
    }
    hfi_pool_count(kit.pool, &after);
    assert_true(after.round_trips - before.round_trips < 3 * 300);
}

static _Atomic(int) links;

static void next_link(struct hfi_command *command)
{
    if (command->outcome != HFI_ANSWERED || atomic_fetch_sub(&links, 1) == 1)
        return;
    struct hfi_command *next = hft_command("PING", hft_in_ms(5000));
    next->done = next_link;
    hfi_lane_list(lane, next);
    hfi_lane_flush(lane);
    hfi_command_unref(next);
}

static void a_done_may_list_and_flush_further_commands(void **state)
{
    (void)state;
    atomic_store(&links, 500);
    struct hfi_command *first = hft_command("PING", hft_in_ms(5000));
    first->done = next_link;
    hfi_lane_list(lane, first);
    hfi_lane_flush(lane);
    hfi_command_unref(first);
    HFT_UNTIL(atomic_load(&links) == 0);
}

static void a_wait_ends_at_its_time_also_in_the_reader(void **state)
{
    struct hft_call call;
    (void)state;
    hft_server_freeze(server);
    hft_post(lane, &call, hft_command("PING", hft_in_ms(5000)));
    int64_t until_ns = hft_in_ms(30);
    assert_false(hfi_lane_wait(lane, &call.park, hfi_park_epoch(&call.park), until_ns));
    assert_true(hft_now() >= until_ns);
    assert_true(hfi_lane_waits_since_ns(lane) <= until_ns);
    hft_server_thaw(server);
    hft_wait(lane, &call);
    assert_int_equal(call.outcome, HFI_ANSWERED);
    hft_call_done(&call);
}

static void *wake_soon(void *arg)
{
    hfi_park_wake(arg);
    return NULL;
}

static void a_reader_can_be_woken_by_other_things_than_replies(void **state)
{
    struct hft_call call;
    struct hfi_park park;
    pthread_t waker;
    (void)state;
    hfi_park_init(&park);
    hft_server_freeze(server);
    hft_post(lane, &call, hft_command("PING", hft_in_ms(5000)));
    uint32_t ticket = hfi_park_epoch(&park);
    assert_int_equal(pthread_create(&waker, NULL, wake_soon, &park), 0);
    assert_true(hfi_lane_wait(lane, &park, ticket, HFI_NEVER));
    (void)pthread_join(waker, NULL);
    hft_server_thaw(server);
    hft_sleep(&call); /* the role went on to the listener */
    assert_int_equal(call.outcome, HFI_ANSWERED);
    hft_call_done(&call);
}

static void a_long_value_is_refused_on_a_lock_lane_and_read_on_a_value_lane(void **state)
{
    struct hft_call call;
    struct hfi_lane *values = hfi_pool_lane(kit.pool, HFI_VALUE_LANE, 1);
    (void)state;
    assert_int_equal(hft_server_ask_integer(server, "SETRANGE long 299999 x"), 300000);
    hft_ask(lane, &call, "GET long");
    assert_int_equal(call.outcome, HFI_UNANSWERED);
    hft_call_done(&call);
    hft_ask(values, &call, "GET long");
    assert_int_equal(call.outcome, HFI_ANSWERED);
    assert_int_equal(call.reply->len, 300000);
    hft_call_done(&call);
    hft_ask(lane, &call, "PING");
    assert_int_equal(call.outcome, HFI_ANSWERED);
    hft_call_done(&call);
}

static void a_kick_is_told_by_the_listener(void **state)
{
    (void)state;
    int kicks = atomic_load(&kit.owner.kicks);
    hfi_pool_kick(kit.pool);
    HFT_UNTIL(atomic_load(&kit.owner.kicks) > kicks);
}

static void close_answers_all_that_was_posted(void **state)
{
    static struct hft_call calls[2000];
    struct hft_pool other;
    int descriptors = hft_open_descriptors(), threads = hft_running_threads();
    (void)state;
    hft_pool_init(&other, server);
    assert_int_equal(hft_pool_open(&other, NULL, NULL), HF_OK);
    struct hfi_lane *own = hfi_pool_lane(other.pool, HFI_LOCK_LANE, 0);
    struct hfi_lane *cold = hfi_pool_lane(other.pool, HFI_VALUE_LANE, 0);
    for (int i = 0; i < 2000; i++)
        hft_post(i % 2 ? own : cold, &calls[i], hft_command("INCR closing", hft_in_ms(5000)));
    assert_true(hfi_pool_close(other.pool, hft_in_ms(5000)));
    for (int i = 0; i < 2000; i++) {
        assert_int_equal(calls[i].dones, 1);
        assert_int_equal(calls[i].outcome, HFI_ANSWERED);
        hft_call_done(&calls[i]);
    }
    struct hft_call late;
    hft_post(own, &late, hft_command("PING", hft_in_ms(5000)));
    assert_int_equal(late.dones, 1);
    assert_int_equal(late.outcome, HFI_UNSENT);
    hft_call_done(&late);
    hfi_pool_free(other.pool);
    assert_int_equal(hft_server_ask_integer(server, "INCR closing"), 2001);
    assert_int_equal(hft_open_descriptors(), descriptors);
    assert_true(hft_comes_down_to(hft_running_threads, threads));
}

static void a_fork_child_closes_its_copies_and_the_parent_does_not_notice(void **state)
{
    struct hft_call call;
    (void)state;
    struct hfi_pool_counts before, after;
    hfi_pool_count(kit.pool, &before);
    pid_t child = fork();
    if (child == 0) {
        int had = hft_open_descriptors();
        hfi_pool_forked(kit.pool);
        _exit(hft_open_descriptors() < had - 4 ? 0 : 1); /* lanes, their kicks, the listener's */
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    hft_ask(lane, &call, "PING");
    assert_int_equal(call.outcome, HFI_ANSWERED);
    hft_call_done(&call);
    hfi_pool_count(kit.pool, &after);
    assert_int_equal(after.reconnects, before.reconnects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            sixty_four_threads_on_one_connection_each_get_their_own_answers_in_fewer_sends_than_commands),
        cmocka_unit_test(what_is_listed_together_is_sent_together),
        cmocka_unit_test(a_pipeline_is_one_command_and_its_last_reply_counts),
        cmocka_unit_test(of_a_refused_transaction_the_reason_is_kept),
        cmocka_unit_test(a_server_that_forgets_its_scripts_is_told_them_again_within_the_same_call),
        cmocka_unit_test(commands_reach_the_server_in_the_order_in_which_they_were_listed),
        cmocka_unit_test(posted_commands_are_answered_although_no_thread_waits),
        cmocka_unit_test(a_listener_looks_at_once_for_what_is_awaited_promptly),
        cmocka_unit_test(a_command_is_not_left_to_a_listener_that_sleeps),
        cmocka_unit_test(a_posted_command_wakes_a_listener_that_sleeps_for_ever),
        cmocka_unit_test(what_may_be_sent_soon_is_sent_without_another_call),
        cmocka_unit_test(a_done_may_list_and_flush_further_commands),
        cmocka_unit_test(a_wait_ends_at_its_time_also_in_the_reader),
        cmocka_unit_test(a_reader_can_be_woken_by_other_things_than_replies),
        cmocka_unit_test(a_long_value_is_refused_on_a_lock_lane_and_read_on_a_value_lane),
        cmocka_unit_test(a_kick_is_told_by_the_listener),
        cmocka_unit_test(close_answers_all_that_was_posted),
        cmocka_unit_test(a_fork_child_closes_its_copies_and_the_parent_does_not_notice),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
