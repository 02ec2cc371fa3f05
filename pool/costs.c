/* SPDX-License-Identifier: MIT */
/* costs.c - see costs.h. The factors: `bench own_lock`, where others were tried. */
#include "pool/costs.h"
#include "pool/times.h"

#define STEPS       8  /* a sample moves a cost by this part of it, */
#define DOWN_STEPS  64 /* and a wake-up's downwards by this */

#define WRONG          16

#define NEAR_SENDS     64
#define CROWD          4 /* commands in flight */
#define FIRSTS         32 /* a score above it: nearly all looks are first ones */
#define FIRSTS_MOST    64
#define FIRSTS_LATER   8  /* that another one takes back */
#define AT_ONCE        128 /* other finds outweigh one at once. Of 25 finds one is, beside a server with its own CPU; else one of 400 */
#define OWN_MOST       512
#define GROUPS         3
#define LOOK_WAKE_UPS  8
#define LOOK_YIELDS    16
#define LOOK_TRIPS     4 /* a trip that takes longer is another one's business: a slow script, a busy CPU */
#define YIELD_WAKE_UPS 16
#define YIELD_TRIPS    16
#define LEFT_TRIPS     4
#define GRACE_WAKE_UPS 16
#define FEW            8 /* followers */
#define SLEEP_SENDS    4
#define OWN_SLEEPS     2 /* what a thread does once it is awake, and the server for it, takes as long again */
#define YIELD_OWN      2 /* till a thread that yields has the CPU again some have had it twice */
#define SLICE_SLEEPS   4
#define NEAREST_STEPS  1024

