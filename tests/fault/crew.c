/* SPDX-License-Identifier: MIT */
/* crew.c - see crew.h. */
#include "tests/fault/crew.h"

#include "tests/torture/ledger.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct member {
    struct hft_crew *crew;
    hf_client *client;
    struct hft_seat *seat;
    pthread_t thread;
    int process, number;
    unsigned rng;
    long acquired, timeouts, unavailable, lost, unknown;
    int64_t longest_ns;
};

struct hft_crew {
    struct hft_run *run;
    struct hft_crew_plan plan;
    struct hft_ledger *ledger;
    hf_client **clients;
    hf_cancel **cancels;
    struct member *members;
    int count;
    _Atomic(bool) stop;
    _Atomic(long) acquired;
    struct hft_interval *history; /* at the end */
    size_t history_count;
};

static void stay(struct member *me, hf_lease *lease, int lock, int64_t asked)
{
    struct hft_seat *seat = me->seat;
    uint32_t count = atomic_load(&seat->count);
    int64_t now = hft_true_ns();
    int64_t until =
        now + (me->crew->plan.stay_us > 0 ? rand_r(&me->rng) % me->crew->plan.stay_us : 0) * 1000;
    if (count == me->crew->ledger->room || !hf_lease_is_valid(lease))
        return;
    struct hft_interval *section = &seat->history[count];
    *section = (struct hft_interval){.asked_ns = asked,
                                     .enter_ns = now,
                                     .leave_ns = now,
                                     .fence = hf_lease_fence(lease),
                                     .lock = lock,
                                     .process = (int16_t)me->process,
                                     .thread = (int16_t)me->number};
    atomic_store(&seat->count, count + 1);
    for (;;) {
        now = hft_true_ns();
        if (!hf_lease_is_valid(lease))
            break;
        section->leave_ns = now;
        if (now >= until)
            break;
        int64_t next = now + HFT_NS_PER_MS;
        hft_sleep_until(next < until ? next : until);
    }
}

static void once(struct member *me)
{
    struct hft_crew *crew = me->crew;
    int lock = rand_r(&me->rng) % crew->plan.locks;
    char name[48];
    hf_lease *lease;
    hf_error error;
    (void)snprintf(name, sizeof name, "crew:%d", lock);
    int64_t asked = hft_true_ns();
    hf_status status = hf_lock_acquire(me->client, name,
                                       HF_LOCK(.lease_ms = crew->plan.lease_ms, .wait_ms = crew->plan.wait_ms,
                                               .cancel = crew->cancels[me->process]),
                                       &lease, &error);
    int64_t took = hft_true_ns() - asked;
    me->timeouts += status == HF_TIMEOUT;
    me->unavailable += status == HF_UNAVAILABLE;
    if (status != HF_OK && status != HF_TIMEOUT)
        hft_sleep_ms(2);
    HFT_CHECK(crew->run, took < (crew->plan.wait_ms + 2000) * HFT_NS_PER_MS, "an acquire took %lld ms",
              (long long)(took / HFT_NS_PER_MS));
    if (status != HF_OK) {
        HFT_CHECK(crew->run,
                  crew->plan.overlaps_only || status == HF_TIMEOUT || status == HF_UNAVAILABLE ||
                      status == HF_CANCELED,
                  "acquire %s: %s: %s", name, hf_status_name(status), error.message);
        return;
    }
    me->acquired++;
    atomic_fetch_add(&crew->acquired, 1);
    me->longest_ns = took > me->longest_ns ? took : me->longest_ns;
    stay(me, lease, lock, asked);
    status =
        rand_r(&me->rng) % 4 == 0 ? hf_lease_post_release(lease, &error) : hf_lease_release(lease, &error);
    me->lost += status == HF_LOST;
    me->unknown += status == HF_UNKNOWN || status == HF_UNAVAILABLE;
    HFT_CHECK(crew->run,
              crew->plan.overlaps_only || status == HF_OK || status == HF_LOST || status == HF_UNKNOWN ||
                  status == HF_UNAVAILABLE,
              "release %s: %s: %s", name, hf_status_name(status), error.message);
}

static void *work(void *arg)
{
    struct member *me = arg;
    while (!atomic_load(&me->crew->stop))
        once(me);
    return NULL;
}

