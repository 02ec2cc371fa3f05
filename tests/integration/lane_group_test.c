/* SPDX-License-Identifier: MIT */
/* lane_group_test.c - a server with a CPU of its own: how a reader knows, and who sends a group of commands. */
#include "pool/lane_private.h"
#include "tests/support/fds.h"
#include "tests/support/pool_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#define ON_ITS_CPU (-1000) /* a score, for many finds */
#define THREADS    8       /* that seem to wait, so that with the one that lists */
#define GROUP      3       /* commands are a third */

static struct hft_server *server;
static struct hft_pool kit;
static struct hfi_lane *lane;
static int listener;

static int start(void **state)
{
    (void)state;
    lane = hft_lane_start(&kit, &server);
    listener = hft_thread_named("hf-listener");
    return lane != NULL ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    hft_lane_stop(&kit, server);
    return 0;
}

static void is_answered(struct hft_call *call)
{
    assert_int_equal(call->outcome, HFI_ANSWERED);
    hft_call_done(call);
}

static bool takes_read_role(void)
{
    hfi_lane_lock(lane);
    bool takes = !lane->reading;
    lane->reading = true;
    hfi_lane_unlock(lane);
    return takes;
}

static void give_read_role_back(void)
{
    hfi_lane_lock(lane);
    lane->reading = false;
    hfi_lane_unlock(lane);
}

/* Beside a reader that does not look yet. Which of the commands was the first that its lister sent? What was left leaves with it. */
static int first_sent(int threads)
{
    struct hft_call owed, calls[GROUP];
    int sent = -1;
    hft_ask(lane, &owed, "PING"); /* no ROLE in front of the next one */
    hft_call_done(&owed);
    hft_server_freeze(server);
    hft_post(lane, &owed, hft_command("PING", HFI_NEVER));
    HFT_UNTIL(hft_is_asleep(listener) && takes_read_role());
    atomic_store(&lane->deployment->costs.send_ns, HFI_MS);
    atomic_store(&lane->nearest_rtt_ns, 1); /* so the server is near, and commands gather */
    atomic_store(&lane->server_cpu, ON_ITS_CPU);
    (void)atomic_fetch_add(&lane->threads, threads);
    atomic_store(&lane->looks_again, true);
    uint64_t sends = lane->sends;
    for (int i = 0; i < GROUP; i++) {
        hft_list(lane, &calls[i], hft_command("PING", HFI_NEVER));
        hfi_lane_flush(lane);
        if (sent < 0 && lane->sends > sends) {
            sent = i;
            assert_true(hfi_inbox_is_empty(&lane->inbox));
            assert_int_equal(atomic_load(&lane->listed), 0);
        }
    }
    atomic_store(&lane->looks_again, false);
    hfi_lane_flush_now(lane);
    (void)atomic_fetch_sub(&lane->threads, threads);
    give_read_role_back();
    hft_server_thaw(server);
    hft_wait(lane, &owed);
    is_answered(&owed);
    for (int i = 0; i < GROUP; i++) {
        hft_wait(lane, &calls[i]);
        is_answered(&calls[i]);
    }
    return sent;
}

static void a_group_leaves_with_the_command_that_completes_it(void **state)
{
    (void)state;
    assert_int_equal(first_sent(THREADS), GROUP - 1);
    assert_int_equal(first_sent(1), 0); /* few send their own: the server is at another one's meanwhile */
}

#define REPLY 7 /* bytes */

static ssize_t (*really_receive)(struct hfi_connection *connection, void *bytes, size_t size);

static ssize_t receive_one(struct hfi_connection *connection, void *bytes, size_t size)
{
    return really_receive(connection, bytes, size < REPLY ? size : REPLY);
}

static bool have_come(int bytes)
{
    int ready = 0;
    return ioctl(lane->connection.fd, FIONREAD, &ready) == 0 && ready >= bytes;
}

/* The score, once a reader has found two replies in two receives, with nothing between. */
static int score_of_two_receives(void)
{
    struct hft_call calls[2];
    HFT_UNTIL(hft_is_asleep(listener) && takes_read_role());
    atomic_store(&lane->server_cpu, 0);
    for (int i = 0; i < 2; i++) {
        hft_list(lane, &calls[i], hft_command("PING", HFI_NEVER));
        hfi_lane_flush_now(lane);
    }
    HFT_UNTIL(have_come(2 * REPLY));
    give_read_role_back();
    hft_wait(lane, &calls[1]);
    is_answered(&calls[0]);
    is_answered(&calls[1]);
    return atomic_load(&lane->server_cpu);
}

static void a_reply_that_is_there_just_behind_another_one_tells_of_a_cpu_of_its_own(void **state)
{
    struct hfi_transport watched = *lane->connection.transport;
    const struct hfi_transport *transport = lane->connection.transport;
    size_t capacity = lane->in_capacity;
    struct hft_call call;
    (void)state;
    hft_ask(lane, &call, "PING"); /* no ROLE in front of the next ones */
    hft_call_done(&call);
    really_receive = watched.recv;
    watched.recv = receive_one;
    lane->connection.transport = &watched;
    assert_true(hfi_costs_has_own_cpu(score_of_two_receives()));
    lane->connection.transport = transport;
    lane->in_capacity = REPLY; /* it was there before, but there was no room for it */
    assert_false(hfi_costs_has_own_cpu(score_of_two_receives()));
    lane->in_capacity = capacity;
    assert_int_equal(score_of_two_receives(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_leaves_with_the_command_that_completes_it),
        cmocka_unit_test(a_reply_that_is_there_just_behind_another_one_tells_of_a_cpu_of_its_own),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
