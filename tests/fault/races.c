/* SPDX-License-Identifier: MIT */
/* races.c - races between threads: cancels at the hand-off, releases beside renewals, losses beside local passes. */
#include "tests/fault/races.h"

#include "tests/support/takers.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

int hft_die(unsigned *rng, int sides)
{
    return rand_r(rng) % sides;
}

void hft_random_delay(unsigned *rng, int most_us)
{
    int64_t until = hft_true_ns() + hft_die(rng, most_us + 1) * INT64_C(1000);
    if (hft_die(rng, 4) == 0)
        (void)sched_yield();
    while (hft_true_ns() < until)
        ;
}

static int64_t keys_left(struct hft_server *server)
{
    return hft_server_ask_integer(server, "EVAL %s 0",
                                  "local n = 0 for _, k in ipairs(redis.call('KEYS', 'hf:*')) do "
                                  "if k ~= 'hf:fence' then n = n + 1 end end return n");
}

static bool is_quiet(hf_client *client, hf_stats *stats)
{
    hf_client_stats(client, stats);
    return stats->held == 0 && stats->waiting == 0 && stats->at_risk == 0;
}

static bool are_quiet(hf_client *const *clients, int count, hf_stats *stats)
{
    bool quiet = true;
    for (int i = 0; i < count; i++)
        quiet = is_quiet(clients[i], &stats[i]) && quiet;
    return quiet;
}

/* An acquire of a canceled call may still be in flight: the server grants it after a look at the keys. */
void hft_check_quiet(struct hft_run *run, struct hft_server *server, hf_client *const *clients, int count)
{
    enum { CLIENTS_MOST = 8 };
    hf_stats stats[CLIENTS_MOST];
    int64_t until = hft_true_ns() + 3000 * HFT_NS_PER_MS, left;
    bool quiet;
    for (;;) {
        left = keys_left(server);
        quiet = are_quiet(clients, count, stats);
        if ((left == 0 && quiet) || hft_true_ns() >= until)
            break;
        hft_sleep_ms(2);
    }
    HFT_CHECK(run, left == 0, "%lld keys of locks are left", (long long)left);
    for (int i = 0; i < count && !quiet; i++)
        HFT_CHECK(run, stats[i].held == 0 && stats[i].waiting == 0 && stats[i].at_risk == 0,
                  "client %d: %llu held, %llu at risk, %llu wait", i, (unsigned long long)stats[i].held,
                  (unsigned long long)stats[i].at_risk, (unsigned long long)stats[i].waiting);
}

/* ---- cancels at the hand-off ---- */

enum { IDLE, WAITS, FIRING, FIRED };

struct stormer {
    struct hft_run *run;
    hf_client *client;
    hf_cancel *cancel; /* NULL: it is patient */
    struct stormer *all;
    pthread_t thread;
    unsigned rng;
    _Atomic(int) phase;
    long got, canceled, slow;
    int64_t worst_ns;
};

enum { STORM_CLIENTS = 2, STORM_THREADS = 8, SLOW_MS = 300 };

static _Atomic(long) storm_left;

/* Called by a thread that is about to release or has just released: it cancels a wait, often that of the successor. */
static void fire_one(struct stormer *me)
{
    struct stormer *one = &me->all[hft_die(&me->rng, STORM_THREADS)];
    int waits = WAITS;
    if (one->cancel == NULL || !atomic_compare_exchange_strong(&one->phase, &waits, FIRING))
        return;
    hf_cancel_fire(one->cancel);
    atomic_store(&one->phase, FIRED);
}

static void try_once(struct stormer *me)
{
    hf_lease *lease;
    hf_error error;
    int64_t began = hft_true_ns();
    hf_status status =
        hf_lock_acquire(me->client, "storm", HF_LOCK(.wait_ms = 20000, .cancel = me->cancel), &lease, &error);
    int64_t took = hft_true_ns() - began;
    me->worst_ns = took > me->worst_ns ? took : me->worst_ns;
    me->slow += took > SLOW_MS * HFT_NS_PER_MS;
    if (status == HF_OK) {
        bool early = hft_die(&me->rng, 2) == 0;
        me->got++;
        hft_random_delay(&me->rng, 60);
        if (early)
            fire_one(me);
        status = hft_die(&me->rng, 2) == 0 ? hf_lease_release(lease, &error) : hf_lease_post_release(lease, &error);
        HFT_CHECK(me->run, status == HF_OK, "a release: %s: %s", hf_status_name(status), error.message);
        if (!early)
            fire_one(me);
    } else if (status == HF_CANCELED && me->cancel != NULL) {
        me->canceled++;
    } else {
        hft_broken(me->run, "an acquire: %s: %s", hf_status_name(status), error.message);
    }
}

