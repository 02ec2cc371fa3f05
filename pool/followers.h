/* SPDX-License-Identifier: MIT */
/*
 * followers.h - how many threads have begun lately to wait while another one reads for them. A wait that lasts is for a grant, or for a
 * server that is at something long: who sleeps in it keeps nobody from the CPU, and is counted no more, without being woken, nor again
 * when it is. Pure: the caller has the clock.
 */
#ifndef HFI_FOLLOWERS_H
#define HFI_FOLLOWERS_H

#include <stdatomic.h>
#include <stdint.h>

struct hfi_followers { /* zeroed: none */
    _Atomic(uint64_t) periods[2]; /* each HFI_OWN_MOST_NS long: its number, and in the lower half who began in it and waits */
};

uint32_t hfi_followers_join(struct hfi_followers *all, int64_t now_ns); /* returns the period, for hfi_followers_leave */
void     hfi_followers_leave(struct hfi_followers *all, uint32_t period);
int      hfi_followers_count(const struct hfi_followers *all, int64_t now_ns); /* those of this period and the one before */

#endif
