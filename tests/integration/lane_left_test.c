/* SPDX-License-Identifier: MIT */
/* lane_left_test.c - the listener's work is done by the listener, also when another thread has taken the event that
 * it slept on, and by no other thread. Nothing here has a deadline: work that is not done is waited for in vain.
 * (Linked so that hfi_dial_end, hfi_park_wake and sched_yield are the ones below.) */
#include "pool/dial.h"
#include "tests/support/fds.h"
#include "tests/support/one_lane.h"

#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define ROUNDS    60
#define BIG       (8 * 1024 * 1024)
#define COUNT_MOST 10
#define ON_OUR_CPU 1000 /* a score: the server seems to be there, for many sleeps, */
#define ON_ITS_CPU (-1000) /* or there, for many finds */
#define SOME_LOOKS 20

static bool somebody_reads(void)
{
    hfi_lane_lock(hft_lane);
    bool reading = hft_lane->reading;
    hfi_lane_unlock(hft_lane);
    return reading;
}

/* The server is frozen and owes a reply for which the listener sleeps without any end. */
static void have_the_listener_sleep_on_a_reply(struct hft_call *owed)
{
    hft_post(hft_lane, owed, hft_command("PING", HFI_NEVER)); /* no ROLE in between; and the server is known to be near */
    hft_wait(hft_lane, owed);
    hft_call_done(owed);
    hft_server_freeze(hft_server);
    hft_post(hft_lane, owed, hft_command("PING", HFI_NEVER));
    hft_let_listener_sleep();
}

static void *thaw_when_somebody_reads(void *arg)
{
    (void)arg;
    HFT_UNTIL(somebody_reads());
    hft_server_thaw(hft_server);
    return NULL;
}

/* Reader and listener hear of the reply at once; who is first takes it. */
static void a_posted_command_is_sent_although_a_reader_took_the_listeners_reply(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct hft_call owed, soon;
        pthread_t thread;
        have_the_listener_sleep_on_a_reply(&owed);
        assert_int_equal(pthread_create(&thread, NULL, thaw_when_somebody_reads, NULL), 0);
        hft_wait(hft_lane, &owed);
        hft_list(hft_lane, &soon, hft_command("PING", HFI_NEVER));
        hfi_lane_flush_soon(hft_lane);
        (void)pthread_join(thread, NULL);
        HFT_UNTIL(hft_is_over(&soon));
        hft_is_answered(&owed);
        hft_is_answered(&soon);
    }
}

struct big {
    struct hft_call call;
    char *value;
};

static void *post_more_than_the_socket_takes_and_thaw(void *arg)
{
    struct big *big = arg;
    const char *const words[] = {"SET", "big", big->value};
    struct hfi_command *command = hfi_command_new(3, words, NULL);
    command->until_ns = HFI_NEVER;
    HFT_UNTIL(somebody_reads());
    hft_post(hft_lane, &big->call, command);
    hft_server_thaw(hft_server);
    return NULL;
}

/* The reader knows that the socket is full; its own wait may end before there is room. */
static void bytes_that_a_full_socket_refused_are_sent_although_the_waiting_reader_left(void **state)
{
    struct big big = {.value = malloc(BIG + 1)};
    (void)state;
    memset(big.value, 'x', BIG);
    big.value[BIG] = 0;
    for (int i = 0; i < ROUNDS; i++) {
        struct hft_call owed;
        pthread_t thread;
        have_the_listener_sleep_on_a_reply(&owed);
        assert_int_equal(pthread_create(&thread, NULL, post_more_than_the_socket_takes_and_thaw, &big), 0);
        hft_wait(hft_lane, &owed);
        (void)pthread_join(thread, NULL);
        HFT_UNTIL(hft_is_over(&big.call));
        hft_is_answered(&owed);
        hft_is_answered(&big.call);
    }
    free(big.value);
}

struct waiting {
    struct hft_call *call;
    _Atomic(int) tid;
};

static void *wait_for_reply(void *arg)
{
    struct waiting *waiting = arg;
    atomic_store(&waiting->tid, gettid());
    hft_wait(hft_lane, waiting->call);
    return NULL;
}

