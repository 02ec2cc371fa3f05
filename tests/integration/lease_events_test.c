/* SPDX-License-Identifier: MIT */
/* lease_events_test.c - how a holder is notified: AT_RISK, SAFE_AGAIN, LOST, by callback, descriptor, signal and V. */
#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST = 64 };

struct record { /* what on_event was told; read by the main thread too */
    pthread_mutex_t mutex;
    hf_event events[MOST];
    int64_t at_ns[MOST];
    bool was_valid[MOST];
    int count;
    bool release_at_lost;
    hf_status released;
    _Atomic(bool) over;
};

struct fixture {
    struct hft_server *server;
    hf_client *client;
    hf_error error;
    struct record record;
};

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->server = hft_server_start(NULL);
    f->client = hft_client(f->server, HF_CLIENT(.command_ms = 300));
    (void)pthread_mutex_init(&f->record.mutex, NULL);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hft_server_thaw(f->server);
    bool clean = hft_closes(f->server, f->client, &f->error);
    hft_server_stop(f->server);
    (void)pthread_mutex_destroy(&f->record.mutex);
    free(f);
    return clean ? 0 : -1;
}

static void note(hf_lease *lease, const hf_event *event, void *arg)
{
    struct record *record = arg;
    (void)pthread_mutex_lock(&record->mutex);
    if (record->count < MOST) {
        record->at_ns[record->count] = now_ns();
        record->was_valid[record->count] = hf_lease_is_valid(lease);
        record->events[record->count++] = *event;
    }
    (void)pthread_mutex_unlock(&record->mutex);
    if (event->kind == HF_EVENT_LOST && record->release_at_lost) {
        record->released = hf_lease_release(lease, NULL);
        atomic_store(&record->over, true);
    }
}

static int count_of(struct record *record, hf_event_kind kind)
{
    int count = 0;
    (void)pthread_mutex_lock(&record->mutex);
    for (int i = 0; i < record->count; i++)
        count += record->events[i].kind == kind;
    (void)pthread_mutex_unlock(&record->mutex);
    return count;
}

static hf_lease *must_take(struct fixture *f, const char *name, const hf_lock_options *options)
{
    hf_lease *lease;
    if (hf_lock_acquire(f->client, name, options, &lease, &f->error) != HF_OK)
        fail_msg("%s", f->error.message);
    return lease;
}

static void the_last_event_is_lost(struct fixture *f, hf_lease *lease, hf_reason reason)
{
    struct record *record = &f->record;
    HFT_UNTIL_TRUE(count_of(record, HF_EVENT_LOST) == 1);
    int64_t fence = hf_lease_fence(lease);
    assert_false(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_remaining_ms(lease), 0);
    assert_int_equal(hf_lease_state(lease), HF_LEASE_LOST);
    assert_int_equal(hf_lease_reason(lease), reason);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_LOST);
    assert_non_null(strstr(f->error.message, hf_reason_text(reason)));
    const hf_event *last = &record->events[record->count - 1];
    assert_int_equal(last->kind, HF_EVENT_LOST);
    assert_int_equal(last->reason, reason);
    assert_int_equal(last->remaining_ms, 0);
    assert_false(record->was_valid[record->count - 1]);
    for (int i = 0; i < record->count; i++) {
        assert_int_equal(record->events[i].sequence, i + 1);
        assert_true(record->events[i].fence == fence);
        assert_int_equal(record->events[i].size, sizeof(hf_event));
    }
}

static void a_server_frozen_for_half_a_lease_is_at_risk_then_safe_again(void **state)
{
    struct fixture *f = *state;
    hf_stats stats;
    hf_lease *lease = must_take(f, "half", HF_LOCK(.lease_ms = 2000, .on_event = note, .arg = &f->record));
    HFT_UNTIL_TRUE(hf_lease_remaining_ms(lease) < 1500); /* soon it would be renewed */
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_AT_RISK) == 1);
    assert_int_equal(hf_lease_state(lease), HF_LEASE_AT_RISK);
    assert_int_equal(hf_lease_reason(lease), HF_REASON_UNCONFIRMED);
    assert_true(hf_lease_is_valid(lease));
    hf_client_stats(f->client, &stats);
    assert_int_equal(stats.at_risk, 1);
    HFT_UNTIL_TRUE(hf_lease_remaining_ms(lease) < 900);
    hft_server_thaw(f->server);
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_SAFE_AGAIN) == 1);
    assert_int_equal(hf_lease_state(lease), HF_LEASE_HELD);
    assert_int_equal(hf_lease_reason(lease), HF_REASON_NONE);
    assert_int_equal(hf_lease_release(lease, &f->error), HF_OK);
    hf_client_stats(f->client, &stats);
    assert_int_equal(stats.at_risk, 0);
    assert_int_equal(stats.lost, 0);
    assert_int_equal(f->record.count, 2);
    assert_int_equal(f->record.events[0].kind, HF_EVENT_AT_RISK);
    assert_int_equal(f->record.events[0].reason, HF_REASON_UNCONFIRMED);
    assert_true(f->record.events[0].remaining_ms > 500);
    assert_int_equal(f->record.events[1].sequence, 2);
}

