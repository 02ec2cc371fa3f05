/* SPDX-License-Identifier: MIT */
/* dispatcher_test.c - posted calls, chores, and taking back. */
#include "base/clock.h"
#include "base/park.h"
#include "tests/support/fds.h"
#include "watchdog/dispatcher.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

/* A gate: closed until somebody opens it. */
struct gate {
    struct hfi_park park;
    _Atomic(bool) open;
};

static void gate_init(struct gate *gate)
{
    hfi_park_init(&gate->park);
    atomic_init(&gate->open, false);
}

static void gate_open(struct gate *gate)
{
    atomic_store(&gate->open, true);
    hfi_park_wake(&gate->park);
}

static bool gate_pass(struct gate *gate)
{
    int64_t until_ns = hfi_after_ms(hfi_now(&hfi_boottime), 20000);
    for (;;) {
        uint32_t ticket = hfi_park_epoch(&gate->park);
        if (atomic_load(&gate->open))
            return true;
        if (!hfi_park_wait(&gate->park, ticket, until_ns))
            return false;
    }
}

struct note {
    struct hfi_job call;
    struct hfi_dispatcher *dispatcher;
    struct gate entered, leave; /* of a call that stays inside until it is let go */
    struct note *after;         /* posted from inside */
    _Atomic(int) *order;
    _Atomic(int) ran_as; /* 1: the first of all */
    pthread_t thread;
    bool taken_inside;
    _Atomic(bool) left;
};

static void note_init(struct note *note, struct hfi_dispatcher *dispatcher, _Atomic(int) *order)
{
    memset(note, 0, sizeof *note);
    hfi_list_init(&note->call.link);
    note->dispatcher = dispatcher;
    note->order = order;
    gate_init(&note->entered);
    gate_init(&note->leave);
}

static void run(struct hfi_job *call)
{
    struct note *note = hfi_container_of(call, struct note, call);
    note->thread = pthread_self();
    note->taken_inside = hfi_dispatcher_withdraw(note->dispatcher, call); /* it runs already */
    if (note->after != NULL)
        hfi_dispatcher_post(note->dispatcher, &note->after->call);
    atomic_store(&note->ran_as, 1 + atomic_fetch_add(note->order, 1));
}

static void run_slowly(struct hfi_job *call)
{
    struct note *note = hfi_container_of(call, struct note, call);
    gate_open(&note->entered);
    (void)gate_pass(&note->leave);
    atomic_store(&note->left, true);
}

static struct hfi_dispatcher *started(bool caller_runs)
{
    struct hfi_dispatcher *dispatcher;
    assert_int_equal(hfi_dispatcher_start(caller_runs, &dispatcher, NULL), HF_OK);
    return dispatcher;
}

static void end(struct hfi_dispatcher *dispatcher)
{
    hfi_dispatcher_stop(dispatcher);
    hfi_dispatcher_free(dispatcher);
}

