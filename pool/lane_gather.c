/* SPDX-License-Identifier: MIT */
/* lane_gather.c - who sends what a thread has listed: the thread itself, or another one, for many threads with one send. What the reader
 * finds tells whose CPU the server has. */
#include "pool/lane_private.h"

#include <sched.h>

bool hfi_lane_is_near(const struct hfi_lane *lane)
{
    return hfi_costs_is_near(&lane->deployment->costs, atomic_load(&lane->nearest_rtt_ns));
}

int hfi_lane_server_cpu(const struct hfi_lane *lane)
{
    return atomic_load_explicit(&lane->server_cpu, memory_order_relaxed);
}

void hfi_lane_note_found(struct hfi_lane *lane, enum hfi_found found)
{
    atomic_store_explicit(&lane->server_cpu, hfi_costs_note_found(hfi_lane_server_cpu(lane), found), memory_order_relaxed);
}

/* With many commands in flight to a near server, or with one where it is known whose CPU the server has, the reader of the next reply
 * sends everything listed by then: one send for many commands. A crowd that sleeps makes no groups, for its threads are woken one by one.
 * Store-load pairing with the reader: we list the command, or give the write role back, then read in_flight_count and looks_again; the
 * reader changes them, then tests the inbox and takes the write role. */
bool hfi_lane_is_left(const struct hfi_lane *lane)
{
    const struct hfi_deployment *deployment = lane->deployment;
    int cpu = hfi_lane_server_cpu(lane), listed = atomic_load_explicit(&lane->listed, memory_order_relaxed);
    int threads = atomic_load_explicit(&lane->threads, memory_order_relaxed) -
                  atomic_load_explicit(&lane->for_messages, memory_order_relaxed);
    if (hfi_costs_has_own_cpu(cpu) && hfi_costs_is_crowd(threads) && !hfi_pace_looks(&deployment->pace))
        cpu = 0; /* as if nothing were known */
    return atomic_load(&lane->looks_again) &&
           hfi_costs_gathers(&deployment->costs, atomic_load(&lane->nearest_rtt_ns), atomic_load(&lane->in_flight_count), cpu) &&
           !atomic_load(&lane->again) && atomic_load(&lane->state) == HFI_LANE_UP &&
           !(hfi_costs_has_own_cpu(cpu) && hfi_costs_is_group(listed, threads));
}

bool hfi_lane_keeps_cpu(const struct hfi_lane *lane)
{
    return atomic_load_explicit(&lane->keeps_cpu, memory_order_relaxed) &&
           !atomic_load_explicit(&lane->gave_cpu, memory_order_relaxed);
}

/* Store-load pairing with those that list meanwhile: they list, then read `gathers`; we change it, then take the write role, or its holder
 * tests the inbox. */
bool hfi_lane_gather(struct hfi_lane *lane)
{
    const struct hfi_deployment *deployment = lane->deployment;
    if (!hfi_costs_has_our_cpu(hfi_lane_server_cpu(lane)) || atomic_load(&lane->in_flight_count) > 0 || lane->kind >= HFI_CROWDS ||
        !hfi_crowd_has_others(&deployment->crowds[lane->kind]) || !hfi_lane_keeps_cpu(lane) || !hfi_lane_is_up(lane))
        return false;
    if (atomic_exchange(&lane->gathers, true))
        return true;
    (void)sched_yield(); /* if other programs want the CPU, the looks that follow will tell */
    atomic_store(&lane->gathers, false);
    return false;
}

bool hfi_lane_is_gathered(const struct hfi_lane *lane)
{
    return atomic_load(&lane->gathers) && !hfi_lane_is_read_next(lane) && hfi_lane_is_up(lane);
}