static int64_t get(const _Atomic(int64_t) *cost_ns)
{
    return atomic_load_explicit(cost_ns, memory_order_relaxed);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void note(_Atomic(int64_t) *cost_ns, int64_t took_ns, int down_steps)
{
    int64_t ns = get(cost_ns);
    if (took_ns > HFI_SLICE_NS) /* another program had the CPU */
        return;
    if (took_ns < ns / WRONG) /* the first sample was one of those that had to wait */
        down_steps = STEPS;
    ns = ns == 0 ? took_ns : took_ns < ns ? ns - (ns + down_steps - 1) / down_steps : ns + (ns + STEPS - 1) / STEPS;
    atomic_store_explicit(cost_ns, ns > 1 ? ns : 1, memory_order_relaxed);
}

void hfi_costs_note_send(struct hfi_costs *costs, int64_t took_ns)
{
    note(&costs->send_ns, took_ns, STEPS);
}

void hfi_costs_note_yield(struct hfi_costs *costs, int64_t took_ns)
{
    note(&costs->yield_ns, took_ns, STEPS);
}

void hfi_costs_note_sleep(struct hfi_costs *costs, int64_t used_ns)
{
    note(&costs->sleep_ns, least(used_ns, HFI_SLICE_NS), STEPS);
}

void hfi_costs_note_wake_up(struct hfi_costs *costs, int64_t took_ns)
{
    note(&costs->wake_up_ns, took_ns, DOWN_STEPS);
}

int64_t hfi_costs_nearest_ns(int64_t nearest_ns, int64_t sample_ns, int64_t own_ns)
{
    if (nearest_ns == 0 || sample_ns < nearest_ns)
        return most(sample_ns, 1);
    return nearest_ns + (most(sample_ns - own_ns - nearest_ns, 0) + NEAREST_STEPS - 1) / NEAREST_STEPS;
}

bool hfi_costs_is_near(const struct hfi_costs *costs, int64_t nearest_ns)
{
    return nearest_ns != 0 && nearest_ns < least(NEAR_SENDS * get(&costs->send_ns), HFI_NEAR_MOST_NS);
}

int hfi_costs_note_found(int server_cpu, enum hfi_found found)
{
    if (found == HFI_FOUND_AT_ONCE)
        return server_cpu > AT_ONCE - OWN_MOST ? server_cpu - AT_ONCE : -OWN_MOST;
    if (server_cpu < 0)
        return server_cpu + 1;
    if (found == HFI_FOUND_AT_FIRST)
        return server_cpu < FIRSTS_MOST ? server_cpu + 1 : server_cpu;
    if (found == HFI_FOUND_LATER)
        return server_cpu > FIRSTS_LATER ? server_cpu - FIRSTS_LATER : 0;
    return server_cpu;
}

bool hfi_costs_has_our_cpu(int server_cpu)
{
    return server_cpu > FIRSTS;
}

bool hfi_costs_has_own_cpu(int server_cpu)
{
    return server_cpu < 0;
}

bool hfi_costs_gathers(const struct hfi_costs *costs, int64_t nearest_ns, int in_flight, int server_cpu)
{
    bool is_known = hfi_costs_has_our_cpu(server_cpu) || hfi_costs_has_own_cpu(server_cpu);
    return in_flight > (is_known ? 0 : CROWD) && hfi_costs_is_near(costs, nearest_ns);
}

bool hfi_costs_is_group(int listed, int threads)
{
    return listed >= (threads + 1) / GROUPS;
}

bool hfi_costs_is_crowd(int followers)
{
    return followers > FEW;
}

int64_t hfi_costs_own_ns(const struct hfi_costs *costs, int followers)
{
    int64_t sleep_ns = get(&costs->sleep_ns);
    return sleep_ns == 0 && hfi_costs_is_crowd(followers) ? HFI_OWN_MOST_NS : least(sleep_ns * followers * OWN_SLEEPS, HFI_OWN_MOST_NS);
}

bool hfi_costs_looks(const struct hfi_costs *costs, const struct hfi_trip *trip)
{
    int64_t worth_ns = most(LOOK_WAKE_UPS * get(&costs->wake_up_ns), LOOK_YIELDS * get(&costs->yield_ns));
    worth_ns = least(worth_ns, HFI_LOOK_MOST_NS);
    return trip->nearest_ns != 0 && trip->nearest_ns < worth_ns && trip->rtt_ns - trip->own_ns < worth_ns;
}

bool hfi_costs_follower_looks(const struct hfi_costs *costs, int followers)
{
    return !hfi_costs_is_crowd(followers) || get(&costs->sleep_ns) > SLEEP_SENDS * get(&costs->send_ns);
}

bool hfi_costs_look_is_over(const struct hfi_trip *trip, int64_t took_ns, int yields)
{
    int64_t late_ns = took_ns - trip->own_ns;
    return late_ns >= HFI_LOOK_MOST_NS || (yields >= LOOK_YIELDS && late_ns >= LOOK_TRIPS * trip->rtt_ns);
}

bool hfi_costs_is_long(const struct hfi_costs *costs, int64_t yield_ns, const struct hfi_trip *trip)
{
    int64_t wake_up_ns = get(&costs->wake_up_ns), late_ns = yield_ns - YIELD_OWN * trip->own_ns;
    int64_t usual_ns = most(YIELD_WAKE_UPS * wake_up_ns, YIELD_TRIPS * trip->nearest_ns);
    return late_ns > HFI_SLICE_NS || (wake_up_ns != 0 && late_ns > usual_ns);
}

int hfi_costs_sleeps(int64_t own_ns)
{
    return (int)(1 + SLICE_SLEEPS * own_ns / HFI_SLICE_NS);
}

int64_t hfi_costs_left_ns(int64_t rtt_ns)
{
    return least(LEFT_TRIPS * rtt_ns, HFI_LEFT_MOST_NS);
}

int64_t hfi_costs_left_again_ns(int64_t before_ns)
{
    return least(2 * before_ns, HFI_LEFT_MOST_NS);
}

int64_t hfi_costs_grace_ns(const struct hfi_costs *costs)
{
    return least(GRACE_WAKE_UPS * get(&costs->wake_up_ns), HFI_GRACE_MOST_NS);
}
