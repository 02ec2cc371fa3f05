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
    int threads;      /* seem to wait beside the one that lists, */
    int for_messages; /* and so many of them for messages */
    bool looks;       /* it is a crowd's turn to look */
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
    HFT_UNTIL(hft_is_asleep(hft_listener) && hft_takes_read_role());
    atomic_store(&hft_lane->deployment->costs.send_ns, HFI_MS);
    atomic_store(&hft_lane->nearest_rtt_ns, 1); /* so the server is near, and commands gather */
    atomic_store(&hft_lane->deployment->pace.looks, scene.looks);
    atomic_store(&hft_lane->server_cpu, ON_ITS_CPU);
    (void)atomic_fetch_add(&hft_lane->threads, scene.threads);
    (void)atomic_fetch_add(&hft_lane->for_messages, scene.for_messages);
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
    (void)atomic_fetch_sub(&hft_lane->for_messages, scene.for_messages);
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
    assert_int_equal(group_in((struct scene){8, 0, false}), 3); /* few look in any case */
    assert_int_equal(group_in((struct scene){68, 60, false}), 3);
    assert_int_equal(group_in((struct scene){11, 0, true}), 4);
    assert_int_equal(group_in((struct scene){11, 0, false}), 1);
    assert_int_equal(group_in((struct scene){1, 0, false}), 1);
}

struct guest { /* waits for no reply */
    struct hfi_park park;
    uint32_t epoch;
};

static void *wait_to_be_woken(void *arg)
{
    struct guest *guest = arg;
    (void)hfi_lane_wait(hft_lane, &guest->park, guest->epoch, HFI_NEVER);
    return NULL;
}

static void who_has_nothing_to_read_waits_for_messages(void **state)
{
    struct guest guest;
    pthread_t thread;
    (void)state;
    hfi_park_init(&guest.park);
    guest.epoch = hfi_park_epoch(&guest.park);
    assert_int_equal(atomic_load(&hft_lane->for_messages), 0);
    assert_int_equal(pthread_create(&thread, NULL, wait_to_be_woken, &guest), 0);
    HFT_UNTIL(atomic_load(&hft_lane->for_messages) == 1);
    hfi_park_wake(&guest.park);
    (void)pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&hft_lane->for_messages), 0);
}

#define REPLY 7 /* bytes */

static ssize_t (*really_receive)(struct hfi_connection *connection, void *bytes, size_t size);

static size_t most; /* that a receive gives */

static ssize_t receive_part(struct hfi_connection *connection, void *bytes, size_t size)
{
    return really_receive(connection, bytes, size < most ? size : most);
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
    HFT_UNTIL(hft_is_asleep(hft_listener) && hft_takes_read_role());
    atomic_store(&hft_lane->server_cpu, 0);
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
    assert_int_equal(score_of_two_replies(), 0); /* both came at once */
    really_receive = watched.recv;
    watched.recv = receive_part;
    hft_lane->connection.transport = &watched;
    most = REPLY;
    assert_true(hfi_costs_has_own_cpu(score_of_two_replies()));
    most = REPLY + 3; /* a part of the second */
    assert_int_equal(score_of_two_replies(), 0);
    most = REPLY;
    hft_lane->in_capacity = REPLY; /* it was there before, but there was no room for it */
    assert_int_equal(score_of_two_replies(), 0);
    hft_lane->in_capacity = capacity;
    hft_lane->connection.transport = transport;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_leaves_with_the_command_that_completes_it),
        cmocka_unit_test(who_has_nothing_to_read_waits_for_messages),
        cmocka_unit_test(a_reply_that_is_there_just_behind_another_one_tells_of_a_cpu_of_its_own),
    };
    return cmocka_run_group_tests(tests, hft_lane_start, hft_lane_stop);
}
