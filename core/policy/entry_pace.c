/* SPDX-License-Identifier: MIT */
/* entry_pace.c - when a name asks the server next. Pure but for the jitter. */
#include "core/policy/entry_steps.h"
#include "core/policy/pace.h"
#include "base/random.h"

#include <stdatomic.h>

/* Re-checks are aligned to a grid so that one wake-up and one script serve many names, those with a long R to every second point.
 * What is drawn for R, a round trip less, is rounded down: that leaves two points at least, so names that start together part. */
#define GRID_NS (40 * HFI_MS)
#define LONG_MS 1000

/* The same for names that ask at once when a lane or a subscription is back: they learn of it one after the other, while the
 * watchdog's thread looks for those that are due. Without a moment in common it asks for each alone. */
#define SOON_NS (2 * HFI_MS)

/* As long as readers wait at a door that another process has shut, a renewal asks so often whether that process still waits:
 * it may have been killed, or have left. */
#define DOOR_NS (400 * HFI_MS)

/* The re-checks of many names would keep the server from handing leases on, so R grows with their number. */
int64_t hfi_recheck_ms(int64_t position, uint64_t queued, int64_t lease_ms)
{
    int64_t period = queued > 5000 ? 2000 : queued > 250 || position >= 64 ? 1000 : 400, most = lease_ms / 5 * 2;
    return period < most ? period : most < 400 ? 400 : most;
}

int64_t hfi_step_recheck_ms(const struct hfi_entry *entry, int64_t lease_ms)
{
    uint64_t queued = atomic_load_explicit(&entry->rules->queued, memory_order_relaxed);
    return hfi_recheck_ms(entry->ask.position, queued, lease_ms);
}

int64_t hfi_step_period_ms(const struct hfi_entry *entry)
{
    int64_t period = hfi_step_recheck_ms(entry, entry->asked_for / HFI_MS);
    if (entry->ask.asked_period_ms != 0 && entry->ask.asked_period_ms < period)
        period = entry->ask.asked_period_ms;
    if (entry->ask.recorded_period_ms != 0 && entry->ask.recorded_period_ms < period)
        period = entry->ask.recorded_period_ms;
    return period;
}

void hfi_step_ask_in(struct hfi_entry *entry, int64_t now, int64_t ms)
{
    entry->ask_at = now + hfi_jitter(&entry->rng, ms * HFI_MS, 0.1);
}

void hfi_step_ask_together_in(struct hfi_entry *entry, int64_t now, int64_t ms, int64_t rtt_ns)
{
    int64_t period = ms * HFI_MS - (rtt_ns < ms * HFI_MS / 4 ? rtt_ns : ms * HFI_MS / 4);
    int64_t at = now + hfi_jitter(&entry->rng, period, 0.1);
    entry->ask_at = at - (at - entry->rules->phase) % (ms < LONG_MS ? GRID_NS : 2 * GRID_NS);
}

void hfi_step_ask_together_soon(struct hfi_entry *entry, int64_t now)
{
    int64_t at = (now / SOON_NS + 1) * SOON_NS;
    entry->ask_at = at < entry->ask_at ? at : entry->ask_at;
}

int64_t hfi_step_wish_again_ms(struct hfi_entry *entry, bool unheard, int64_t period_ms)
{
    int64_t ms = INT64_C(10) << entry->unheard;
    bool soon = unheard && ms < period_ms;
    entry->unheard = soon ? entry->unheard + 1 : unheard ? entry->unheard : 0;
    return soon ? ms : period_ms;
}

void hfi_step_ask_later(struct hfi_entry *entry, int64_t now)
{
    hfi_step_ask_in(entry, now, hfi_step_period_ms(entry));
}

int64_t hfi_step_next_early(const struct hfi_entry *entry, int64_t at)
{
    return hfi_pace_next_ns(entry->ask.early_until, at);
}

void hfi_step_pay_early(struct hfi_entry *entry, int64_t now)
{
    entry->ask.early_until = hfi_pace_paid_ns(entry->ask.early_until, now);
}

int64_t hfi_step_after_no_answer(struct hfi_entry *entry, bool granted, int64_t now)
{
    if (!granted) /* its connection is lost, and dials have a pace of their own */
        return hfi_step_next_early(entry, now);
    return now + hfi_step_wish_again_ms(entry, true, hfi_step_period_ms(entry)) * HFI_MS;
}

int64_t hfi_step_door_at(const struct hfi_entry *entry)
{
    bool is_shut = entry->rules->shares && entry->holding == HFI_BY_THREAD && entry->remote_waiters &&
                   !hfi_list_is_empty(&entry->waiters);
    return is_shut && !entry->held.times.questioned ? entry->held.wanted_at + DOOR_NS : HFI_NEVER;
}
