/* SPDX-License-Identifier: MIT */
/* clocks.h - do the clocks of the servers agree? The end of a key is replicated as a date, so a replica that is ahead
 * frees early what it was said to have. Listener only, but for the comparison, which is pure. */
#ifndef HFI_CLOCKS_H
#define HFI_CLOCKS_H

#include "pool/confirmation.h"
#include "pool/peer.h"
#include "pool/topology.h"

#define HFI_CLOCKS_MOST (1 + HFI_REPLICAS_MOST)

struct hfi_clock_look {
    struct hfi_named_host at;
    int64_t ahead_ns; /* of our clock, which begins anywhere, in the middle of the round trip */
    int64_t rtt_ns;
};

/* By how much two of them are apart at least, whatever the round trips hide: the most of all pairs. 0: none is; else
 * *ahead and *behind say which. */
int64_t hfi_clocks_apart_ns(const struct hfi_clock_look *looks, int count, int *ahead, int *behind);

/* A round: each server is asked TIME over a connection of its own, one after the other. Initially zeroed. */
struct hfi_clocks {
    struct hfi_deployment *deployment;
    int count, next, answered;
    struct hfi_clock_look looks[HFI_CLOCKS_MOST]; /* of those that answered; from `next` on, whom to ask */
    struct hfi_endpoint endpoint;
    struct hfi_topology *topology;
    struct hfi_peer peer;
    struct hfi_dial *dial; /* NULL: none is under way */
};

/* True: the round is over (or none has begun). */
bool hfi_clocks_step(struct hfi_clocks *clocks, const struct hfi_topology_ops *ops, int64_t now_ns, struct hfi_poll_set *set);
void hfi_clocks_end(struct hfi_clocks *clocks); /* of the round, before it is over */

#endif
