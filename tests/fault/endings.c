/* SPDX-License-Identifier: MIT */
/* endings.c - leases that end in several ways at once (release, expiry, loss, close, a callback): exactly one of
 * them counts. */
#include "tests/fault/races.h"

#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <hiredis/hiredis.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one terminal event ---- */

enum { OWNERS = 6, BATCH = 4, ROOM = 64 * BATCH };

struct ending { /* one lease; reused only long after its end, so that a late callback is noticed */
    struct hft_run *run;
    hf_client *client;
    unsigned rng;           /* the callback's */
    _Atomic(int) claimed;    /* whoever sets it first releases: the owner or the callback */
    _Atomic(bool) released;  /* a release has returned */
    _Atomic(int) events, losses;
    hf_status said;          /* by the release */
};

struct owner {
    struct hft_run *run;
    hf_client *client;
    hf_cancel *cancel;
    pthread_t thread;
    int number;
    unsigned rng;
    long ended, lost, by_callback, events, canceled;
    struct ending endings[ROOM];
};

static _Atomic(long) endings_left;
static _Atomic(bool) no_more;

static void use_the_api(struct ending *ending, hf_lease *lease, bool lost)
{
    char name[48];
    hf_lease *side;
    hf_status status;
    switch (hft_die(&ending->rng, 6)) {
    case 0: /* another lock, taken and given back */
        (void)snprintf(name, sizeof name, "side:%d", hft_die(&ending->rng, 3));
        status = hf_lock_acquire(ending->client, name, HF_LOCK(.wait_ms = 100), &side, NULL);
        HFT_CHECK(ending->run, status == HF_OK || status == HF_TIMEOUT, "in a callback: %s", hf_status_name(status));
        if (status == HF_OK)
            HFT_CHECK(ending->run, hf_lease_release(side, NULL) == HF_OK, "a release in a callback failed");
        break;
    case 1:
        status = hf_lease_verify(lease, NULL);
        HFT_CHECK(ending->run, status == HF_LOST || (status == HF_OK && !lost), "verify in a callback: %s",
                  hf_status_name(status));
        break;
    case 2:
        HFT_CHECK(ending->run, hf_lease_event_fd(lease) >= 0, "no descriptor");
        break;
    case 3:
        HFT_CHECK(ending->run, hf_client_close(ending->client, NULL) == HF_INVALID, "closed in a callback");
        break;
    default:
        hft_random_delay(&ending->rng, 50);
    }
}

static void hear(hf_lease *lease, const hf_event *event, void *arg)
{
    struct ending *ending = arg;
    struct hft_run *run = ending->run;
    bool lost = event->kind == HF_EVENT_LOST;
    HFT_CHECK(run, !atomic_load(&ending->released), "an event after release returned");
    HFT_CHECK(run, atomic_load(&ending->losses) == 0, "an event after LOST");
    HFT_CHECK(run, event->sequence == (uint64_t)atomic_fetch_add(&ending->events, 1) + 1, "an event out of order");
    if (lost) {
        atomic_fetch_add(&ending->losses, 1);
        HFT_CHECK(run, !hf_lease_is_valid(lease) && hf_lease_state(lease) == HF_LEASE_LOST, "LOST, and valid");
        HFT_CHECK(run, hf_lease_reason(lease) == event->reason, "LOST for two reasons");
    }
    use_the_api(ending, lease, lost);
    if (hft_die(&ending->rng, 3) == 0 && atomic_exchange(&ending->claimed, 1) == 0) {
        ending->said = hf_lease_release(lease, NULL);
        HFT_CHECK(run, ending->said == HF_LOST || (ending->said == HF_OK && !lost), "release in a callback: %s",
                  hf_status_name(ending->said));
        atomic_store(&ending->released, true);
    } else {
        HFT_CHECK(run, !atomic_load(&ending->released), "release returned while a callback ran");
    }
}