static volatile sig_atomic_t signals_seen;
static _Atomic(int64_t) signal_at_ns;
static _Atomic(pthread_t) signaled_thread;

static void on_signal(int number)
{
    (void)number;
    atomic_store(&signaled_thread, pthread_self());
    signals_seen++;
    atomic_store(&signal_at_ns, now_ns());
}

static void install(int number)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigaction(number, &action, NULL);
    signals_seen = 0;
}

struct fd_watch {
    pthread_t thread;
    int fd;
    int64_t at_ns;
};

static void *watch_fd(void *arg)
{
    struct fd_watch *watch = arg;
    struct pollfd in = {watch->fd, POLLIN, 0};
    while (poll(&in, 1, 20000) < 0 && errno == EINTR)
        ;
    watch->at_ns = (in.revents & POLLIN) != 0 ? now_ns() : 0;
    return NULL;
}

static int wait_for_the_lock(int from, int to, void *arg)
{
    hf_client *client = hft_client(arg, NULL);
    hf_lease *lease;
    char word;
    if (read(from, &word, 1) != 1 || write(to, "w", 1) != 1 ||
        hf_lock_acquire(client, "frozen", HF_LOCK(.wait_ms = HF_FOREVER), &lease, NULL) != HF_OK)
        return 1;
    int64_t at = now_ns();
    if (write(to, &at, sizeof at) != sizeof at || hf_lease_release(lease, NULL) != HF_OK)
        return 2;
    return hf_client_close(client, NULL) == HF_OK ? 0 : 3;
}

static void a_server_frozen_for_longer_than_the_lease_loses_it_on_time_and_before_anybody_has_it(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct hft_process other;
    (void)state;
    f->server = hft_server_start(NULL);
    hft_process_start(&other, wait_for_the_lock, f->server);
    install(SIGUSR1);
    (void)pthread_mutex_init(&f->record.mutex, NULL);
    f->client = hft_client(f->server, HF_CLIENT(.command_ms = 300));
    hf_lease *lease =
        must_take(f, "frozen", HF_LOCK(.lease_ms = 800, .on_event = note, .arg = &f->record, .signal = SIGUSR1, .event_fd = true));
    struct fd_watch watch = {.fd = hf_lease_event_fd(lease)};
    (void)pthread_create(&watch.thread, NULL, watch_fd, &watch);
    hft_process_tell(&other, 'g');
    assert_int_equal(hft_process_read(&other), 'w');
    HFT_UNTIL_TRUE(hft_queued(f->server, "frozen") == 1);
    hft_server_freeze(f->server);
    int64_t end_ns = now_ns(), left;
    while ((left = hf_lease_remaining_ms(lease)) > 0) { /* V moves while a renewal is still coming in */
        end_ns = now_ns() + left * 1000000;
        (void)poll(NULL, 0, 1);
    }
    while (hf_lease_is_valid(lease)) /* remaining_ms is rounded down */
        ;
    int64_t invalid_ns = now_ns();
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_LOST) == 1);
    HFT_UNTIL_TRUE(signals_seen == 1);
    (void)pthread_join(watch.thread, NULL);
    hft_server_thaw(f->server);
    int64_t next_ns = 0;
    assert_int_equal(read(other.from, &next_ns, sizeof next_ns), sizeof next_ns);
    assert_int_equal(hft_process_end(&other), 0);
    int64_t event_ns = f->record.at_ns[f->record.count - 1];
    print_message("after V: invalid %lld us, event %lld us, descriptor %lld us, signal %lld us, the next %lld ms\n",
                  (long long)(invalid_ns - end_ns) / 1000, (long long)(event_ns - end_ns) / 1000,
                  (long long)(watch.at_ns - end_ns) / 1000, (long long)(atomic_load(&signal_at_ns) - end_ns) / 1000,
                  (long long)(next_ns - end_ns) / 1000000);
    assert_true(event_ns >= end_ns && event_ns - end_ns < 250000000);
    assert_true(watch.at_ns >= end_ns && watch.at_ns - end_ns < 250000000);
    assert_true(atomic_load(&signal_at_ns) - end_ns < 250000000);
    assert_true(pthread_equal(atomic_load(&signaled_thread), pthread_self()));
    assert_true(next_ns > event_ns && next_ns > watch.at_ns && next_ns > atomic_load(&signal_at_ns));
    for (int i = 0; i < f->record.count - 1; i++)
        assert_int_equal(f->record.events[i].kind, HF_EVENT_AT_RISK);
    the_last_event_is_lost(f, lease, HF_REASON_EXPIRED);
    assert_int_equal(hf_client_close(f->client, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
    hft_server_stop(f->server);
    free(f);
}

static void at_risk_comes_twice_unconfirmed_then_ending(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, "twice", HF_LOCK(.lease_ms = 1000, .stop_ms = 300, .on_event = note, .arg = &f->record));
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_LOST) == 1);
    hft_server_thaw(f->server);
    assert_int_equal(f->record.count, 3);
    assert_int_equal(f->record.events[0].reason, HF_REASON_UNCONFIRMED);
    assert_int_equal(f->record.events[1].reason, HF_REASON_ENDING);
    assert_in_range(f->record.events[1].remaining_ms, 50, 300);
    the_last_event_is_lost(f, lease, HF_REASON_EXPIRED);
}

