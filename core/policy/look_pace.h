/* SPDX-License-Identifier: MIT */
/* look_pace.h - how often all locks of a client are looked at, in search of waits that are part of a ring. Pure. */
#ifndef HFI_LOOK_PACE_H
#define HFI_LOOK_PACE_H

#include <stdint.h>

struct hfi_look_pace { /* zeros: nothing was looked at */
    int64_t before_ns[2]; /* what the last two looks took */
    int64_t ended;        /* when the last one did */
};

/* The pause after a look from `began` to `now`: `every_ns` at least, and as long as looks take no more than a hundredth of a CPU; for
 * that ten seconds are enough, whatever a look took. What it took may be the time for which its thread got no CPU, so the middle one
 * of the last three counts: of three, one dear look is free. Looks that were paid for, by a pause for each of them, count no more. */
int64_t hfi_look_pause_ns(struct hfi_look_pace *pace, int64_t began, int64_t now, int64_t every_ns);

#endif