/* The next reply does not come, and the reader's own wait has no end. Of so many commands so many were in flight when it began. Was
 * the last one left? */
static bool is_left_and_sent(int count, int before, int server_cpu)
{
    struct hft_call calls[COUNT_MOST];
    struct waiting waiting = {.call = &calls[0]};
    pthread_t thread;
    hft_ask(hft_lane, &calls[0], "PING");
    hft_call_done(&calls[0]);
    hft_server_freeze(hft_server);
    atomic_store(&hft_lane->deployment->costs.send_ns, HFI_MS);
    atomic_store(&hft_lane->server_cpu, server_cpu);
    atomic_store(&hft_lane->nearest_rtt_ns, 1);               /* so the server is near, and commands gather, */
    atomic_store(&hft_lane->deployment->costs.wake_up_ns, 1); /* and nobody looks */
    atomic_store(&hft_lane->deployment->costs.yield_ns, 1);
    for (int i = 0; i < before; i++)
        hft_post(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_reply, &waiting), 0);
    HFT_UNTIL(somebody_reads() && hft_is_asleep(atomic_load(&waiting.tid)));
    for (int i = before; i < count - 1; i++)
        hft_post(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
    hft_list(hft_lane, &calls[count - 1], hft_command("PING", HFI_NEVER));
    hfi_lane_flush(hft_lane);
    bool was_left = !hfi_inbox_is_empty(&hft_lane->inbox);
    HFT_UNTIL(hfi_inbox_is_empty(&hft_lane->inbox));
    hft_server_thaw(hft_server);
    (void)pthread_join(thread, NULL);
    for (int i = 0; i < count; i++) {
        HFT_UNTIL(hft_is_over(&calls[i]));
        hft_is_answered(&calls[i]);
    }
    return was_left;
}

static void what_is_left_to_a_reader_is_sent_though_the_server_says_nothing(void **state)
{
    bool was_left = false, was_one_of_few = false;
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        was_left = is_left_and_sent(COUNT_MOST, 9, 0) || was_left;
        was_one_of_few = is_left_and_sent(3, 2, ON_OUR_CPU) || was_one_of_few;
        assert_false(is_left_and_sent(3, 2, 0));
    }
    assert_true(was_left); /* unless the reader happens to look just then */
    assert_true(was_one_of_few);
}

static ssize_t (*really_send)(struct hfi_connection *connection, const void *bytes, size_t size);
static struct hft_call late;
static bool lists_late;

/* While a thread sends, the reader leaves, and another thread lists. */
static ssize_t send_and_be_left(struct hfi_connection *connection, const void *bytes, size_t size)
{
    ssize_t sent = really_send(connection, bytes, size);
    if (lists_late) {
        lists_late = false;
        atomic_store(&hft_lane->looks_again, false);
        hft_list(hft_lane, &late, hft_command("PING", HFI_NEVER));
        hfi_lane_flush(hft_lane); /* the thread that sends will do so */
    }
    return sent;
}