static void a_deleted_key_is_gone(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, "gone", HF_LOCK(.lease_ms = 1500, .on_event = note, .arg = &f->record));
    assert_int_equal(hft_server_ask_integer(f->server, "DEL hf:{gone}"), 1);
    the_last_event_is_lost(f, lease, HF_REASON_GONE);
}

static void an_overwritten_key_is_taken(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, "taken", HF_LOCK(.lease_ms = 1500, .on_event = note, .arg = &f->record));
    freeReplyObject(hft_server_ask(f->server, "SET hf:{taken} another"));
    the_last_event_is_lost(f, lease, HF_REASON_TAKEN);
    assert_int_equal(hft_lock_exists(f->server, "taken"), 1);
}

static void a_broken_lock_is_revoked_and_free_for_the_next(void **state)
{
    struct fixture *f = *state;
    hf_client *operator= hft_client(f->server, NULL);
    hf_lease *lease = must_take(f, "broken", HF_LOCK(.on_event = note, .arg = &f->record)), *next;
    int64_t fence = hf_lease_fence(lease);
    bool had_holder = false;
    assert_int_equal(hf_lock_break(operator, "broken", &had_holder, &f->error), HF_OK);
    assert_true(had_holder);
    the_last_event_is_lost(f, lease, HF_REASON_REVOKED);
    assert_int_equal(hf_lock_acquire(operator, "broken", HF_LOCK(.wait_ms = 5000), &next, &f->error), HF_OK);
    assert_true(hf_lease_fence(next) > fence);
    assert_int_equal(hf_lease_release(next, NULL), HF_OK);
    assert_int_equal(hf_lock_break(operator, "broken", &had_holder, &f->error), HF_OK);
    assert_false(had_holder);
    assert_int_equal(hf_client_close(operator, NULL), HF_OK);
    assert_int_equal(hft_lock_keys(f->server), 0);
}

static void max_hold_is_at_risk_then_lost(void **state)
{
    struct fixture *f = *state;
    install(SIGUSR2);
    hf_lease *lease = must_take(f, "held", HF_LOCK(.lease_ms = 60000, .max_hold_ms = 2000, .stop_ms = 1500, .signal = SIGUSR2,
                                                   .signal_at = HF_EVENT_AT_RISK, .on_event = note, .arg = &f->record));
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_LOST) == 1);
    assert_int_equal(f->record.events[0].kind, HF_EVENT_AT_RISK);
    assert_int_equal(f->record.events[0].reason, HF_REASON_MAX_HOLD);
    assert_true(f->record.was_valid[0]);
    assert_int_equal(count_of(&f->record, HF_EVENT_SAFE_AGAIN), 0);
    assert_int_equal(signals_seen, 1);
    the_last_event_is_lost(f, lease, HF_REASON_MAX_HOLD);
}

