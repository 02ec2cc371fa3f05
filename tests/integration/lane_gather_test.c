/* SPDX-License-Identifier: MIT */
/* lane_gather_test.c - the first command to a server that has our CPU: who sends it yields once, and sends those of others with it.
 * (Linked so that sched_yield is the one below.) */
#include "pool/listener.h"
#include "tests/support/fds.h"
#include "tests/support/one_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#define ON_OUR_CPU 1000 /* a score of first looks */
#define ONE        256  /* thread, as a crowd counts them */

static _Atomic(bool) meets_gatherer; /* the next yield is that of a thread that gathers */
static struct hft_call met;
static pthread_t met_thread;
static bool was_sent; /* before its thread waited */
static _Atomic(int) sender, met_tid;
static ssize_t (*really_send)(struct hfi_connection *connection, const void *bytes, size_t size);

static ssize_t note_sender(struct hfi_connection *connection, const void *bytes, size_t size)
{
    atomic_store(&sender, gettid());
    return really_send(connection, bytes, size);
}

static void *wait_for_reply(void *arg)
{
    (void)arg;
    atomic_store(&met_tid, gettid());
    hft_wait(hft_lane, &met);
    return NULL;
}

/* Another thread lists and waits meanwhile. The one that gathers has lost its CPU for long, and the other one waits for no longer
 * than a look. */
static void meet_gatherer(void)
{
    hft_list(hft_lane, &met, hft_command("PING", HFI_NEVER));
    hfi_lane_flush_to_wait(hft_lane);
    hfi_lane_flush(hft_lane); /* as one who has been answered does on his way out */
    was_sent = hfi_inbox_is_empty(&hft_lane->inbox);
    (void)pthread_create(&met_thread, NULL, wait_for_reply, NULL);
    HFT_UNTIL(hft_is_over(&met)); /* sooner or later the listener would send it */
}

static void (*flush_post)(struct hfi_lane *lane);
static enum hfi_awaited posted_as;
static _Atomic(bool) meets_post;
static struct hft_call posted;

