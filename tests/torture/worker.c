/* SPDX-License-Identifier: MIT */
/* worker.c - see worker.h. Uses the public API only. */
#include "tests/torture/worker.h"

#include <holdfast/holdfast.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define SMALLEST_FENCE INT64_C(1000000000000000000) /* 19 digits */

struct process {
    struct hft_ledger *ledger;
    const char *url;
    hf_client *client;
    hf_cancel *cancel;
    pthread_barrier_t start;
    int number;
};

struct worker {
    struct process *process;
    struct hft_seat *seat;
    unsigned rng;
    int number;
};

static void pause_us(int64_t us)
{
    struct timespec length = {us / 1000000, us % 1000000 * 1000};
    (void)nanosleep(&length, NULL);
}

static void now_doing(struct hft_seat *seat, enum hft_doing doing, int lock)
{
    atomic_store(&seat->lock, lock);
    atomic_store(&seat->since_ns, hft_now_ns());
    atomic_store(&seat->doing, (int)doing);
}

/* Mostly nothing, often a little, rarely more than a lease. */
static int64_t length_of_stay_us(struct worker *worker)
{
    const struct hft_plan *plan = &worker->process->ledger->plan;
    int die = rand_r(&worker->rng) % 4000;
    if (plan->bare)
        return 0;
    if (die == 0 || (plan->fault == HFT_FREEZE_SERVER && die % 8 == 0)) /* so that many hold when it freezes */
        return plan->lease_ms * (500 + rand_r(&worker->rng) % 2000);
    if (plan->fault == HFT_FAIL_OVER && die % 8 == 0) /* or is another one */
        return 1000 * (rand_r(&worker->rng) % 2000);
    if (die % 20 == 1)
        return 1000 + rand_r(&worker->rng) % 2000;
    return die % 4 == 2 ? rand_r(&worker->rng) % 50 : 0;
}

/* The holder's section as it can know it: from the first "valid" to the last moment before which it asked and was
 * told "valid". A kill at any point leaves a true interval behind. */
static hf_status acquire(struct worker *worker, const char *name, bool shared, int64_t wait_ms, hf_lease **lease, hf_error *error)
{
    const struct hft_plan *plan = &worker->process->ledger->plan;
    const hf_lock_options *options = HF_LOCK(.shared = shared, .lease_ms = plan->lease_ms, .wait_ms = wait_ms,
                                             .linger_ms = plan->limit > 0 && rand_r(&worker->rng) % 4 == 0 ? 5 : 0,
                                             .cancel = worker->process->cancel);
    int wants = rand_r(&worker->rng) % 20 == 0 ? plan->limit : 1 + rand_r(&worker->rng) % 3;
    if (plan->limit > 0)
        return hf_semaphore_acquire(worker->process->client, name, plan->limit, wants, options, lease, error);
    return hf_lock_acquire(worker->process->client, name, options, lease, error);
}

static void stay(struct worker *worker, hf_lease *lease, int lock, int64_t asked_ns, bool shared)
{
    struct hft_seat *seat = worker->seat;
    uint32_t count = atomic_load(&seat->count);
    int64_t now = hft_now_ns(), until = now + length_of_stay_us(worker) * 1000;
    if (!hf_lease_is_valid(lease))
        return;
    struct hft_interval *section = &seat->history[count];
    *section = (struct hft_interval){.asked_ns = asked_ns, .enter_ns = now, .leave_ns = now,
        .fence = hf_lease_fence(lease), .lock = lock,
        .process = (int16_t)worker->process->number, .thread = (int16_t)worker->number, .shared = shared,
        .permits = (int16_t)hf_lease_permits(lease)};
    atomic_store(&seat->count, count + 1);
    if (section->fence < SMALLEST_FENCE)
        hft_complain(worker->process->ledger, "a fence without 19 digits: %lld", (long long)section->fence);
    while (hf_lease_is_valid(lease)) {
        section->leave_ns = now;
        if (now >= until)
            break;
        pause_us(until - now > HFT_MS ? 1000 : (until - now) / 1000);
        now = hft_now_ns();
    }
    now = hft_now_ns();
    if (hf_lease_is_valid(lease))
        section->leave_ns = now;
}

static void give_back(struct worker *worker, hf_lease *lease, int lock)
{
    struct hft_ledger *ledger = worker->process->ledger;
    hf_error error;
    bool late = !hf_lease_is_valid(lease);
    hf_reason reason = hf_lease_reason(lease); /* NONE: the end came during the release */
    now_doing(worker->seat, HFT_RELEASING, lock);
    hf_status status = rand_r(&worker->rng) % 4 == 0 ? hf_lease_post_release(lease, &error)
                                                      : hf_lease_release(lease, &error);
    now_doing(worker->seat, HFT_WORKING, lock);
    if (status == HF_LOST)
        atomic_fetch_add(&ledger->lost[reason], 1);
    else if (late)
        hft_complain(ledger, "released after its end, and told %s", hf_status_name(status));
    else if (status == HF_UNKNOWN && hft_server_rests(&ledger->plan))
        atomic_fetch_add(&ledger->unknown, 1);
    else if (status != HF_OK)
        hft_complain(ledger, "release of torture:%d: %s: %s", lock, hf_status_name(status), error.message);
}