static bool is_readable(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

static void posted_calls_run_in_order_in_a_thread_of_its_own(void **state)
{
    (void)state;
    struct hfi_dispatcher *dispatcher = started(false);
    _Atomic(int) order = 0;
    struct note notes[100];
    for (int i = 0; i < 100; i++) {
        note_init(&notes[i], dispatcher, &order);
        notes[i].call.run = run;
        hfi_dispatcher_post(dispatcher, &notes[i].call);
    }
    assert_int_equal(hfi_dispatcher_fd(dispatcher), -1);
    assert_int_equal(hfi_dispatcher_run(dispatcher), 0); /* not the caller's business here */
    end(dispatcher); /* runs what is posted first */
    for (int i = 0; i < 100; i++) {
        assert_int_equal(notes[i].ran_as, i + 1);
        assert_false(notes[i].taken_inside);
        assert_false(pthread_equal(notes[i].thread, pthread_self()));
    }
}

static void a_call_taken_back_never_runs(void **state)
{
    (void)state;
    struct hfi_dispatcher *dispatcher = started(false);
    _Atomic(int) order = 0;
    struct note slow, note;
    note_init(&slow, dispatcher, &order);
    note_init(&note, dispatcher, &order);
    slow.call.run = run_slowly;
    note.call.run = run;
    hfi_dispatcher_post(dispatcher, &slow.call);
    hfi_dispatcher_post(dispatcher, &note.call);
    bool entered = gate_pass(&slow.entered);
    bool running_taken = hfi_dispatcher_withdraw(dispatcher, &slow.call);
    bool taken = hfi_dispatcher_withdraw(dispatcher, &note.call);
    bool taken_twice = hfi_dispatcher_withdraw(dispatcher, &note.call);
    gate_open(&slow.leave);
    end(dispatcher);
    assert_true(entered && taken);
    assert_false(running_taken || taken_twice);
    assert_int_equal(note.ran_as, 0);
}

static void a_chore_that_hangs_delays_no_call_and_a_call_no_chore(void **state)
{
    (void)state;
    struct hfi_dispatcher *dispatcher = started(false);
    _Atomic(int) order = 0;
    struct note chore, call;
    note_init(&chore, dispatcher, &order);
    note_init(&call, dispatcher, &order);
    chore.call.run = run_slowly;
    call.call.run = run_slowly;
    bool taken = hfi_dispatcher_chore(dispatcher, &chore.call);
    bool chore_in = gate_pass(&chore.entered);
    hfi_dispatcher_post(dispatcher, &call.call);
    bool call_in = gate_pass(&call.entered); /* while the chore is still inside */
    gate_open(&chore.leave);
    gate_open(&call.leave);
    end(dispatcher);
    assert_true(taken && chore_in && call_in);
}

static void a_chore_that_hangs_does_not_hold_up_the_end(void **state)
{
    (void)state;
    int threads = hft_running_threads();
    struct hfi_dispatcher *dispatcher = started(false);
    _Atomic(int) order = 0;
    struct note chore;
    note_init(&chore, dispatcher, &order);
    chore.call.run = run_slowly;
    bool taken = hfi_dispatcher_chore(dispatcher, &chore.call);
    bool in = gate_pass(&chore.entered);
    end(dispatcher); /* or this test hangs until the gate gives up */
    bool left_before = atomic_load(&chore.left);
    gate_open(&chore.leave);
    assert_true(hft_comes_down_to(hft_running_threads, threads));
    assert_true(taken && in && chore.left);
    assert_false(left_before);
}

static void the_callers_loop_sees_a_readable_descriptor_while_calls_wait(void **state)
{
    (void)state;
    struct hfi_dispatcher *dispatcher = started(true);
    _Atomic(int) order = 0;
    struct note first, second, third;
    note_init(&first, dispatcher, &order);
    note_init(&second, dispatcher, &order);
    note_init(&third, dispatcher, &order);
    first.call.run = second.call.run = third.call.run = run;
    first.after = &third;
    int fd = hfi_dispatcher_fd(dispatcher);
    assert_false(is_readable(fd));
    hfi_dispatcher_post(dispatcher, &first.call);
    assert_true(is_readable(fd));
    assert_true(hfi_dispatcher_withdraw(dispatcher, &first.call));
    assert_false(is_readable(fd));
    hfi_dispatcher_post(dispatcher, &first.call);
    hfi_dispatcher_post(dispatcher, &second.call);
    assert_true(is_readable(fd));
    assert_int_equal(order, 0);
    assert_int_equal(hfi_dispatcher_run(dispatcher), 2);
    assert_true(is_readable(fd)); /* what a call posts is for the next time: else a loop might never come back */
    assert_int_equal(hfi_dispatcher_run(dispatcher), 1);
    assert_false(is_readable(fd));
    assert_true(pthread_equal(first.thread, pthread_self()));
    assert_int_equal(first.ran_as, 1);
    assert_int_equal(second.ran_as, 2);
    assert_int_equal(third.ran_as, 3);
    assert_int_equal(hfi_dispatcher_run(dispatcher), 0);
    end(dispatcher);
}

static void stopping_runs_what_the_callers_loop_did_not(void **state)
{
    (void)state;
    struct hfi_dispatcher *dispatcher = started(true);
    _Atomic(int) order = 0;
    struct note note;
    note_init(&note, dispatcher, &order);
    note.call.run = run;
    hfi_dispatcher_post(dispatcher, &note.call);
    end(dispatcher);
    assert_int_equal(note.ran_as, 1);
    assert_true(pthread_equal(note.thread, pthread_self()));
}

struct racer {
    pthread_t thread;
    struct hfi_dispatcher *dispatcher;
    _Atomic(long) ran;
    long taken_back, posted;
    struct hfi_job call;
};

static void count_run(struct hfi_job *call)
{
    (void)atomic_fetch_add(&hfi_container_of(call, struct racer, call)->ran, 1);
}

/* The use that a lease makes of it: post, then either take back or wait, after which the call may be posted again. */
static void *race(void *arg)
{
    struct racer *racer = arg;
    for (int i = 0; i < 20000; i++) {
        hfi_dispatcher_post(racer->dispatcher, &racer->call);
        racer->posted++;
        if (hfi_dispatcher_withdraw(racer->dispatcher, &racer->call))
            racer->taken_back++;
        else
            while (atomic_load(&racer->ran) + racer->taken_back < racer->posted)
                (void)sched_yield();
    }
    return NULL;
}

static void every_call_is_either_run_once_or_taken_back(void **state)
{
    (void)state;
    struct hfi_dispatcher *dispatcher = started(false);
    struct racer racers[4];
    memset(racers, 0, sizeof racers);
    for (int i = 0; i < 4; i++) {
        racers[i].dispatcher = dispatcher;
        racers[i].call.run = count_run;
        hfi_list_init(&racers[i].call.link);
        (void)pthread_create(&racers[i].thread, NULL, race, &racers[i]);
    }
    for (int i = 0; i < 4; i++)
        (void)pthread_join(racers[i].thread, NULL);
    end(dispatcher);
    for (int i = 0; i < 4; i++)
        assert_int_equal(racers[i].ran + racers[i].taken_back, racers[i].posted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posted_calls_run_in_order_in_a_thread_of_its_own),
        cmocka_unit_test(a_call_taken_back_never_runs),
        cmocka_unit_test(a_chore_that_hangs_delays_no_call_and_a_call_no_chore),
        cmocka_unit_test(a_chore_that_hangs_does_not_hold_up_the_end),
        cmocka_unit_test(the_callers_loop_sees_a_readable_descriptor_while_calls_wait),
        cmocka_unit_test(stopping_runs_what_the_callers_loop_did_not),
        cmocka_unit_test(every_call_is_either_run_once_or_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