static void who_sends_knows_that_the_reader_has_left_meanwhile(void **state)
{
    enum { CALLS = 5 }; /* one more and the last one would be left to the reader */
    struct hft_call calls[CALLS];
    struct hfi_transport watched = *hft_lane->connection.transport;
    const struct hfi_transport *transport = hft_lane->connection.transport;
    (void)state;
    hft_ask(hft_lane, &calls[0], "PING");
    hft_call_done(&calls[0]);
    hft_server_freeze(hft_server);
    atomic_store(&hft_lane->server_cpu, 0);
    atomic_store(&hft_lane->deployment->costs.send_ns, HFI_MS);
    atomic_store(&hft_lane->nearest_rtt_ns, 1); /* so the server is near, and commands gather */
    for (int i = 0; i < CALLS - 1; i++)
        hft_post(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
    HFT_UNTIL(hft_is_asleep(hft_listener) && hft_takes_read_role());
    really_send = watched.send;
    watched.send = send_and_be_left;
    hft_lane->connection.transport = &watched;
    lists_late = true;
    atomic_store(&hft_lane->looks_again, true);
    hft_post(hft_lane, &calls[CALLS - 1], hft_command("PING", HFI_NEVER));
    hft_lane->connection.transport = transport;
    hft_give_read_role_back();
    assert_false(lists_late);
    assert_true(hfi_inbox_is_empty(&hft_lane->inbox));
    hft_server_thaw(hft_server);
    for (int i = 0; i < CALLS; i++) {
        hft_wait(hft_lane, &calls[i]);
        hft_is_answered(&calls[i]);
    }
    hft_wait(hft_lane, &late);
    hft_is_answered(&late);
}

static void nothing_is_left_to_a_reader_that_sleeps_till_the_reply(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        assert_false(is_left_and_sent(COUNT_MOST, 1, i % 2 == 0 ? 0 : ON_OUR_CPU));
}

/* The server is near, so commands gather; and to look is worth it. */
static void have_a_crowd_that_looks(bool looks)
{
    atomic_store(&hft_lane->deployment->costs.send_ns, HFI_MS);
    atomic_store(&hft_lane->nearest_rtt_ns, 1);
    atomic_store(&hft_lane->rtt_ns, 1);
    atomic_store(&hft_lane->deployment->costs.wake_up_ns, HFI_MS);
    atomic_store(&hft_lane->deployment->pace.turn_ends_ns, HFI_NEVER);
    atomic_store(&hft_lane->deployment->pace.looks, looks);
}

static _Atomic(bool) lists_meanwhile, is_left;

void __real_hfi_park_wake(struct hfi_park *park);
void __wrap_hfi_park_wake(struct hfi_park *park);

/* By the thread that gives the read role to the next one, which does not run yet. */
void __wrap_hfi_park_wake(struct hfi_park *park)
{
    if (atomic_load(&hft_lane->looks_again))
        atomic_store(&is_left, true);
    if (atomic_load(&hft_lane->looks_again) && atomic_exchange(&lists_meanwhile, false))
        hft_list(hft_lane, &late, hft_command("PING", HFI_NEVER)); /* whoever lists, flushes: it is left */
    __real_hfi_park_wake(park);
}

struct guest { /* waits for something else than a reply */
    struct hfi_park park;
    uint32_t epoch;
    _Atomic(int) tid;
};

static void *wait_to_be_woken(void *arg)
{
    struct guest *guest = arg;
    atomic_store(&guest->tid, gettid());
    (void)hfi_lane_wait(hft_lane, &guest->park, guest->epoch, HFI_NEVER);
    return NULL;
}

static void have_nobody_wait_for_replies(void)
{
    hfi_lane_lock(hft_lane);
    for (struct hfi_list *at = hft_lane->in_flight.next; at != &hft_lane->in_flight; at = at->next)
        hfi_container_of(at, struct hfi_command, link)->awaited = HFI_AWAITED_BY_NOBODY;
    hft_lane->threadless = hft_lane->in_flight_count;
    hfi_lane_unlock(hft_lane);
}

/* Is what is listed while the reader gives its role back left to who reads next? All others sleep. */
static bool is_left_to_sleepers(bool are_to_read)
{
    enum { CALLS = 9, GUESTS = 12 };
    struct hft_call calls[CALLS];
    struct guest guests[GUESTS];
    pthread_t threads[GUESTS];
    hft_ask(hft_lane, &calls[0], "PING");
    hft_call_done(&calls[0]);
    have_a_crowd_that_looks(true);
    atomic_store(&hft_lane->nearest_rtt_ns, HFI_MS / 100); /* but to look is not worth it, and each yield is long */
    atomic_store(&hft_lane->deployment->costs.wake_up_ns, 1);
    atomic_store(&hft_lane->deployment->costs.yield_ns, 1);
    hft_server_freeze(hft_server);
    for (int i = 0; i < CALLS - 1; i++)
        hft_post(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
    for (int i = 0; i < GUESTS; i++) {
        hfi_park_init(&guests[i].park);
        guests[i].epoch = hfi_park_epoch(&guests[i].park);
        atomic_init(&guests[i].tid, 0);
        assert_int_equal(pthread_create(&threads[i], NULL, wait_to_be_woken, &guests[i]), 0);
        HFT_UNTIL(somebody_reads() && atomic_load(&hft_lane->waiting) == i && hft_is_asleep(atomic_load(&guests[i].tid)));
    }
    if (!are_to_read)
        have_nobody_wait_for_replies();
    atomic_store(&is_left, false);
    __real_hfi_park_wake(&guests[0].park); /* its thread reads */
    (void)pthread_join(threads[0], NULL);
    bool was_left = are_to_read ? atomic_load(&is_left) : atomic_load(&hft_lane->looks_again);
    hft_post(hft_lane, &calls[CALLS - 1], hft_command("PING", HFI_NEVER));
    have_a_crowd_that_looks(false);
    hft_server_thaw(hft_server);
    for (int i = 1; i < GUESTS; i++) {
        __real_hfi_park_wake(&guests[i].park);
        (void)pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < CALLS; i++) {
        HFT_UNTIL(hft_is_over(&calls[i]));
        hft_is_answered(&calls[i]);
    }
    return was_left;
}

static void nothing_is_left_to_a_crowd_that_sleeps(void **state)
{
    (void)state;
    assert_false(is_left_to_sleepers(false)); /* it waits for something else, and none of it will read */
    assert_false(is_left_to_sleepers(true));
}

/* By one of so many. */
static void list_while_the_read_role_passes(int count, int server_cpu)
{
    enum { CALLS = 12 };
    struct hft_call calls[CALLS];
    struct waiting waiting[CALLS];
    pthread_t threads[CALLS];
    hft_ask(hft_lane, &calls[0], "PING");
    hft_call_done(&calls[0]);
    have_a_crowd_that_looks(count == CALLS); /* few look without it */
    hft_server_freeze(hft_server);
    for (int i = 0; i < count; i++) {
        waiting[i].call = &calls[i];
        atomic_init(&waiting[i].tid, 0);
        hft_post(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_reply, &waiting[i]), 0);
    }
    HFT_UNTIL(somebody_reads() && atomic_load(&hft_lane->waiting) == count - 1);
    atomic_store(&lists_meanwhile, true);
    int64_t until_ns = hft_in_ms(20000);
    /* The reader looks whether its call is over; who reads next still does. */
    for (int i = 0; atomic_load(&lists_meanwhile) && hft_now() < until_ns; i++) {
        have_a_crowd_that_looks(count == CALLS);
        atomic_store(&hft_lane->server_cpu, server_cpu);
        atomic_store(&hft_lane->keeps_cpu, true);
        atomic_store(&hft_lane->gave_cpu, false);
        __real_hfi_park_wake(&calls[i % count].park);
        (void)sched_yield();
    }
    assert_false(atomic_load(&lists_meanwhile));
    HFT_UNTIL(hfi_inbox_is_empty(&hft_lane->inbox));
    hft_thaw_and_have_answers(threads, calls, count);
    hft_wait(hft_lane, &late);
    hft_is_answered(&late);
    have_a_crowd_that_looks(false);
}

static void what_is_listed_while_a_crowd_that_looks_passes_the_read_role_on_is_left_and_sent(void **state)
{
    (void)state;
    list_while_the_read_role_passes(12, 0);
}

static void so_it_is_among_few_beside_a_server_with_a_cpu_of_its_own(void **state)
{
    (void)state;
    list_while_the_read_role_passes(4, ON_ITS_CPU);
}

static uint32_t joined(void)
{
    struct hfi_followers *all = &hft_lane->deployment->followers;
    return (uint32_t)atomic_load(&all->periods[0]) + (uint32_t)atomic_load(&all->periods[1]);
}

/* It may wait for a grant, for seconds: it is in nobody's way till then. */
static void who_sleeps_for_long_is_no_follower_any_more(void **state)
{
    struct hft_call calls[2];
    struct waiting waiting[2] = {{.call = &calls[0]}, {.call = &calls[1]}};
    pthread_t threads[2];
    (void)state;
    hft_ask(hft_lane, &calls[0], "PING");
    hft_call_done(&calls[0]);
    hft_server_freeze(hft_server);
    for (int i = 0; i < 2; i++) {
        hft_post(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_reply, &waiting[i]), 0);
    }
    HFT_UNTIL(atomic_load(&hft_lane->waiting) == 1); /* and the other one reads */
    for (int i = 0; i < 2; i++)
        HFT_UNTIL(hft_is_asleep(atomic_load(&waiting[i].tid)));
    HFT_UNTIL(joined() == 1);
    HFT_UNTIL(hfi_followers_count(&hft_lane->deployment->followers, hft_now()) == 0);
    hft_thaw_and_have_answers(threads, calls, 2);
    assert_int_equal(joined(), 0);
}