static void a_callback_may_release_its_own_lease(void **state)
{
    struct fixture *f = *state;
    f->record.release_at_lost = true;
    (void)must_take(f, "inside", HF_LOCK(.lease_ms = 1500, .on_event = note, .arg = &f->record));
    assert_int_equal(hft_server_ask_integer(f->server, "DEL hf:{inside}"), 1);
    HFT_UNTIL_TRUE(atomic_load(&f->record.over));
    assert_int_equal(f->record.released, HF_LOST);
    assert_int_equal(count_of(&f->record, HF_EVENT_LOST), 1);
}

struct slow {
    _Atomic(bool) inside, go;
    _Atomic(int) calls;
};

static void stay(hf_lease *lease, const hf_event *event, void *arg)
{
    struct slow *slow = arg;
    (void)lease;
    (void)event;
    atomic_fetch_add(&slow->calls, 1);
    atomic_store(&slow->inside, true);
    while (!atomic_load(&slow->go))
        (void)poll(NULL, 0, 1);
}

static void a_slow_callback_delays_no_renewal_and_no_descriptor(void **state)
{
    struct fixture *f = *state;
    struct slow slow = {false, false, 0};
    hf_lease *bad = must_take(f, "bad", HF_LOCK(.lease_ms = 1500, .on_event = stay, .arg = &slow));
    hf_lease *good = must_take(f, "good", HF_LOCK(.lease_ms = 1500, .on_event = note, .arg = &f->record));
    hf_lease *third = must_take(f, "third", HF_LOCK(.lease_ms = 1500, .on_event = note, .arg = &f->record, .event_fd = true));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{bad}"));
    HFT_UNTIL_TRUE(atomic_load(&slow.inside));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{third}"));
    struct pollfd in = {hf_lease_event_fd(third), POLLIN, 0};
    assert_int_equal(poll(&in, 1, 20000), 1);
    HFT_WHILE_RENEWED(f->client, 5, hf_lease_is_valid(good));
    assert_int_equal(f->record.count, 0); /* callbacks are delayed */
    atomic_store(&slow.go, true);
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_LOST) == 1);
    assert_int_equal(hf_lease_release(bad, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(third, NULL), HF_LOST);
    assert_int_equal(hf_lease_release(good, NULL), HF_OK);
}

struct releasing {
    hf_lease *lease;
    _Atomic(int) tid;
};

static void *release_it(void *arg)
{
    struct releasing *me = arg;
    atomic_store(&me->tid, (int)gettid());
    return hf_lease_release(me->lease, NULL) == HF_LOST ? arg : NULL;
}

static void release_waits_for_the_running_callback_and_none_comes_after_it(void **state)
{
    struct fixture *f = *state;
    struct slow slow = {false, false, 0};
    pthread_t thread;
    void *was_lost;
    hf_lease *lease = must_take(f, "after", HF_LOCK(.lease_ms = 600, .stop_ms = 200, .on_event = stay, .arg = &slow));
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(atomic_load(&slow.inside)); /* AT_RISK; LOST will wait behind it */
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    hft_server_thaw(f->server);
    struct releasing releasing = {.lease = lease};
    (void)pthread_create(&thread, NULL, release_it, &releasing);
    HFT_UNTIL_TRUE(hft_is_asleep(atomic_load(&releasing.tid)));
    assert_int_equal(pthread_tryjoin_np(thread, &was_lost), EBUSY);
    atomic_store(&slow.go, true);
    (void)pthread_join(thread, &was_lost);
    assert_non_null(was_lost);
    int calls = atomic_load(&slow.calls);
    hf_lease *other = must_take(f, "other", HF_LOCK(.lease_ms = 1500, .wait_ms = 20000, .on_event = note, .arg = &f->record));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{other}"));
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_LOST) == 1); /* the dispatcher went on to others */
    assert_int_equal(atomic_load(&slow.calls), calls);
    assert_int_equal(hf_lease_release(other, NULL), HF_LOST);
}