static void *be_stormed(void *arg)
{
    struct stormer *me = arg;
    while (atomic_fetch_sub(&storm_left, 1) > 0) {
        int waits = WAITS;
        atomic_store(&me->phase, WAITS);
        try_once(me);
        if (!atomic_compare_exchange_strong(&me->phase, &waits, IDLE)) {
            while (atomic_load(&me->phase) != FIRED)
                (void)sched_yield();
            hf_cancel_reset(me->cancel);
        }
        if (hft_die(&me->rng, 4) == 0)
            hft_sleep_until(hft_true_ns() + hft_die(&me->rng, 2000) * INT64_C(1000)); /* let the queue run dry */
    }
    return NULL;
}

static int64_t processor_ns(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

/* After the storm, waits cost almost no CPU time: no thread spins for a wake-up that has already come. */
static void check_idle(struct hft_run *run, hf_client *holder, hf_client *waiter)
{
    struct hft_taker takers[2];
    hf_lease *lease;
    if (hf_lock_acquire(holder, "storm", HF_LOCK(.wait_ms = 5000), &lease, NULL) != HF_OK) {
        hft_broken(run, "the lock cannot be had after the storm");
        return;
    }
    for (int i = 0; i < 2; i++)
        hft_take(&takers[i], i == 0 ? holder : waiter, "storm", HF_LOCK(.wait_ms = 20000));
    while (hft_waiting_here(holder, "storm") == 0 || hft_waiting_here(waiter, "storm") == 0)
        hft_sleep_ms(1);
    int64_t before = processor_ns();
    hft_sleep_ms(300);
    int64_t used = processor_ns() - before;
    HFT_CHECK(run, used < 150 * HFT_NS_PER_MS, "two waits of 300 ms took %lld ms of the processor",
              (long long)(used / HFT_NS_PER_MS));
    HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "release failed");
    for (int i = 0; i < 2; i++) { /* local or remote, whoever comes first */
        while (!atomic_load(&takers[0].done) && !atomic_load(&takers[1].done))
            hft_sleep_ms(1);
        struct hft_taker *taker = atomic_load(&takers[0].done) ? &takers[0] : &takers[1];
        HFT_CHECK(run, hft_taken(taker) == HF_OK, "a waiter: %s", hf_status_name(taker->status));
        if (taker->status == HF_OK)
            (void)hf_lease_release(taker->lease, NULL);
        atomic_store(&taker->done, false);
    }
}

static void cancel_storm(struct hft_run *run)
{
    enum { CLIENTS = STORM_CLIENTS, THREADS = STORM_THREADS };
    static struct stormer all[THREADS];
    struct hft_server *server = hft_server_start(NULL);
    hf_client *clients[CLIENTS];
    long got = 0, canceled = 0, counted = 0, slow = 0;
    int64_t worst = 0, slowest = 0;
    atomic_store(&storm_left, run->times);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = hft_open(hft_server_url(server), NULL);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct stormer){
            .run = run, .client = clients[i % CLIENTS], .all = all, .rng = run->rng + (unsigned)i};
        /* One waiter is patient. Without it the last waiter often leaves the queue with the lease on its way to it. */
        HFT_CHECK(run, i == 0 || hf_cancel_open(all[i].client, &all[i].cancel, NULL) == HF_OK, "no cancel");
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_create(&all[i].thread, NULL, be_stormed, &all[i]);
    while (atomic_load(&storm_left) > 0) { /* is it the server's own lateness? */
        int64_t asked = hft_true_ns();
        freeReplyObject(hft_server_ask(server, "PING"));
        int64_t took = hft_true_ns() - asked;
        slowest = took > slowest ? took : slowest;
        hft_sleep_ms(2);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(all[i].thread, NULL);
        got += all[i].got;
        canceled += all[i].canceled;
        slow += all[i].slow;
        worst = all[i].worst_ns > worst ? all[i].worst_ns : worst;
    }
    hft_check_quiet(run, server, clients, CLIENTS);
    for (int i = 0; i < CLIENTS; i++) {
        hf_stats stats;
        hf_client_stats(clients[i], &stats);
        counted += (long)stats.canceled;
    }
    HFT_CHECK(run, counted == canceled, "%ld canceled, %ld counted", canceled, counted);
    HFT_CHECK(run, canceled > 0 && got > 0, "no storm: %ld canceled, %ld not", canceled, got);
    /* A lost wake-up is repaired by the timed check after 400 ms, and shows as a long wait. A machine that is late
     * itself has some long waits too. */
    HFT_CHECK(run, slow == 0 || hft_in_time(worst, SLOW_MS * HFT_NS_PER_MS + 4 * slowest), "a wait of %lld ms",
              (long long)(worst / HFT_NS_PER_MS));
    HFT_CHECK(run, slow <= STORM_THREADS, "%ld waits of more than %d ms", slow, SLOW_MS);
    check_idle(run, clients[0], clients[1]);
    hft_check_quiet(run, server, clients, CLIENTS);
    for (int i = 0; i < THREADS; i++)
        hf_cancel_close(all[i].cancel);
    for (int i = 0; i < CLIENTS; i++)
        HFT_CHECK(run, hf_client_close(clients[i], NULL) == HF_OK, "close was not clean");
    hft_note(run, "%ld canceled, %ld not, %ld slow, longest wait %.0f ms, longest PING %.0f ms", canceled, got, slow,
             (double)worst / 1e6, (double)slowest / 1e6);
    hft_server_stop(server);
}

