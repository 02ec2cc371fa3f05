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

bool hfi_lane_keeps_cpu(const struct hfi_lane *lane)
{
    return atomic_load_explicit(&lane->keeps_cpu, memory_order_relaxed) &&
           !atomic_load_explicit(&lane->gave_cpu, memory_order_relaxed);
}

/* Are groups worth it now? Not where followers sleep, which are woken one by one, nor while another program may have the reader's CPU: the
 * server would idle meanwhile. threads: that wait, but for those that have waited for long, as for a grant, and list nothing. */
static bool makes_groups(const struct hfi_lane *lane, int *threads)
{
    const struct hfi_deployment *deployment = lane->deployment;
    int followers = hfi_followers_count(&deployment->followers, hfi_now(deployment->clock));
    *threads = atomic_load_explicit(&lane->threads, memory_order_relaxed);
    if (*threads > followers + 1)
        *threads = followers + 1;
    return hfi_lane_keeps_cpu(lane) && hfi_deployment_follower_looks(deployment, followers);
}

/* With many commands in flight to a near server, or with one where it is known whose CPU the server has, the reader of the next reply
 * sends everything listed by then: one send for many commands. Store-load pairing with the reader: we list the command, or give the
 * write role back, then read in_flight_count and looks_again; the reader changes them, then tests the inbox and takes the write role. */
bool hfi_lane_is_left(const struct hfi_lane *lane)
{
    int cpu = hfi_lane_server_cpu(lane), threads = 0;
    if (!atomic_load(&lane->looks_again))
        return false;
    if (hfi_costs_has_own_cpu(cpu) && !makes_groups(lane, &threads))
        cpu = 0; /* as if nothing were known */
    return hfi_costs_gathers(&lane->deployment->costs, atomic_load(&lane->nearest_rtt_ns), atomic_load(&lane->in_flight_count), cpu) &&
           !atomic_load(&lane->again) && atomic_load(&lane->state) == HFI_LANE_UP &&
           !(hfi_costs_has_own_cpu(cpu) && hfi_costs_is_group(atomic_load_explicit(&lane->listed, memory_order_relaxed), threads));
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
    return atomic_load(&lane->gathers) && !atomic_load(&lane->unattended) && !hfi_lane_is_read_next(lane) && hfi_lane_is_up(lane);
}
