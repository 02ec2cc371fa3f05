/* SPDX-License-Identifier: MIT */
/* lane_group_test.c - a server with a CPU of its own: how a reader knows, and who sends a group of commands. */
#include "tests/support/fds.h"
#include "tests/support/one_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#define ON_ITS_CPU (-1000) /* a score, for many finds */
#define COMMANDS   4

struct scene {
    int threads, followers; /* seem to wait beside the one that lists, to follow of late */
    bool looks;             /* it is a crowd's turn to look */
    bool gave_cpu;
};

/* Beside a reader that does not look yet. How many commands does the first send carry? What was left leaves in the end. */
static int group_in(struct scene scene)
{
    struct hft_call owed, calls[COMMANDS];
    int group = 0;
    hft_ask(hft_lane, &owed, "PING"); /* no ROLE in front of the next one */
    hft_call_done(&owed);
    hft_server_freeze(hft_server);
    hft_post(hft_lane, &owed, hft_command("PING", HFI_NEVER));
    hft_let_listener_sleep();
    assert_true(hft_takes_read_role());
    atomic_store(&hft_lane->deployment->costs.send_ns, HFI_MS);
    atomic_store(&hft_lane->nearest_rtt_ns, 1); /* so the server is near, and commands gather */
    atomic_store(&hft_lane->deployment->pace.looks, scene.looks);
    atomic_store(&hft_lane->server_cpu, ON_ITS_CPU);
    (void)atomic_fetch_add(&hft_lane->threads, scene.threads);
    hft_have_followers(scene.followers);
    atomic_store(&hft_lane->keeps_cpu, true);
    atomic_store(&hft_lane->gave_cpu, scene.gave_cpu);
    atomic_store(&hft_lane->looks_again, true);
    uint64_t sends = hft_lane->sends;
    for (int i = 0; i < COMMANDS; i++) {
        hft_list(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
        hfi_lane_flush(hft_lane);
        if (group == 0 && hft_lane->sends > sends) {
            group = i + 1;
            assert_true(hfi_inbox_is_empty(&hft_lane->inbox));
            assert_int_equal(atomic_load(&hft_lane->listed), 0);
        }
    }
    atomic_store(&hft_lane->looks_again, false);
    hfi_lane_flush_now(hft_lane);
    (void)atomic_fetch_sub(&hft_lane->threads, scene.threads);
    hft_have_followers(0);
    hft_give_read_role_back();
    hft_server_thaw(hft_server);
    hft_wait(hft_lane, &owed);
    hft_is_answered(&owed);
    for (int i = 0; i < COMMANDS; i++) {
        hft_wait(hft_lane, &calls[i]);
        hft_is_answered(&calls[i]);
    }
    return group;
}

static void a_group_leaves_with_the_command_that_completes_it(void **state)
{
    (void)state;
    assert_int_equal(group_in((struct scene){8, 7, false, false}), 3); /* few look in any case */
    assert_int_equal(group_in((struct scene){68, 7, false, false}), 3); /* sixty have waited for long */
    assert_int_equal(group_in((struct scene){11, 10, true, false}), 4);
    assert_int_equal(group_in((struct scene){8, 30, true, false}), 3); /* of other lanes */
    assert_int_equal(group_in((struct scene){11, 10, false, false}), 1); /* they sleep */
    assert_int_equal(group_in((struct scene){8, 7, false, true}), 1);
    assert_int_equal(group_in((struct scene){1, 0, false, false}), 1);
}

#define REPLY 7 /* bytes */

static ssize_t (*really_receive)(struct hfi_connection *connection, void *bytes, size_t size);

static size_t most; /* that a receive gives */
static int receives; /* that gave something */

static ssize_t receive_part(struct hfi_connection *connection, void *bytes, size_t size)
{
    ssize_t got = really_receive(connection, bytes, size < most ? size : most);
    receives += got > 0;
    return got;
}

static bool have_come(int bytes)
{
    int ready = 0;
    return ioctl(hft_lane->connection.fd, FIONREAD, &ready) == 0 && ready >= bytes;
}

/* The score, once a reader has found two replies, with no yield between. */
static int score_of_two_replies(void)
{
    struct hft_call calls[2];
    hft_let_listener_sleep();
    assert_true(hft_takes_read_role());
    atomic_store(&hft_lane->server_cpu, 0);
    receives = 0;
    for (int i = 0; i < 2; i++) {
        hft_list(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
        hfi_lane_flush_now(hft_lane);
    }
    HFT_UNTIL(have_come(2 * REPLY));
    hft_give_read_role_back();
    hft_wait(hft_lane, &calls[1]);
    hft_is_answered(&calls[0]);
    hft_is_answered(&calls[1]);
    return atomic_load(&hft_lane->server_cpu);
}

static void a_reply_that_is_there_just_behind_another_one_tells_of_a_cpu_of_its_own(void **state)
{
    struct hfi_transport watched = *hft_lane->connection.transport;
    const struct hfi_transport *transport = hft_lane->connection.transport;
    size_t capacity = hft_lane->in_capacity;
    struct hft_call call;
    (void)state;
    hft_ask(hft_lane, &call, "PING"); /* no ROLE in front of the next ones */
    hft_call_done(&call);
    really_receive = watched.recv;
    watched.recv = receive_part;
    hft_lane->connection.transport = &watched;
    most = capacity;
    assert_int_equal(score_of_two_replies(), 0);
    assert_int_equal(receives, 1);
    most = REPLY;
    assert_true(hfi_costs_has_own_cpu(score_of_two_replies()));
    assert_int_equal(receives, 2);
    most = REPLY + 3; /* a part of the second */
    assert_int_equal(score_of_two_replies(), 0);
    assert_int_equal(receives, 2);
    most = REPLY;
    hft_lane->in_capacity = REPLY; /* it was there before, but there was no room for it */
    assert_int_equal(score_of_two_replies(), 0);
    assert_int_equal(receives, 2);
    hft_lane->in_capacity = capacity;
    hft_lane->connection.transport = transport;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_leaves_with_the_command_that_completes_it),
        cmocka_unit_test(a_reply_that_is_there_just_behind_another_one_tells_of_a_cpu_of_its_own),
    };
    return cmocka_run_group_tests(tests, hft_lane_start, hft_lane_stop);
}