static _Thread_local bool is_watched;
static _Atomic(int) yields; /* of the thread that is, between two looks */
static _Atomic(bool) looks_meanwhile; /* is what others list then left to it? */
static _Atomic(int) answer_at; /* at this one of them the reply is waited for; 0: at none */

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void)
{
    if (is_watched)
        atomic_store(&looks_meanwhile, atomic_load(&hft_lane->looks_again));
    if (is_watched && atomic_fetch_add(&yields, 1) + 1 == atomic_load(&answer_at)) {
        struct pollfd reply = {hft_lane->connection.fd, POLLIN, 0};
        (void)poll(&reply, 1, -1); /* the thread seems asleep, so the server is thawed */
    }
    return __real_sched_yield();
}

static void *wait_for_reply_watched(void *arg)
{
    is_watched = true;
    return wait_for_reply(arg);
}

/* till: the look that finds the reply, if the thread does not sleep before; 0: none does. The pauses are in sleeps. */
static int looks_in_pauses_at_silent_server(int till, int pause, int lone_pause)
{
    struct hft_call call;
    struct waiting waiting = {.call = &call};
    pthread_t thread;
    hft_ask(hft_lane, &call, "PING");
    hft_call_done(&call);
    hft_server_freeze(hft_server);
    atomic_store(&hft_lane->deployment->costs.wake_up_ns, HFI_MS); /* so it looks, */
    atomic_store(&hft_lane->rtt_ns, HFI_MS / 100);
    hft_lane->looks = hft_lane->yields = hft_lane->lone_yields = (struct hfi_trial){0}; /* as nothing has spoken against it */
    hft_lane->yields.pause = pause;
    hft_lane->lone_yields.pause = lone_pause;
    atomic_store(&hft_lane->server_cpu, SOME_LOOKS);
    atomic_store(&hft_lane->gave_cpu, false);
    atomic_store(&yields, 0);
    atomic_store(&answer_at, till);
    hft_post(hft_lane, &call, hft_command("PING", HFI_NEVER));
    assert_int_equal(pthread_create(&thread, NULL, wait_for_reply_watched, &waiting), 0);
    HFT_UNTIL(somebody_reads() && hft_is_asleep(atomic_load(&waiting.tid))); /* on the reply, perhaps at that look */
    bool is_silent = atomic_load(&hft_lane->is_silent);
    hft_server_thaw(hft_server);
    (void)pthread_join(thread, NULL);
    atomic_store(&answer_at, 0);
    HFT_UNTIL(hft_is_over(&call));
    hft_is_answered(&call);
    assert_true(is_silent || till != 0);
    assert_false(atomic_load(&hft_lane->is_silent));
    return atomic_load(&yields);
}