/* Another thread posts meanwhile, and goes on. */
static void meet_post(void)
{
    struct hfi_command *command = hft_command("PING", HFI_NEVER);
    command->awaited = posted_as;
    hft_list(hft_lane, &posted, command);
    flush_post(hft_lane);
    was_sent = hfi_inbox_is_empty(&hft_lane->inbox);
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int __wrap_sched_yield(void)
{
    if (atomic_exchange(&meets_gatherer, false))
        meet_gatherer();
    if (atomic_exchange(&meets_post, false))
        meet_post();
    return __real_sched_yield();
}

struct scene { /* in which the thread gathers; but for one thing each time */
    int server_cpu, usual;
    bool keeps_cpu, gave_cpu;
};

static const struct scene gathering = {ON_OUR_CPU, 2 * ONE, true, false};

static void set(const struct scene *scene)
{
    struct hft_call call;
    hft_ask(hft_lane, &call, "PING"); /* no ROLE in front of the next one */
    hft_call_done(&call);
    hft_let_listener_sleep();
    atomic_store(&hft_lane->server_cpu, scene->server_cpu);
    atomic_store(&hft_lane->keeps_cpu, scene->keeps_cpu);
    atomic_store(&hft_lane->gave_cpu, scene->gave_cpu);
    atomic_store(&hft_lane->deployment->crowds[HFI_LOCK_LANE].usual, scene->usual);
}

static bool gathers(const struct scene *scene, void (*flush)(struct hfi_lane *lane))
{
    struct hft_call call;
    set(scene);
    uint64_t sends = hft_lane->sends;
    struct hfi_transport watched = *hft_lane->connection.transport;
    const struct hfi_transport *transport = hft_lane->connection.transport;
    really_send = watched.send;
    watched.send = note_sender;
    hft_lane->connection.transport = &watched;
    atomic_store(&meets_gatherer, true);
    hft_list(hft_lane, &call, hft_command("PING", HFI_NEVER));
    flush(hft_lane);
    bool gathered = !atomic_exchange(&meets_gatherer, false);
    assert_true(hfi_inbox_is_empty(&hft_lane->inbox));
    assert_true(hft_lane->sends == sends + 1); /* one for all that was listed */
    assert_int_equal(atomic_load(&sender), gathered ? atomic_load(&met_tid) : gettid());
    hft_wait(hft_lane, &call);
    hft_is_answered(&call);
    hft_lane->connection.transport = transport;
    if (gathered) {
        (void)pthread_join(met_thread, NULL);
        hft_is_answered(&met);
        assert_false(was_sent);
    }
    return gathered;
}

static void the_first_command_is_sent_with_those_of_others(void **state)
{
    (void)state;
    assert_true(gathers(&gathering, hfi_lane_flush_to_wait));
}

static void it_is_sent_at_once_where_a_yield_gains_nothing(void **state)
{
    const struct scene on_another_cpu = {0, 2 * ONE, true, false}, alone = {ON_OUR_CPU, ONE, true, false},
                       beside_others = {ON_OUR_CPU, 2 * ONE, false, false}, just_told = {ON_OUR_CPU, 2 * ONE, true, true};
    (void)state;
    assert_false(gathers(&on_another_cpu, hfi_lane_flush_to_wait));
    assert_false(gathers(&alone, hfi_lane_flush_to_wait));
    assert_false(gathers(&beside_others, hfi_lane_flush_to_wait)); /* other programs would get the CPU */
    assert_false(gathers(&just_told, hfi_lane_flush_to_wait));
    assert_false(gathers(&gathering, hfi_lane_flush)); /* whoever does not wait may not come back to read */
}

static void behind_another_one_no_thread_yields(void **state)
{
    struct hft_call first, second;
    (void)state;
    set(&gathering);
    hft_server_freeze(hft_server);
    hft_post(hft_lane, &first, hft_command("PING", HFI_NEVER));
    atomic_store(&meets_gatherer, true);
    hft_list(hft_lane, &second, hft_command("PING", HFI_NEVER));
    hfi_lane_flush_to_wait(hft_lane);
    assert_true(atomic_exchange(&meets_gatherer, false));
    hft_server_thaw(hft_server);
    hft_wait(hft_lane, &first);
    hft_is_answered(&first);
    hft_wait(hft_lane, &second);
    hft_is_answered(&second);
}

/* It may have lost its CPU, and nobody would come back to send what was left to it. */
static void what_nobody_waits_for_is_not_left_to_one_that_gathers(void **state)
{
    static const struct {
        enum hfi_awaited by;
        void (*flush)(struct hfi_lane *lane);
    } posts[] = {{HFI_AWAITED_BY_THREAD, hfi_lane_flush_soon}, /* or nobody knows: a release */
                 {HFI_AWAITED_BY_THREAD, hfi_lane_flush_posted},
                 {HFI_AWAITED_PROMPTLY, hfi_lane_flush},
                 {HFI_AWAITED_BY_NOBODY, hfi_lane_flush}};
    (void)state;
    for (size_t i = 0; i < sizeof posts / sizeof posts[0]; i++) {
        struct hft_call call;
        posted_as = posts[i].by;
        flush_post = posts[i].flush;
        set(&gathering);
        was_sent = false;
        atomic_store(&meets_post, true);
        hft_list(hft_lane, &call, hft_command("PING", HFI_NEVER));
        hfi_lane_flush_to_wait(hft_lane);
        assert_false(atomic_exchange(&meets_post, false));
        assert_true(was_sent);
        hft_wait(hft_lane, &call);
        hft_is_answered(&call);
        HFT_UNTIL(hft_is_over(&posted));
        hft_is_answered(&posted);
    }
}

static bool lists_behind;

/* While a thread sends, another one leaves its command to it, as to the holder of the write role. */
static ssize_t send_and_be_left_more(struct hfi_connection *connection, const void *bytes, size_t size)
{
    if (lists_behind) {
        lists_behind = false;
        hft_list(hft_lane, &posted, hft_command("PING", HFI_NEVER));
        hfi_lane_flush(hft_lane);
        atomic_store(&hft_lane->gathers, true); /* a third one, which has lost its CPU */
    }
    return really_send(connection, bytes, size);
}

/* With both roles: the listener may be about to receive, or to send. */
static void use_transport(const struct hfi_transport *transport)
{
    HFT_UNTIL(hft_takes_read_role());
    HFT_UNTIL(!atomic_exchange(&hft_lane->writing, true));
    hft_lane->connection.transport = transport;
    atomic_store(&hft_lane->writing, false);
    hft_give_read_role_back();
}

static void who_sends_leaves_nothing_to_one_that_gathers(void **state)
{
    (void)state;
    const struct hfi_transport *transport = hft_lane->connection.transport;
    struct hfi_transport watched = *transport;
    struct hft_call call;
    set(&gathering);
    really_send = watched.send;
    watched.send = send_and_be_left_more;
    use_transport(&watched);
    lists_behind = true;
    hft_post(hft_lane, &call, hft_command("PING", HFI_NEVER));
    use_transport(transport);
    atomic_store(&hft_lane->gathers, false);
    assert_true(hfi_inbox_is_empty(&hft_lane->inbox));
    HFT_UNTIL(hft_is_over(&call) && hft_is_over(&posted));
    hft_is_answered(&call);
    hft_is_answered(&posted);
}

static bool stands_in_send, is_blocked;

/* The sender loses its CPU. Another thread lists, and the listener looks meanwhile. */
static ssize_t stand_in_send(struct hfi_connection *connection, const void *bytes, size_t size)
{
    if (stands_in_send) {
        stands_in_send = false;
        hft_list(hft_lane, &posted, hft_command("PING", HFI_NEVER));
        hfi_lane_flush(hft_lane);
        atomic_store(&hft_lane->blocked, is_blocked); /* by an earlier send; there is room again */
        atomic_store(&hft_lane->watch, HFI_LOOKS_SOON);
        hfi_listener_kick(hft_lane->listener);
        hft_let_listener_sleep();
    }
    return really_send(connection, bytes, size);
}

/* It would look on and on at what only the sender can send; on the sender's CPU that would keep the sender from it. */
static void while_a_sender_has_no_cpu_the_listener_sleeps(void **state)
{
    (void)state;
    const struct hfi_transport *transport = hft_lane->connection.transport;
    struct hfi_transport watched = *transport;
    really_send = watched.send;
    watched.send = stand_in_send;
    for (int i = 0; i < 2; i++) {
        struct hft_call call;
        set(&gathering);
        is_blocked = i == 1;
        stands_in_send = true;
        use_transport(&watched);
        hft_post(hft_lane, &call, hft_command("PING", HFI_NEVER));
        use_transport(transport);
        assert_true(hfi_inbox_is_empty(&hft_lane->inbox));
        assert_false(atomic_load(&hft_lane->blocked));
        HFT_UNTIL(hft_is_over(&call) && hft_is_over(&posted));
        hft_is_answered(&call);
        hft_is_answered(&posted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_command_is_sent_with_those_of_others),
        cmocka_unit_test(it_is_sent_at_once_where_a_yield_gains_nothing),
        cmocka_unit_test(behind_another_one_no_thread_yields),
        cmocka_unit_test(what_nobody_waits_for_is_not_left_to_one_that_gathers),
        cmocka_unit_test(who_sends_leaves_nothing_to_one_that_gathers),
        cmocka_unit_test(while_a_sender_has_no_cpu_the_listener_sleeps),
    };
    return cmocka_run_group_tests(tests, hft_lane_start, hft_lane_stop);
}
