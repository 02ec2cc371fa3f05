/* SPDX-License-Identifier: MIT */
/* backoff.h - when to dial again. Pure: the caller says what time it is. */
#ifndef HFI_BACKOFF_H
#define HFI_BACKOFF_H

#include <stdint.h>

struct hfi_backoff {
    int tries;     /* dials since the last connection that lasted */
    int64_t up_ns; /* since when there is a connection; 0: there is none */
    uint64_t dice;
};

void hfi_backoff_init(struct hfi_backoff *backoff, uint64_t seed);
/* A connection was lost, or a dial failed: when the next dial is due. At once, then 50 ms, doubling to 1 s, each
 * +-20 %. A connection that lasted a second starts the row anew; a shorter one goes on with it, unless it has served:
 * then the next dial is due after no more than the first 50 ms. */
int64_t hfi_backoff_next_ns(struct hfi_backoff *backoff, int64_t now_ns);
void hfi_backoff_up(struct hfi_backoff *backoff, int64_t now_ns);
void hfi_backoff_served(struct hfi_backoff *backoff);

#endif
