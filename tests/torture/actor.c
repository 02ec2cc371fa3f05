/* SPDX-License-Identifier: MIT */
/* actor.c - see actor.h. Uses the public API only. */
#include "tests/torture/actor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define WAIT_MS 30000
#define LOOK_MS 10
#define TOLD_MS 5000 /* who is not told of a loss for so long will never be */

struct actor {
    struct hft_stage *stage;
    struct hft_mark *mark;
    struct hft_seat *seat;
    hf_client *client;
    int process, lock, told_fd;
    unsigned rng;
    _Atomic(int64_t) told_ns;
};

hf_client *hft_actor_client(struct hft_stage *stage)
{
    hf_client *client;
    hf_error error;
    if (hf_client_open(stage->ledger->plan.url,
                       HF_CLIENT(.keyspace_events = "off", .lanes = 1, .connect_ms = 10000), &client,
                       &error) == HF_OK)
        return client;
    hft_complain(stage->ledger, "open: %s", error.message);
    _exit(1);
}

static void on_event(hf_lease *lease, const hf_event *event, void *arg)
{
    struct actor *actor = arg;
    (void)lease;
    if (event->kind != HF_EVENT_LOST)
        return;
    atomic_store(&actor->told_ns, hft_now_ns());
    (void)eventfd_write(actor->told_fd, 1);
}

static bool readable(int fd, int ms)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int64_t until = hft_now_ns() + ms * HFT_MS;
    int count;
    while ((count = poll(&ready, 1, ms)) < 0 && errno == EINTR && hft_now_ns() < until)
        ;
    return count == 1;
}

/* Chooses when the director may strike, and how long this process stays if it does not. Half of the holders are
 * struck at once, half somewhere in their first half lease; one in four is spared and soon releases. */
static int64_t choose_fate(struct actor *actor, int64_t now)
{
    int64_t lease_ns = actor->stage->ledger->plan.lease_ms * HFT_MS;
    int die = rand_r(&actor->rng);
    if (die % 4 == 0) {
        atomic_store(&actor->mark->due_ns, INT64_MAX);
        return now + die / 4 % 30 * HFT_MS;
    }
    int64_t after = (die / 4) % 2 == 0 ? (die / 8) % 3000 * 1000 : (die / 8) % 1000 * (lease_ns / 2000);
    atomic_store(&actor->mark->due_ns, now + after);
    return INT64_MAX;
}

/* Holds the lease; true: it is still valid at the end. Each look records until when the lease is certainly valid,
 * even if this process were killed or stopped right now. */
static bool stay(struct actor *actor, hf_lease *lease, int64_t asked_ns)
{
    struct hft_mark *mark = actor->mark;
    struct hft_seat *seat = actor->seat;
    struct hft_interval *section = &seat->history[atomic_load(&seat->count)];
    int64_t now = hft_now_ns(), until = choose_fate(actor, now);
    int64_t left_ms = hf_lease_remaining_ms(lease);
    if (!hf_lease_is_valid(lease))
        return false;
    *section = (struct hft_interval){.asked_ns = asked_ns, .enter_ns = now, .leave_ns = now + left_ms * HFT_MS,
        .fence = hf_lease_fence(lease), .lock = actor->lock, .process = (int16_t)actor->process};
    atomic_fetch_add(&seat->count, 1);
    atomic_store(&mark->act, (int)HFT_HOLDING);
    for (;;) {
        bool resumed = atomic_load(&mark->resumed_ns) != 0; /* asked first: what is_valid says after it, counts */
        now = hft_now_ns();
        left_ms = hf_lease_remaining_ms(lease);
        if (!hf_lease_is_valid(lease))
            return false;
        if (resumed)
            atomic_store(&actor->stage->pauses[atomic_load(&mark->stroke)].believed, true);
        section->leave_ns = now + left_ms * HFT_MS;
        if (now >= until) {
            section->leave_ns = now;
            return true;
        }
        int64_t ms = (until - now) / HFT_MS + 1;
        (void)readable(hf_lease_event_fd(lease), ms < LOOK_MS ? (int)ms : LOOK_MS);
    }
}