/* ---- releases beside renewals ---- */

struct renewed {
    struct hft_run *run;
    hf_client *client, *other;
    pthread_t thread;
    int number;
    unsigned rng;
    long released, lost;
};

/* Renewals are due at a third of the lease; the releases begin a little before and go on while answers come. */
static void *release_beside_renewals(void *arg)
{
    enum { LEASES = 24, LEASE_MS = 150, DUE_MS = LEASE_MS / 3 };
    struct renewed *me = arg;
    for (int round = 0; round < me->run->times; round++) {
        hf_lease *leases[LEASES], *next;
        char name[48];
        int64_t began = hft_true_ns();
        for (int i = 0; i < LEASES; i++) {
            (void)snprintf(name, sizeof name, "renewed:%d:%d", me->number, i);
            hf_status status =
                hf_lock_acquire(me->client, name, HF_LOCK(.wait_ms = 5000, .lease_ms = LEASE_MS), &leases[i], NULL);
            HFT_CHECK(me->run, status == HF_OK, "acquire: %s", hf_status_name(status));
        }
        hft_sleep_until(began + (DUE_MS - 3 + hft_die(&me->rng, 6)) * HFT_NS_PER_MS);
        for (int i = 0; i < LEASES; i++) {
            bool wait = hft_die(&me->rng, 3) > 0;
            hft_random_delay(&me->rng, 100);
            bool sure = hf_lease_remaining_ms(leases[i]) > 20;
            int64_t before = hft_true_ns();
            hf_status status = wait ? hf_lease_release(leases[i], NULL) : hf_lease_post_release(leases[i], NULL);
            me->released += status == HF_OK;
            me->lost += status == HF_LOST;
            HFT_CHECK(me->run, status == HF_OK || (status == HF_LOST && !sure) || hft_true_ns() - before > 20 * HFT_NS_PER_MS,
                      "release: %s", hf_status_name(status));
            if (status != HF_OK || !wait)
                continue;
            (void)snprintf(name, sizeof name, "renewed:%d:%d", me->number, i);
            status = hf_lock_acquire(me->other, name, NULL, &next, NULL);
            HFT_CHECK(me->run, status == HF_OK, "released, and not to be had: %s", hf_status_name(status));
            if (status == HF_OK)
                (void)hf_lease_post_release(next, NULL);
        }
    }
    return NULL;
}

static void renewed_releases(struct hft_run *run)
{
    enum { THREADS = 4 };
    static struct renewed all[THREADS];
    struct hft_server *server = hft_server_start(NULL);
    hf_client *clients[] = {hft_open(hft_server_url(server), NULL), hft_open(hft_server_url(server), NULL)};
    hf_stats stats;
    long released = 0, lost = 0;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct renewed){
            .run = run, .client = clients[0], .other = clients[1], .number = i, .rng = run->rng + (unsigned)i};
        (void)pthread_create(&all[i].thread, NULL, release_beside_renewals, &all[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(all[i].thread, NULL);
        released += all[i].released;
        lost += all[i].lost;
    }
    hf_client_stats(clients[0], &stats);
    HFT_CHECK(run, stats.renewals > 0, "no renewal came into it");
    hft_check_quiet(run, server, clients, 2);
    for (int i = 0; i < 2; i++)
        HFT_CHECK(run, hf_client_close(clients[i], NULL) == HF_OK, "close was not clean");
    hft_note(run, "%ld released, %ld lost, %llu renewals, %llu in vain", released, lost,
             (unsigned long long)stats.renewals, (unsigned long long)stats.renewals_failed);
    hft_server_stop(server);
}

/* ---- losses beside passes ---- */