#define looks_at_silent_server(till) looks_in_pauses_at_silent_server(till, 0, 0)

static void a_look_at_a_server_that_says_nothing_ends(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++)
        assert_true(looks_at_silent_server(0) > 0);
}

static void the_look_that_finds_a_reply_is_noted(void **state)
{
    (void)state;
    assert_int_equal(looks_at_silent_server(1), 1);
    assert_true(atomic_load(&hft_lane->server_cpu) > SOME_LOOKS);
    while (looks_at_silent_server(2) != 2) /* it lost the CPU at the first one */
        ;
    assert_true(atomic_load(&hft_lane->server_cpu) < SOME_LOOKS);
    assert_true(looks_at_silent_server(0) > 0);
    assert_true(atomic_load(&hft_lane->server_cpu) < SOME_LOOKS);
}

static void it_is_known_whether_readers_look(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(looks_at_silent_server(0) > 0);
        assert_true(atomic_load(&hft_lane->readers_look));
        if (i == 0)
            (void)is_left_and_sent(3, 2, 0); /* nobody looks */
        else
            assert_int_equal(looks_in_pauses_at_silent_server(0, INT_MAX, INT_MAX), 0); /* another program wants the CPU */
        assert_false(atomic_load(&hft_lane->readers_look));
    }
}