static void the_callers_loop_runs_callbacks_when_the_descriptor_says_so(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(hf_client_fd(f->client), -1);
    assert_int_equal(hf_client_dispatch(f->client), 0);
    hf_client *client = hft_client(f->server, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER)), *before = f->client;
    struct pollfd in = {hf_client_fd(client), POLLIN, 0};
    f->client = client;
    assert_true(in.fd >= 0);
    hf_lease *lease = must_take(f, "loop", HF_LOCK(.lease_ms = 1500, .on_event = note, .arg = &f->record));
    f->client = before;
    assert_int_equal(hf_client_dispatch(client), 0);
    assert_int_equal(poll(&in, 1, 0), 0);
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{loop}"));
    assert_int_equal(poll(&in, 1, 20000), 1);
    assert_int_equal(f->record.count, 0);
    assert_int_equal(hf_client_dispatch(client), 1);
    assert_int_equal(poll(&in, 1, 0), 0);
    the_last_event_is_lost(f, lease, HF_REASON_GONE);
    assert_int_equal(hf_client_close(client, NULL), HF_OK);
}

static void a_signal_can_come_when_the_end_is_near_and_must_have_a_handler(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease;
    (void)signal(SIGUSR2, SIG_DFL);
    assert_int_equal(hf_lock_acquire(f->client, "near", HF_LOCK(.signal = SIGUSR2), &lease, &f->error), HF_INVALID);
    assert_non_null(strstr(f->error.message, "signal"));
    install(SIGUSR2);
    lease = must_take(f, "near", HF_LOCK(.lease_ms = 900, .stop_ms = 500, .signal = SIGUSR2, .signal_at = HF_EVENT_AT_RISK));
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(signals_seen == 1);
    assert_true(hf_lease_is_valid(lease));
    assert_in_range(hf_lease_remaining_ms(lease), 1, 500);
    hft_server_thaw(f->server);
    (void)hf_lease_release(lease, NULL);
}

/* Deleted, broken, taken, closed: none of these is announced. */
static void a_loss_without_a_warning_brings_the_signal_that_a_warning_would_have_brought(void **state)
{
    struct fixture *f = *state;
    install(SIGUSR2);
    for (int warned = 0; warned < 2; warned++) {
        int before = signals_seen;
        hf_lease *lease = must_take(f, "gone", HF_LOCK(.lease_ms = 900, .stop_ms = 300, .signal = SIGUSR2,
                                                       .signal_at = HF_EVENT_AT_RISK));
        if (warned) {
            hft_server_freeze(f->server);
            HFT_UNTIL_TRUE(signals_seen == before + 1);
            HFT_UNTIL_TRUE(hf_lease_state(lease) == HF_LEASE_LOST);
            hft_server_thaw(f->server);
        } else {
            freeReplyObject(hft_server_ask(f->server, "DEL hf:{gone}"));
            HFT_UNTIL_TRUE(hf_lease_state(lease) == HF_LEASE_LOST);
        }
        assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
        HFT_UNTIL_TRUE(signals_seen == before + 1);
    }
}

static void verify_asks_the_server_and_latches_what_it_says(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, "verify", HF_LOCK(.lease_ms = 60000, .on_event = note, .arg = &f->record));
    assert_int_equal(hf_lease_verify(lease, &f->error), HF_OK);
    hft_server_freeze(f->server);
    assert_int_equal(hf_lease_verify(lease, &f->error), HF_UNKNOWN);
    hft_server_thaw(f->server);
    assert_true(hf_lease_is_valid(lease));
    HFT_UNTIL_TRUE(hf_lease_verify(lease, &f->error) == HF_OK);
    freeReplyObject(hft_server_ask(f->server, "SET hf:{verify} x"));
    assert_true(hf_lease_is_valid(lease));
    assert_int_equal(hf_lease_verify(lease, &f->error), HF_LOST);
    the_last_event_is_lost(f, lease, HF_REASON_TAKEN);
    assert_int_equal(hf_lease_verify(NULL, &f->error), HF_INVALID);
}

