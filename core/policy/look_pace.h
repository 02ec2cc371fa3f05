/* SPDX-License-Identifier: MIT */
/* look_pace.h - how often all locks of a client are looked at, in search of waits that are part of a ring. Pure. */
#ifndef HFI_LOOK_PACE_H
#define HFI_LOOK_PACE_H

#include <stdint.h>

/* The pause after a look that took so long. A look takes a hundredth of a CPU at most, however many locks there are; but `every_ns`
 * is waited at least, and ten seconds at most. What one look took may be the time for which its thread got no CPU, so the less of
 * two in a row counts: *before_ns is what the last one took, 0 before the first. */
int64_t hfi_look_pause_ns(int64_t *before_ns, int64_t took_ns, int64_t every_ns);

#endif
