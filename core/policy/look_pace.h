/* SPDX-License-Identifier: MIT */
/* look_pace.h - how often all locks of a client are looked at, in search of waits that are part of a ring. Pure. */
#ifndef HFI_LOOK_PACE_H
#define HFI_LOOK_PACE_H

#include <stdint.h>

struct hfi_look_pace { /* zeros: nothing was looked at */
    int64_t before_ns[2]; /* what the last two looks took */
};

/* The pause after a look that took so long. Looks take a hundredth of a CPU, however many locks there are; but `every_ns` is waited at
 * least, and ten seconds at most. What one look took may be the time for which its thread got no CPU, so the middle one of the last
 * three counts: of three, one dear look is free. */
int64_t hfi_look_pause_ns(struct hfi_look_pace *pace, int64_t took_ns, int64_t every_ns);

#endif
