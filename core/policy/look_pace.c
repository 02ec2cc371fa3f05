/* SPDX-License-Identifier: MIT */
/* look_pace.c - see look_pace.h. */
#include "core/policy/look_pace.h"
#include "base/clock.h"

#define CHEAP      100
#define PAUSE_MOST (10000 * HFI_MS)

static int64_t middle(int64_t a, int64_t b, int64_t c)
{
    int64_t less = a < b ? a : b, more = a < b ? b : a;
    return c < less ? less : c > more ? more : c;
}

static int64_t pause_for(int64_t took_ns)
{
    return took_ns < PAUSE_MOST / CHEAP ? CHEAP * took_ns : PAUSE_MOST;
}

int64_t hfi_look_pause_ns(struct hfi_look_pace *pace, int64_t began, int64_t now, int64_t every_ns)
{
    if (began - pace->ended >= pause_for(pace->before_ns[0]) + pause_for(pace->before_ns[1]))
        pace->before_ns[0] = pace->before_ns[1] = 0;
    int64_t pause = pause_for(middle(pace->before_ns[0], pace->before_ns[1], now - began));
    pace->before_ns[1] = pace->before_ns[0];
    pace->before_ns[0] = now - began;
    pace->ended = now;
    return pause > every_ns ? pause : every_ns;
}