static struct {
    pthread_mutex_t mutex;
    hf_lease *inside; /* who came last and has not left */
    int64_t fence;
} section = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct passer {
    struct hft_run *run;
    hf_client *client;
    pthread_t thread;
    unsigned rng;
    _Atomic(bool) *over;
    long passes, lost;
};

static void come_in(struct hft_run *run, hf_lease *lease)
{
    (void)pthread_mutex_lock(&section.mutex);
    bool other = section.inside != NULL && hf_lease_is_valid(section.inside);
    bool mine = hf_lease_is_valid(lease); /* asked last: if it is ours now, the other's had ended before */
    HFT_CHECK(run, !other || !mine, "two valid leases in one process");
    HFT_CHECK(run, !mine || hf_lease_fence(lease) > section.fence, "a fence does not rise");
    if (mine) {
        section.inside = lease;
        section.fence = hf_lease_fence(lease);
    }
    (void)pthread_mutex_unlock(&section.mutex);
}

static void go_out(hf_lease *lease)
{
    (void)pthread_mutex_lock(&section.mutex);
    if (section.inside == lease)
        section.inside = NULL;
    (void)pthread_mutex_unlock(&section.mutex);
}

static void *pass_on(void *arg)
{
    struct passer *me = arg;
    while (!atomic_load(me->over)) {
        hf_lease *lease;
        hf_error error;
        hf_status status =
            hf_lock_acquire(me->client, "passed", HF_LOCK(.wait_ms = 20000, .lease_ms = 600), &lease, &error);
        if (status != HF_OK) {
            hft_broken(me->run, "acquire: %s: %s", hf_status_name(status), error.message);
            continue;
        }
        come_in(me->run, lease);
        hft_random_delay(&me->rng, 50);
        if (hft_die(&me->rng, 8) == 0) {
            status = hf_lease_verify(lease, &error);
            HFT_CHECK(me->run, status == HF_OK || status == HF_LOST, "verify: %s", hf_status_name(status));
            HFT_CHECK(me->run, status == HF_OK || !hf_lease_is_valid(lease), "lost, and valid");
        }
        go_out(lease);
        status = hft_die(&me->rng, 2) == 0 ? hf_lease_release(lease, &error) : hf_lease_post_release(lease, &error);
        HFT_CHECK(me->run, status == HF_OK || status == HF_LOST, "release: %s: %s", hf_status_name(status), error.message);
        me->passes++;
        me->lost += status == HF_LOST;
    }
    return NULL;
}

static void passes_and_loss(struct hft_run *run)
{
    enum { THREADS = 8 };
    static struct passer all[THREADS];
    _Atomic(bool) over = false;
    struct hft_server *server = hft_server_start(NULL);
    /* A broken lock waits for the guard, so the guard is short: otherwise there is little to race. */
    hf_client *clients[] = {hft_open(hft_server_url(server), HF_CLIENT(.guard_ms = 1)),
                            hft_open(hft_server_url(server), NULL)};
    long passes = 0, lost = 0;
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct passer){.run = run, .client = clients[0], .rng = run->rng + (unsigned)i, .over = &over};
        (void)pthread_create(&all[i].thread, NULL, pass_on, &all[i]);
    }
    for (int i = 0; i < run->times; i++) {
        if (hft_roll(run, 20) != 0)
            freeReplyObject(hft_server_ask(server, "DEL hf:{passed}"));
        else
            HFT_CHECK(run, hf_lock_break(clients[1], "passed", NULL, NULL) == HF_OK, "break failed");
        hft_random_delay(&run->rng, 3000);
    }
    atomic_store(&over, true);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(all[i].thread, NULL);
        passes += all[i].passes;
        lost += all[i].lost;
    }
    HFT_CHECK(run, lost > 0 && passes > lost, "%ld passes, %ld lost: no race", passes, lost);
    hft_check_quiet(run, server, clients, 2);
    for (int i = 0; i < 2; i++)
        HFT_CHECK(run, hf_client_close(clients[i], NULL) == HF_OK, "close was not clean");
    hft_note(run, "%d keys taken away, %ld passes, %ld lost", run->times, passes, lost);
    hft_server_stop(server);
}

const struct hft_named hft_race_faults[] = {
    {"cancel-storm", "cancels at the instant of a hand-off leave nobody waiting, spinning or holding", cancel_storm,
     10000, 1000000, HFT_MEASURES},
    {"renewed-releases", "a release beside a renewal under way is a release", renewed_releases, 12, 500, 0},
    {"passes-and-loss", "a lock lost between two local passes is never with two threads", passes_and_loss, 500, 20000, 0},
    {.name = NULL}};