static hf_lease *begin_one(struct owner *me, struct ending *ending, int i)
{
    char name[48];
    hf_lease *lease;
    hf_error error;
    int64_t hold = hft_die(&me->rng, 4) == 0 ? 1 + hft_die(&me->rng, 4) : 0;
    *ending = (struct ending){.run = me->run, .client = me->client, .rng = (unsigned)rand_r(&me->rng)};
    (void)snprintf(name, sizeof name, "ending:%d:%d", me->number, i);
    hf_cancel *cancel = hft_die(&me->rng, 4) == 0 ? me->cancel : NULL;
    hf_status status = hf_lock_acquire(me->client, name,
                                       HF_LOCK(.wait_ms = 10000, .lease_ms = 100 + hft_die(&me->rng, 400),
                                               .max_hold_ms = hold, .on_event = hear, .arg = ending,
                                               .cancel = cancel, .event_fd = hft_die(&me->rng, 8) == 0),
                                       &lease, &error);
    if (status == HF_OK)
        return lease;
    me->canceled += status == HF_CANCELED;
    HFT_CHECK(me->run, status == HF_CANCELED && cancel != NULL, "acquire: %s: %s", hf_status_name(status), error.message);
    return NULL;
}

static void end_one(struct owner *me, struct ending *ending, hf_lease *lease)
{
    bool by_me = atomic_exchange(&ending->claimed, 1) == 0;
    if (by_me) {
        ending->said = hft_die(&me->rng, 2) == 0 ? hf_lease_release(lease, NULL) : hf_lease_post_release(lease, NULL);
        atomic_store(&ending->released, true);
    }
    while (!atomic_load(&ending->released))
        (void)sched_yield();
    int losses = atomic_load(&ending->losses);
    HFT_CHECK(me->run, losses <= 1, "%d times LOST", losses);
    HFT_CHECK(me->run, ending->said == HF_OK || ending->said == HF_LOST, "release: %s", hf_status_name(ending->said));
    HFT_CHECK(me->run, losses == 0 || ending->said != HF_OK, "told LOST, and released well");
    me->ended++;
    me->lost += ending->said == HF_LOST;
    me->by_callback += !by_me;
    me->events += atomic_load(&ending->events);
}

static void *own(void *arg)
{
    struct owner *me = arg;
    for (int turn = 0; atomic_fetch_sub(&endings_left, BATCH) > 0; turn = (turn + BATCH) % ROOM) {
        hf_lease *leases[BATCH];
        for (int i = 0; i < BATCH; i++)
            leases[i] = begin_one(me, &me->endings[turn + i], i);
        for (int i = 0; i < BATCH; i++) {
            hf_lease *lease = leases[i];
            /* A lease claimed by its callback may be gone: only the thread that ends it may use its handle. */
            hft_random_delay(&me->rng, hft_die(&me->rng, 20) == 0 ? 3000 : 100);
            if (lease != NULL)
                end_one(me, &me->endings[turn + i], lease);
        }
        if (hft_die(&me->rng, 4) == 0)
            hf_cancel_reset(me->cancel);
    }
    return NULL;
}

struct spoiler {
    struct hft_run *run;
    struct hft_server *server;
    hf_client *client;
    struct owner *owners;
    pthread_t thread;
    unsigned rng;
    long spoiled;
};

/* Breaks locks, deletes keys, fires cancels, all the time. */
static void *spoil(void *arg)
{
    struct spoiler *me = arg;
    redisContext *redis = redisConnectUnix(hft_server_socket(me->server));
    while (!atomic_load(&no_more) && redis != NULL && redis->err == 0) {
        char name[48];
        int at = hft_die(&me->rng, OWNERS);
        (void)snprintf(name, sizeof name, "ending:%d:%d", at, hft_die(&me->rng, BATCH));
        int die = hft_die(&me->rng, 8);
        if (die == 0)
            hf_cancel_fire(me->owners[at].cancel);
        else if (die < 6)
            freeReplyObject(redisCommand(redis, "DEL hf:{%s}", name));
        else
            HFT_CHECK(me->run, hf_lock_break(me->client, name, NULL, NULL) == HF_OK, "break failed");
        me->spoiled++;
        hft_random_delay(&me->rng, 200);
    }
    HFT_CHECK(me->run, redis != NULL && redis->err == 0, "no connection to spoil by");
    if (redis != NULL)
        redisFree(redis);
    return NULL;
}

