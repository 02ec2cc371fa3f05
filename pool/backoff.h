/* SPDX-License-Identifier: MIT */
/* backoff.h - when to dial again. Pure: the caller passes the time. */
#ifndef HFI_BACKOFF_H
#define HFI_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_backoff { /* of one connection */
    int tries;     /* dials since the last useful connection */
    int64_t up_ns; /* when the connection came up; 0: there is none */
    uint64_t rng;
};

struct hfi_losses { /* recent connection losses of one endpoint; initially zeroed */
    int64_t last_ns, lately;
};

enum hfi_lost {
    HFI_LOST_UNUSED, /* the connection never answered */
    HFI_LOST_SERVED, /* the connection has answered */
    HFI_LOST_URGENT  /* answered or not: the renewals' lane must not wait */
};

void hfi_backoff_init(struct hfi_backoff *backoff, uint64_t seed);
/* A dial failed. Returns when the next one is due: at once, then after 50 ms, doubling to 1 s, each +-20 %. */
int64_t hfi_backoff_next_ns(struct hfi_backoff *backoff, int64_t now_ns);
void hfi_backoff_up(struct hfi_backoff *backoff, int64_t now_ns);
/* A connection was lost. Returns when the next dial is due. An UNUSED connection that lasted less than a second counts
 * as one more failed dial. After any other the delay is (n - 1)^2 / 8 us, +-20 %, at most 1 s, where n is the number of
 * losses of the endpoint within about a second. One loss costs nothing, 100 a second cost a millisecond each, and a
 * server that ends every connection it accepts is not dialled in a busy loop. An URGENT connection that lasted a second
 * is dialled again at once. */
int64_t hfi_backoff_lost_ns(struct hfi_backoff *backoff, struct hfi_losses *losses, enum hfi_lost lost, int64_t now_ns);
/* After it: a further delay of 0 to most_ns, at random, if others of the endpoint were lost within about a second too. For
 * connections whose making costs the server much, as by TLS. */
int64_t hfi_backoff_spread_ns(struct hfi_backoff *backoff, const struct hfi_losses *losses, int64_t most_ns);

#endif