static void beside_other_programs_one_yields_once_before_it_sleeps(void **state)
{
    (void)state;
    assert_int_equal(looks_in_pauses_at_silent_server(1, INT_MAX, 0), 1); /* and finds the reply */
    assert_false(atomic_load(&looks_meanwhile));
    assert_int_equal(hft_lane->lone_yields.hits + hft_lane->lone_yields.misses, 1);
    assert_int_equal(looks_in_pauses_at_silent_server(0, INT_MAX, 0), 1);
    atomic_store(&hft_lane->deployment->costs.send_ns, 1); /* who is so much further away */
    assert_int_equal(looks_in_pauses_at_silent_server(0, INT_MAX, 0), 0);
}

static void who_is_followed_sleeps_at_once(void **state)
{
    struct hft_call calls[2];
    struct waiting waiting[2] = {{.call = &calls[0]}, {.call = &calls[1]}};
    pthread_t threads[2]; /* the first one reads */
    struct pollfd kick = {hft_lane->wake_fd, POLLIN, 0};
    (void)state;
    hft_lane->lone_yields = (struct hfi_trial){0};
    hft_lane->yields.pause = INT_MAX;
    hft_server_freeze(hft_server);
    for (int i = 0; i < 2; i++) {
        hft_post(hft_lane, &calls[i], hft_command("PING", HFI_NEVER));
        assert_int_equal(pthread_create(&threads[i], NULL, i == 0 ? wait_for_reply_watched : wait_for_reply, &waiting[i]), 0);
        HFT_UNTIL(somebody_reads() && atomic_load(&hft_lane->waiting) == i && hft_is_asleep(atomic_load(&waiting[i].tid)));
        atomic_store(&yields, 0);
    }
    atomic_store(&hft_lane->deployment->costs.send_ns, HFI_MS); /* near, so it would yield */
    (void)eventfd_write(kick.fd, 1);
    HFT_UNTIL(poll(&kick, 1, 0) == 0 && hft_is_asleep(atomic_load(&waiting[0].tid))); /* again */
    int count = atomic_load(&yields);
    hft_thaw_and_have_answers(threads, calls, 2);
    assert_int_equal(count, 0);
}

/* How often a thread looks for its wake-up while another one reads, beside so many. */
static int looks_for_wake_up(int followers)
{
    struct hft_call calls[2];
    struct waiting waiting[2] = {{.call = &calls[0]}, {.call = &calls[1]}};
    pthread_t threads[2];
    hft_server_freeze(hft_server);
    atomic_store(&hft_lane->deployment->costs.send_ns, 1); /* so nothing is left to the reader, who sleeps till the reply */
    hft_post(hft_lane, &calls[0], hft_command("PING", HFI_NEVER));
    assert_int_equal(pthread_create(&threads[0], NULL, wait_for_reply, &waiting[0]), 0);
    HFT_UNTIL(somebody_reads() && hft_is_asleep(atomic_load(&waiting[0].tid)));
    hft_post(hft_lane, &calls[1], hft_command("PING", HFI_NEVER));
    atomic_store(&hft_lane->rtt_ns, HFI_MS / 100); /* so it looks, if it may; nobody has lost the CPU, nor has a sleep been dear */
    atomic_store(&hft_lane->nearest_rtt_ns, HFI_MS / 100);
    atomic_store(&hft_lane->deployment->costs.sleep_ns, 0);
    atomic_store(&hft_lane->keeps_cpu, true);
    atomic_store(&hft_lane->gave_cpu, false);
    atomic_store(&yields, 0);
    hft_have_followers(followers);
    assert_int_equal(pthread_create(&threads[1], NULL, wait_for_reply_watched, &waiting[1]), 0);
    HFT_UNTIL(joined() != 2 * (uint32_t)followers && hft_is_asleep(atomic_load(&waiting[1].tid)));
    bool in_time = hfi_followers_count(&hft_lane->deployment->followers, hft_now()) >= followers;
    int looks = atomic_load(&yields);
    hft_thaw_and_have_answers(threads, calls, 2);
    for (int i = 0; i < 2; i++)
        atomic_store(&hft_lane->deployment->followers.periods[i], 0);
    return in_time ? looks : looks_for_wake_up(followers); /* they were counted no more */
}

