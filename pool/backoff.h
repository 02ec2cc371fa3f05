/* SPDX-License-Identifier: MIT */
/* backoff.h - when to dial again. Pure: the caller says what time it is. */
#ifndef HFI_BACKOFF_H
#define HFI_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_backoff { /* of one connection */
    int tries;     /* dials since the last connection that was of use */
    int64_t up_ns; /* since when there is a connection; 0: there is none */
    uint64_t rng;
};

struct hfi_losses { /* of one endpoint, zeroed at first: how many of its connections were lost lately */
    int64_t last_ns, lately;
};

enum hfi_lost {
    HFI_LOST_UNUSED, /* before it was of any use */
    HFI_LOST_SERVED, /* it has answered */
    HFI_LOST_URGENT  /* it need not have: its user can least wait */
};

void hfi_backoff_init(struct hfi_backoff *backoff, uint64_t seed);
/* A dial failed: when the next one is due. At once, then 50 ms, doubling to 1 s, each +-20 %. */
int64_t hfi_backoff_next_ns(struct hfi_backoff *backoff, int64_t now_ns);
void hfi_backoff_up(struct hfi_backoff *backoff, int64_t now_ns);
/* A connection was lost: when the next dial is due. One that lasted a second or has served was of use, and what counts is
 * how many of the endpoint's were lost within about a second, n: (n - 1)^2 / 8 us, +-20 %, at most 1 s. So one loss costs
 * nothing, 100 a second cost a millisecond each, and a server that ends all it accepts is not dialled in a busy loop. An
 * urgent one that lasted is free of it. Any other goes on with the row of dials that failed. */
int64_t hfi_backoff_lost_ns(struct hfi_backoff *backoff, struct hfi_losses *losses, enum hfi_lost lost, int64_t now_ns);

#endif