static void terminal_events(struct hft_run *run)
{
    enum { SPOILERS = 2 };
    static struct owner owners[OWNERS];
    struct spoiler spoilers[SPOILERS];
    struct hft_server *server = hft_server_start(NULL);
    /* A broken lock waits for the guard, so the guard is short: otherwise there is little to race. */
    hf_client *clients[] = {hft_open(hft_server_url(server), HF_CLIENT(.guard_ms = 1)),
                            hft_open(hft_server_url(server), NULL)};
    long ended = 0, lost = 0, by_callback = 0, events = 0;
    atomic_store(&endings_left, run->times);
    atomic_store(&no_more, false);
    for (int i = 0; i < OWNERS; i++) {
        owners[i] = (struct owner){.run = run, .client = clients[0], .number = i, .rng = run->rng + (unsigned)i};
        HFT_CHECK(run, hf_cancel_open(clients[0], &owners[i].cancel, NULL) == HF_OK, "no cancel");
        (void)pthread_create(&owners[i].thread, NULL, own, &owners[i]);
    }
    for (int i = 0; i < SPOILERS; i++) {
        spoilers[i] = (struct spoiler){.run = run, .server = server, .client = clients[1], .owners = owners,
                                       .rng = run->rng + 100 + (unsigned)i};
        (void)pthread_create(&spoilers[i].thread, NULL, spoil, &spoilers[i]);
    }
    for (int i = 0; i < OWNERS; i++) {
        (void)pthread_join(owners[i].thread, NULL);
        ended += owners[i].ended;
        lost += owners[i].lost;
        by_callback += owners[i].by_callback;
        events += owners[i].events;
    }
    atomic_store(&no_more, true);
    for (int i = 0; i < SPOILERS; i++)
        (void)pthread_join(spoilers[i].thread, NULL);
    HFT_CHECK(run, lost > 0 && lost < ended && by_callback > 0, "%ld ended, %ld lost, %ld by callbacks: no race", ended,
              lost, by_callback);
    hft_check_quiet(run, server, clients, 2);
    for (int i = 0; i < OWNERS; i++)
        hf_cancel_close(owners[i].cancel);
    for (int i = 0; i < 2; i++)
        HFT_CHECK(run, hf_client_close(clients[i], NULL) == HF_OK, "close was not clean");
    hft_note(run, "%ld leases ended, %ld of them lost, %ld by their callback, %ld events", ended, lost, by_callback, events);
    hft_server_stop(server);
}

/* ---- close ---- */

enum { WAITERS = 4, HELD = 3 };

struct last_wait { /* a wait during which its client is closed, with or without a grant at that moment */
    hf_client *client;
    pthread_t thread;
    hf_status got, said;
};

static void *wait_to_the_end(void *arg)
{
    struct last_wait *me = arg;
    hf_lease *lease;
    me->got = hf_lock_acquire(me->client, "gate", HF_LOCK(.wait_ms = HF_FOREVER), &lease, NULL);
    me->said = me->got == HF_OK ? hf_lease_release(lease, NULL) : HF_OK;
    return NULL;
}

struct gatekeeper {
    hf_lease *gate;
    const char *url;
    pthread_t thread;
    unsigned rng;
    hf_status said, neighbour;
};

/* Releases the lock to the waiters at about the time when their client closes; then opens, uses and closes a client
 * of its own. */
static void *open_the_gate(void *arg)
{
    struct gatekeeper *me = arg;
    hf_client *client;
    hf_lease *lease;
    hft_random_delay(&me->rng, 300);
    me->said = hf_lease_release(me->gate, NULL);
    me->neighbour = hf_client_open(me->url, NULL, &client, NULL);
    if (me->neighbour != HF_OK)
        return NULL;
    me->neighbour = hf_lock_acquire(client, "gate", HF_LOCK(.wait_ms = 10000), &lease, NULL);
    if (me->neighbour == HF_OK)
        me->neighbour = hf_lease_release(lease, NULL);
    (void)hf_client_close(client, NULL);
    return NULL;
}

static void count_closed(hf_lease *lease, const hf_event *event, void *arg)
{
    _Atomic(int) *heard = arg;
    (void)lease;
    atomic_fetch_add(heard, event->kind == HF_EVENT_LOST && event->reason == HF_REASON_CLOSED ? 1 : 1000);
}