static void the_descriptor_stays_readable_and_is_quiet_at_risk(void **state)
{
    struct fixture *f = *state;
    hf_lease *lease = must_take(f, "fd", HF_LOCK(.lease_ms = 600, .on_event = note, .arg = &f->record));
    struct pollfd in = {hf_lease_event_fd(lease), POLLIN, 0};
    assert_true(in.fd >= 0 && hf_lease_event_fd(lease) == in.fd);
    hft_server_freeze(f->server);
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_AT_RISK) > 0);
    assert_true(poll(&in, 1, 0) == 0 || !hf_lease_is_valid(lease));
    HFT_UNTIL_TRUE(count_of(&f->record, HF_EVENT_LOST) == 1);
    hft_server_thaw(f->server);
    for (int i = 0; i < 3; i++)
        assert_int_equal(poll(&in, 1, 0), 1);
    assert_int_equal(hf_lease_event_fd(lease), in.fd);
    the_last_event_is_lost(f, lease, HF_REASON_EXPIRED);
    lease = must_take(f, "fd2", HF_LOCK(.lease_ms = 1500, .wait_ms = 20000));
    freeReplyObject(hft_server_ask(f->server, "DEL hf:{fd2}"));
    HFT_UNTIL_TRUE(!hf_lease_is_valid(lease));
    HFT_UNTIL_TRUE(hf_lease_reason(lease) == HF_REASON_GONE);
    in.fd = hf_lease_event_fd(lease); /* asked for only now */
    assert_int_equal(poll(&in, 1, 0), 1);
    assert_int_equal(hf_lease_release(lease, NULL), HF_LOST);
}

static _Atomic(bool) in_handler, go_on;

static void stall(int number)
{
    (void)number;
    atomic_store(&in_handler, true);
    while (!atomic_load(&go_on))
        (void)poll(NULL, 0, 1);
}

static void a_lease_that_was_over_before_its_acquire_returned_is_no_events_matter(void **state)
{
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = stall};
    struct hft_taker taker;
    HFT_NEEDS_PROMPT_SIGNALS();
    (void)sigaction(SIGUSR2, &action, NULL);
    atomic_store(&go_on, false);
    hf_client *other = hft_client(f->server, NULL);
    hf_lease *lease;
    assert_int_equal(hf_lock_acquire(other, "late", NULL, &lease, NULL), HF_OK);
    hft_take(&taker, f->client, "late",
             HF_LOCK(.wait_ms = 20000, .max_hold_ms = 200, .on_event = note, .arg = &f->record));
    HFT_UNTIL_TRUE(hft_queued(f->server, "late") == 1);
    (void)pthread_kill(taker.thread, SIGUSR2);
    HFT_UNTIL_TRUE(atomic_load(&in_handler));
    assert_int_equal(hf_lease_release(lease, NULL), HF_OK);
    hf_stats stats;
    do /* the lease is granted, held for too long, and lost, while its thread is stopped */
        hf_client_stats(f->client, &stats);
    while (stats.lost == 0);
    atomic_store(&go_on, true);
    assert_int_equal(hft_taken(&taker), HF_OK);
    int64_t fence = hf_lease_fence(taker.lease);
    (void)hf_lease_release(taker.lease, NULL);
    for (int i = 0; i < f->record.count; i++)
        assert_int_equal(f->record.events[i].fence, fence);
    assert_int_equal(hf_client_close(other, NULL), HF_OK);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_server_frozen_for_half_a_lease_is_at_risk_then_safe_again),
        cmocka_unit_test(a_server_frozen_for_longer_than_the_lease_loses_it_on_time_and_before_anybody_has_it),
        TEST(at_risk_comes_twice_unconfirmed_then_ending),
        TEST(a_deleted_key_is_gone),
        TEST(an_overwritten_key_is_taken),
        TEST(a_broken_lock_is_revoked_and_free_for_the_next),
        TEST(max_hold_is_at_risk_then_lost),
        TEST(a_callback_may_release_its_own_lease),
        TEST(a_slow_callback_delays_no_renewal_and_no_descriptor),
        TEST(release_waits_for_the_running_callback_and_none_comes_after_it),
        TEST(the_callers_loop_runs_callbacks_when_the_descriptor_says_so),
        TEST(a_signal_can_come_when_the_end_is_near_and_must_have_a_handler),
        TEST(a_loss_without_a_warning_brings_the_signal_that_a_warning_would_have_brought),
        TEST(verify_asks_the_server_and_latches_what_it_says),
        TEST(the_descriptor_stays_readable_and_is_quiet_at_risk),
        TEST(a_lease_that_was_over_before_its_acquire_returned_is_no_events_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
