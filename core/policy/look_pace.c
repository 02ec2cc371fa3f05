/* SPDX-License-Identifier: MIT */
/* look_pace.c - see look_pace.h. */
#include "core/policy/look_pace.h"
#include "base/clock.h"

#define CHEAP      100
#define PAUSE_MOST (10000 * HFI_MS)

int64_t hfi_look_pause_ns(int64_t *before_ns, int64_t took_ns, int64_t every_ns)
{
    int64_t took = took_ns < *before_ns ? took_ns : *before_ns;
    int64_t pause = took < PAUSE_MOST / CHEAP ? CHEAP * took : PAUSE_MOST;
    *before_ns = took_ns;
    return pause > every_ns ? pause : every_ns;
}
