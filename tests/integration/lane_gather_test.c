/* SPDX-License-Identifier: MIT */
/* lane_gather_test.c - the first command to a server that has our CPU: who sends it yields once, and sends those of others with it.
 * (Linked so that sched_yield is the one below.) */
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

int __real_sched_yield(void);
int __wrap_sched_yield(void);

int __wrap_sched_yield(void)
{
    if (atomic_exchange(&meets_gatherer, false))
        meet_gatherer();
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_command_is_sent_with_those_of_others),
        cmocka_unit_test(it_is_sent_at_once_where_a_yield_gains_nothing),
        cmocka_unit_test(behind_another_one_no_thread_yields),
    };
    return cmocka_run_group_tests(tests, hft_lane_start, hft_lane_stop);
}