/* The lease is lost. With an excuse (a pause) the notification is recorded; without one it is a false loss. */
static void leave_lost(struct actor *actor, hf_lease *lease)
{
    struct hft_ledger *ledger = actor->stage->ledger;
    hf_reason reason = hf_lease_reason(lease);
    bool is_readable = readable(hf_lease_event_fd(lease), TOLD_MS);
    int64_t readable_ns = is_readable ? hft_now_ns() : 0;
    bool is_told = readable(actor->told_fd, TOLD_MS);
    hf_status status = hf_lease_release(lease, NULL);
    int stroke = atomic_load(&actor->mark->stroke);
    eventfd_t told;
    (void)eventfd_read(actor->told_fd, &told);
    if (status != HF_LOST)
        hft_complain(ledger, "released after its end, and told %s", hf_status_name(status));
    if (stroke < 0) {
        atomic_fetch_add(&ledger->lost[reason], 1);
        return;
    }
    struct hft_pause *pause = &actor->stage->pauses[stroke];
    atomic_store(&pause->readable_ns, readable_ns);
    atomic_store(&pause->told_ns, is_told ? atomic_load(&actor->told_ns) : 0);
    atomic_store(&pause->lost, status == HF_LOST);
    atomic_store(&actor->mark->stroke, -1);
    atomic_store(&actor->mark->resumed_ns, 0);
    atomic_store(&pause->over, true);
}

static void leave(struct actor *actor, hf_lease *lease)
{
    hf_error error;
    hf_status status =
        rand_r(&actor->rng) % 2 == 0 ? hf_lease_release(lease, &error) : hf_lease_post_release(lease, &error);
    eventfd_t told;
    if (status == HF_LOST) { /* the end came between the last look and this call */
        atomic_fetch_add(&actor->stage->ledger->lost[HF_REASON_NONE], 1);
        (void)eventfd_read(actor->told_fd, &told);
    } else if (status != HF_OK) {
        hft_complain(actor->stage->ledger, "release: %s: %s", hf_status_name(status), error.message);
    }
}

void hft_actor_hold(struct hft_stage *stage, int process, unsigned seed)
{
    struct actor actor = {.stage = stage, .mark = &stage->marks[process], .process = process, .rng = seed,
                          .seat = hft_ledger_seat(stage->ledger, process, 0),
                          .lock = process % stage->ledger->plan.locks, .told_fd = eventfd(0, EFD_NONBLOCK)};
    char name[24];
    hf_lease *lease;
    hf_error error;
    (void)snprintf(name, sizeof name, "torture:%d", actor.lock);
    actor.client = hft_actor_client(stage);
    while (atomic_load(&actor.seat->count) < stage->ledger->room) {
        int64_t asked_ns = hft_now_ns();
        atomic_store(&actor.mark->asked_ns, asked_ns);
        atomic_store(&actor.mark->act, (int)HFT_ASKING);
        hf_status status = hf_lock_acquire(actor.client, name,
            HF_LOCK(.lease_ms = stage->ledger->plan.lease_ms, .wait_ms = WAIT_MS, .on_event = on_event,
                    .arg = &actor, .event_fd = true), &lease, &error);
        if (status != HF_OK) {
            hft_complain(stage->ledger, "acquire of %s: %s: %s", name, hf_status_name(status), error.message);
            continue;
        }
        bool kept = stay(&actor, lease, asked_ns);
        atomic_store(&actor.mark->act, (int)HFT_GIVING_BACK);
        if (kept)
            leave(&actor, lease);
        else
            leave_lost(&actor, lease);
    }
    hft_complain(stage->ledger, "the ledger was full before the end");
}
