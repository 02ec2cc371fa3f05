/* SPDX-License-Identifier: MIT */
/* look_pace.h - how often all locks of a client are looked at, in search of waits that are part of a ring. Pure. */
#ifndef HFI_LOOK_PACE_H
#define HFI_LOOK_PACE_H

#include <stdint.h>

/* The pause after a look that used so much CPU time: `every_ns` at least, and so long that looks use no more than a hundredth of a
 * CPU; ten seconds after one that used more than 100 ms. */
int64_t hfi_look_pause_ns(int64_t used_ns, int64_t every_ns);

#endif