struct hft_crew *hft_crew_start(struct hft_run *run, const struct hft_crew_plan *plan)
{
    struct hft_crew *crew = calloc(1, sizeof *crew);
    struct hft_plan seats = {.processes = plan->clients, .threads = plan->threads, .locks = plan->locks};
    crew->run = run;
    crew->plan = *plan;
    crew->count = plan->clients * plan->threads;
    crew->ledger = hft_ledger_new(&seats);
    crew->clients = calloc((size_t)plan->clients, sizeof *crew->clients);
    crew->cancels = calloc((size_t)plan->clients, sizeof *crew->cancels);
    crew->members = calloc((size_t)crew->count, sizeof *crew->members);
    for (int c = 0; c < plan->clients; c++) {
        crew->clients[c] = hft_open(plan->url, HF_CLIENT(.command_ms = plan->command_ms));
        if (hf_cancel_open(crew->clients[c], &crew->cancels[c], NULL) != HF_OK)
            exit(1);
    }
    for (int i = 0; i < crew->count; i++) {
        int c = i / plan->threads, t = i % plan->threads;
        crew->members[i] = (struct member){.crew = crew,
                                           .client = crew->clients[c],
                                           .process = c,
                                           .number = t,
                                           .seat = hft_ledger_seat(crew->ledger, c, t),
                                           .rng = run->seed * 7919u + (unsigned)i};
        if (pthread_create(&crew->members[i].thread, NULL, work, &crew->members[i]) != 0)
            exit(1);
    }
    return crew;
}

long hft_crew_acquired(struct hft_crew *crew)
{
    return atomic_load(&crew->acquired);
}

/* True: the lease is the older one by its fence. Its key was lost before its holder entered, or before the holder's
 * process passed it on, so it may enter until one lease after the newer one was granted, and no later. */
static bool is_old_lease(const struct hft_crew *crew, const struct hft_interval *a,
                         const struct hft_interval *b)
{
    return b->enter_ns - a->enter_ns < crew->plan.lease_ms * HFT_NS_PER_MS;
}

static void violated(const struct hft_violation *violation, void *arg)
{
    struct hft_crew *crew = arg;
    const struct hft_interval *a = &violation->earlier, *b = &violation->later;
    bool told_apart = crew->plan.fences_only &&
                      (violation->verdict == HFT_OVERLAP ? a->fence != b->fence : is_old_lease(crew, a, b));
    if (crew->plan.overlaps_only && violation->verdict == HFT_FENCE)
        return;
    if (!told_apart)
        hft_broken(crew->run, "crew:%d: %s: client %d, fence %lld, then client %d, fence %lld, by %lld",
                   a->lock, violation->verdict == HFT_OVERLAP ? "two inside" : "a fence that is not higher",
                   a->process, (long long)a->fence, b->process, (long long)b->fence,
                   (long long)violation->by);
}

void hft_crew_stop(struct hft_crew *crew)
{
    if (atomic_exchange(&crew->stop, true))
        return;
    for (int c = 0; c < crew->plan.clients; c++)
        hf_cancel_fire(crew->cancels[c]);
    for (int i = 0; i < crew->count; i++)
        (void)pthread_join(crew->members[i].thread, NULL);
}

struct hft_crew_result hft_crew_end(struct hft_crew *crew)
{
    struct hft_crew_result all = {0};
    struct hft_run *run = crew->run;
    hft_crew_stop(crew);
    for (int i = 0; i < crew->count; i++) {
        const struct member *one = &crew->members[i];
        all.acquired += one->acquired;
        all.timeouts += one->timeouts;
        all.unavailable += one->unavailable;
        all.lost += one->lost;
        all.unknown += one->unknown;
        all.longest_ns = one->longest_ns > all.longest_ns ? one->longest_ns : all.longest_ns;
    }
    for (int c = 0; c < crew->plan.clients; c++) {
        hf_cancel_close(crew->cancels[c]);
        (void)hf_client_close(crew->clients[c], NULL);
    }
    crew->history = hft_ledger_history(crew->ledger, &crew->history_count);
    (void)hft_oracle_check(crew->history, crew->history_count, violated, crew);
    free(crew->history);
    hft_tally(run, all.acquired, all.longest_ns);
    HFT_CHECK(run, all.acquired > 0, "nobody ever got a lease");
    hft_note(
        run,
        "%ld leases, %ld lost, %ld timeouts, %ld unavailable, %ld releases unknown, longest wait %.0f ms",
        all.acquired, all.lost, all.timeouts, all.unavailable, all.unknown, (double)all.longest_ns / 1e6);
    free(crew->members);
    free(crew->clients);
    free(crew->cancels);
    free(crew);
    return all;
}
