/* SPDX-License-Identifier: MIT */
/* costs.c - see costs.h. The factors: `bench own_lock` and `bench hand_off`, where others were tried. */
#include "pool/costs.h"

#define STEPS 16

#define NEAR_SENDS     32
#define CROWD_TRIPS    2
#define LOOK_WAKE_UPS  10
#define LOOK_TRIPS     4  /* a trip that takes longer is another one's business: a slow script, a busy CPU */
#define YIELD_WAKE_UPS 16
#define LEFT_TRIPS     4
#define GRACE_WAKE_UPS 16

static int64_t get(const _Atomic(int64_t) *cost)
{
    return atomic_load_explicit(cost, memory_order_relaxed);
}

static void set(_Atomic(int64_t) *cost, int64_t ns)
{
    atomic_store_explicit(cost, ns > 1 ? ns : 1, memory_order_relaxed);
}

/* Follows the median: one sample, however wrong, moves it by one step. */
static void note(_Atomic(int64_t) *cost, int64_t took_ns)
{
    int64_t ns = get(cost);
    int64_t step_ns = (ns + STEPS - 1) / STEPS;
    set(cost, ns == 0 ? took_ns : took_ns < ns ? ns - step_ns : ns + step_ns);
}

void hfi_costs_note_send(struct hfi_costs *costs, int64_t took_ns)
{
    note(&costs->send_ns, took_ns);
}

void hfi_costs_note_wake_up(struct hfi_costs *costs, int64_t took_ns)
{
    note(&costs->wake_up_ns, took_ns);
}

bool hfi_costs_is_near(const struct hfi_costs *costs, int64_t nearest_ns)
{
    return nearest_ns != 0 && nearest_ns < NEAR_SENDS * get(&costs->send_ns);
}

bool hfi_costs_gathers(const struct hfi_costs *costs, int64_t nearest_ns, int in_flight)
{
    return hfi_costs_is_near(costs, nearest_ns) && in_flight * get(&costs->send_ns) > CROWD_TRIPS * nearest_ns;
}

bool hfi_costs_looks(const struct hfi_costs *costs, int64_t rtt_ns)
{
    return rtt_ns != 0 && rtt_ns < LOOK_WAKE_UPS * get(&costs->wake_up_ns);
}

int64_t hfi_costs_look_ns(int64_t rtt_ns)
{
    return LOOK_TRIPS * rtt_ns;
}

bool hfi_costs_is_long(const struct hfi_costs *costs, int64_t yield_ns)
{
    int64_t wake_up_ns = get(&costs->wake_up_ns);
    return wake_up_ns != 0 && yield_ns > YIELD_WAKE_UPS * wake_up_ns;
}

int64_t hfi_costs_left_ns(int64_t rtt_ns)
{
    return LEFT_TRIPS * rtt_ns;
}

int64_t hfi_costs_grace_ns(const struct hfi_costs *costs, int64_t nearest_ns)
{
    return hfi_costs_is_near(costs, nearest_ns) ? GRACE_WAKE_UPS * get(&costs->wake_up_ns) : nearest_ns; /* sooner it cannot be here */
}