static void one_of_a_crowd_looks_when_that_has_its_turn(void **state)
{
    struct hft_call call;
    (void)state;
    hft_ask(hft_lane, &call, "PING");
    hft_call_done(&call);
    have_a_crowd_that_looks(false);
    int64_t began_ns = hft_now();
    int waits = atomic_load(&hft_lane->deployment->pace.waits);
    assert_int_equal(looks_for_wake_up(1000), 0);
    assert_true(atomic_load(&hft_lane->deployment->pace.waits) > waits);
    assert_true(atomic_load(&hft_lane->deployment->pace.noted_ns) >= began_ns);
    atomic_store(&hft_lane->deployment->pace.looks, true);
    assert_true(looks_for_wake_up(1000) > 0);
    atomic_store(&hft_lane->deployment->pace.looks, false);
    assert_true(looks_for_wake_up(2) > 0); /* one of a few looks in any case */
}

static struct hft_call early;
static _Atomic(bool) lists_early, listed_early;
static _Atomic(uint64_t) times_up; /* of the lane, before it was killed */

static uint64_t times_up_now(void)
{
    hfi_lane_lock(hft_lane);
    uint64_t times = hft_lane->times_up;
    hfi_lane_unlock(hft_lane);
    return times;
}

void __real_hfi_dial_end(struct hfi_dial **dial);
void __wrap_hfi_dial_end(struct hfi_dial **dial);

/* In the listener, which has just said that the lane is up. */
void __wrap_hfi_dial_end(struct hfi_dial **dial)
{
    bool brings_up = atomic_load(&lists_early) && times_up_now() > atomic_load(&times_up);
    __real_hfi_dial_end(dial);
    if (brings_up) {
        atomic_store(&lists_early, false);
        hft_list(hft_lane, &early, hft_command("PING", HFI_NEVER));
        atomic_store(&listed_early, true);
    }
}

/* A thread that is preempted between the two. */
static void a_command_listed_as_the_lane_comes_up_and_flushed_later_is_sent(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&listed_early, false);
        atomic_store(&times_up, times_up_now());
        atomic_store(&lists_early, true);
        freeReplyObject(hft_server_ask(hft_server, "CLIENT KILL TYPE normal SKIPME yes"));
        HFT_UNTIL(atomic_load(&listed_early) && hft_is_asleep(hft_listener));
        hfi_lane_flush(hft_lane);
        HFT_UNTIL(hft_is_over(&early));
        hft_is_answered(&early);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_posted_command_is_sent_although_a_reader_took_the_listeners_reply),
        cmocka_unit_test(bytes_that_a_full_socket_refused_are_sent_although_the_waiting_reader_left),
        cmocka_unit_test(what_is_left_to_a_reader_is_sent_though_the_server_says_nothing),
        cmocka_unit_test(who_sends_knows_that_the_reader_has_left_meanwhile),
        cmocka_unit_test(nothing_is_left_to_a_reader_that_sleeps_till_the_reply),
        cmocka_unit_test(nothing_is_left_to_a_crowd_that_sleeps),
        cmocka_unit_test(what_is_listed_while_a_crowd_that_looks_passes_the_read_role_on_is_left_and_sent),
        cmocka_unit_test(so_it_is_among_few_beside_a_server_with_a_cpu_of_its_own),
        cmocka_unit_test(who_sleeps_for_long_is_no_follower_any_more),
        cmocka_unit_test(a_look_at_a_server_that_says_nothing_ends),
        cmocka_unit_test(the_look_that_finds_a_reply_is_noted),
        cmocka_unit_test(it_is_known_whether_readers_look),
        cmocka_unit_test(beside_other_programs_one_yields_once_before_it_sleeps),
        cmocka_unit_test(who_is_followed_sleeps_at_once),
        cmocka_unit_test(one_of_a_crowd_looks_when_that_has_its_turn),
        cmocka_unit_test(a_command_listed_as_the_lane_comes_up_and_flushed_later_is_sent),
    };
    return cmocka_run_group_tests(tests, hft_lane_start, hft_lane_stop);
}
