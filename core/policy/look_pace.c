/* SPDX-License-Identifier: MIT */
/* look_pace.c - see look_pace.h. */
#include "core/policy/look_pace.h"
#include "base/clock.h"

#define CHEAP      100
#define PAUSE_MOST (10 * HFI_SECOND)

int64_t hfi_look_pause_ns(int64_t used_ns, int64_t every_ns)
{
    int64_t pause = used_ns < PAUSE_MOST / CHEAP ? CHEAP * used_ns : PAUSE_MOST;
    return pause > every_ns ? pause : every_ns;
}