static void close_once(struct hft_run *run, struct hft_server *server, hf_client *stays, long *granted)
{
    struct last_wait waits[WAITERS];
    struct gatekeeper keeper = {.url = hft_server_url(server), .rng = run->rng};
    hf_client *client = hft_open(hft_server_url(server), NULL);
    hf_lease *held[HELD];
    _Atomic(int) heard[HELD];
    hf_stats stats;
    char name[48];
    for (int i = 0; i < HELD; i++) {
        atomic_init(&heard[i], 0);
        (void)snprintf(name, sizeof name, "mine:%d", i);
        HFT_CHECK(run,
                  hf_lock_acquire(client, name, HF_LOCK(.on_event = count_closed, .arg = &heard[i]), &held[i], NULL) == HF_OK,
                  "no lease");
    }
    HFT_CHECK(run, hf_lock_acquire(stays, "gate", HF_LOCK(.wait_ms = 10000), &keeper.gate, NULL) == HF_OK, "no gate");
    for (int i = 0; i < WAITERS; i++) {
        waits[i] = (struct last_wait){.client = client};
        (void)pthread_create(&waits[i].thread, NULL, wait_to_the_end, &waits[i]);
    }
    do {
        (void)sched_yield();
        hf_client_stats(client, &stats);
    } while (stats.waiting < WAITERS);
    (void)pthread_create(&keeper.thread, NULL, open_the_gate, &keeper);
    hft_random_delay(&run->rng, 400);
    hf_error error;
    hf_status status = hf_client_close(client, &error);
    HFT_CHECK(run, status == HF_OK, "close: %s: %s", hf_status_name(status), error.message);
    for (int i = 0; i < HELD; i++) {
        HFT_CHECK(run, atomic_load(&heard[i]) == 1, "a lease of a closed client heard %d", atomic_load(&heard[i]));
        (void)snprintf(name, sizeof name, "mine:%d", i);
        HFT_CHECK(run, hft_lock_exists(server, name) == 0, "a key is left after close");
        HFT_CHECK(run, !hf_lease_is_valid(held[i]), "a lease is valid after close");
        HFT_CHECK(run, hf_lease_release(held[i], NULL) == HF_CLOSED, "release after close is not CLOSED");
        HFT_CHECK(run, atomic_load(&heard[i]) == 1, "an event after close");
    }
    for (int i = 0; i < WAITERS; i++) {
        (void)pthread_join(waits[i].thread, NULL);
        HFT_CHECK(run, waits[i].got == HF_OK || waits[i].got == HF_CLOSED, "a wait: %s", hf_status_name(waits[i].got));
        HFT_CHECK(run, waits[i].said == HF_OK || waits[i].said == HF_CLOSED, "a release: %s", hf_status_name(waits[i].said));
        *granted += waits[i].got == HF_OK;
    }
    (void)pthread_join(keeper.thread, NULL);
    HFT_CHECK(run, keeper.said == HF_OK, "the gate: %s", hf_status_name(keeper.said));
    HFT_CHECK(run, keeper.neighbour == HF_OK, "a client beside: %s", hf_status_name(keeper.neighbour));
    HFT_CHECK(run, hft_lock_exists(server, "gate") == 0, "the gate is held by nobody who lives");
}

static void closes(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *stays = hft_open(hft_server_url(server), NULL);
    int descriptors = 0, threads = 0;
    long granted = 0;
    for (int i = 0; i < run->times; i++) {
        if (i == 1) { /* what the first round opened for good is there */
            descriptors = hft_open_descriptors();
            threads = hft_running_threads();
        }
        close_once(run, server, stays, &granted);
    }
    HFT_CHECK(run, granted > 0 && granted < (long)run->times * WAITERS, "%ld waits were granted: no race", granted);
    HFT_CHECK(run, hft_open_descriptors() == descriptors, "%d descriptors, %d before", hft_open_descriptors(), descriptors);
    HFT_CHECK(run, hft_comes_down_to(hft_running_threads, threads), "%d threads, %d before", hft_running_threads(),
              threads);
    hft_check_quiet(run, server, &stays, 1);
    HFT_CHECK(run, hf_client_close(stays, NULL) == HF_OK, "close was not clean");
    hft_note(run, "%d closes, %ld of %ld waits granted", run->times, granted, (long)run->times * WAITERS);
    hft_server_stop(server);
}

const struct hft_named hft_ending_faults[] = {
    {"terminal-events", "release, expiry, loss and callbacks at once: one of them ends a lease, nothing comes after",
     terminal_events, 3000, 100000, 0},
    {"closes", "a close amid acquires, hand-offs and other clients gives all back and hangs nobody", closes, 60, 5000, 0},
    {.name = NULL}};