static void one_section(struct worker *worker)
{
    struct process *process = worker->process;
    struct hft_ledger *ledger = process->ledger;
    int lock = rand_r(&worker->rng) % ledger->plan.locks;
    char name[32];
    hf_lease *lease;
    hf_error error;
    (void)snprintf(name, sizeof name, "torture:%d", lock);
    /* Some are in a hurry and get nothing, of which nothing may be left. */
    bool hurries = !ledger->plan.bare && rand_r(&worker->rng) % 8 == 0;
    int64_t wait_ms = hurries ? rand_r(&worker->rng) % 20 : HFT_WAIT_MS;
    hft_ledger_wants(ledger, process->number, worker->number, lock);
    int64_t asked_ns = hft_now_ns();
    now_doing(worker->seat, HFT_ACQUIRING, lock);
    bool shared = ledger->plan.readers > 0 && rand_r(&worker->rng) % 100 < ledger->plan.readers;
    hf_status status = acquire(worker, name, shared, wait_ms, &lease, &error);
    now_doing(worker->seat, HFT_WORKING, lock);
    if (status == HF_OK) {
        stay(worker, lease, lock, asked_ns, shared);
        give_back(worker, lease, lock);
    } else if (hurries && (status == HF_BUSY || status == HF_TIMEOUT ||
                           (status == HF_UNAVAILABLE && hft_server_rests(&ledger->plan)))) {
        atomic_fetch_add(&ledger->in_vain, 1);
    } else if (status == HF_TIMEOUT) {
        atomic_fetch_add(&ledger->timeouts, 1);
    } else if (status == HF_UNAVAILABLE && hft_server_rests(&ledger->plan) &&
               hft_now_ns() - asked_ns >= HFT_WAIT_MS * HFT_MS) { /* a frozen server is waited for, to the end */
        atomic_fetch_add(&ledger->timeouts, 1);
    } else if (status != HF_CANCELED || !atomic_load(&ledger->stop)) {
        hft_complain(ledger, "acquire of %s: %s: %s", name, hf_status_name(status), error.message);
        pause_us(10000);
    }
    hft_ledger_wants_no_more(ledger, process->number, worker->number);
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct hft_ledger *ledger = worker->process->ledger;
    (void)pthread_barrier_wait(&worker->process->start);
    while (!atomic_load(&ledger->stop)) {
        if (atomic_load(&worker->seat->count) == ledger->room) {
            atomic_store(&ledger->full, true);
            pause_us(10000);
            continue;
        }
        one_section(worker);
    }
    return NULL;
}

static void open_client(struct process *process)
{
    struct hft_ledger *ledger = process->ledger;
    hf_error error;
    for (;;) {
        hf_status status = hf_client_open(process->url, HF_CLIENT(.keyspace_events = "off"), &process->client,
                                          &error);
        if (status == HF_OK)
            break;
        if (status != HF_UNAVAILABLE || !hft_server_rests(&ledger->plan) || atomic_load(&ledger->stop)) {
            hft_complain(ledger, "open: %s: %s", hf_status_name(status), error.message);
            exit(1);
        }
    }
    if (hf_cancel_open(process->client, &process->cancel, &error) != HF_OK) {
        hft_complain(ledger, "hf_cancel_open: %s", error.message);
        exit(1);
    }
}

_Noreturn void hft_work(struct hft_ledger *ledger, const char *url, int number, unsigned seed)
{
    struct process process = {.ledger = ledger, .url = url, .number = number};
    int threads = ledger->plan.threads;
    pthread_t *ids = calloc((size_t)threads, sizeof *ids);
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    hf_error error;
    open_client(&process);
    (void)pthread_barrier_init(&process.start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){&process, hft_ledger_seat(ledger, number, i), seed * 1000003u + (unsigned)i, i};
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0) {
            hft_complain(ledger, "pthread_create failed");
            _exit(1);
        }
    }
    while (!atomic_load(&ledger->stop))
        pause_us(5000);
    hf_cancel_fire(process.cancel);
    for (int i = 0; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
    hf_cancel_close(process.cancel);
    hf_status status = hf_client_close(process.client, &error);
    /* Whoever stood still, client or server: an acquire that got no answer may yet be executed. */
    bool may_not_know = ledger->plan.fault == HFT_FREEZE || hft_server_rests(&ledger->plan);
    bool clean = status == HF_OK || (status == HF_UNKNOWN && may_not_know);
    if (!clean)
        hft_complain(ledger, "close: %s: %s", hf_status_name(status), error.message);
    (void)pthread_barrier_destroy(&process.start);
    free(ids);
    free(workers);
    exit(clean ? 0 : 1);
}
