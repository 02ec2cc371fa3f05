/* SPDX-License-Identifier: MIT */
/*
 * crowd.h - how many threads of a client wait for replies at once, and over how many lanes they are spread by that.
 * A thread that has a connection to itself reads its own replies: nobody wakes it, and it wakes nobody. Where threads are more
 * than connections, or need not be woken, one connection is cheaper than several: one send and one receive serve many threads.
 * With very many threads one batch is long enough for the server to work at another meanwhile. Pure, but for the counts.
 */
#ifndef HFI_CROWD_H
#define HFI_CROWD_H

#include <stdatomic.h>
#include <stdbool.h>

#define HFI_CROWDS 2 /* those at lock lanes, and at value lanes */

struct hfi_crowd { /* zeroed: nobody has ever waited */
    _Atomic(int) waiting; /* threads that wait for a reply on such a lane now */
    _Atomic(int) usual;   /* x 256: as many of late, with the one that calls; soon more, slowly fewer */
};

struct hfi_crowd_seat { /* a lane */
    bool is_up;
    bool is_cold; /* it would be, after a dial */
    int threads;  /* that wait for its replies */
};

/* A thread is about to ask: returns over how many of the lanes, 1 or more, threads are spread now. `looks`: who reads on the
 * first one looks for replies, and does not sleep now. Then nobody has to be woken, and a few share it, too: a batch costs the server
 * one turn (`bench curves threads`). */
int hfi_crowd_lanes(struct hfi_crowd *crowd, int lanes, bool looks);
bool hfi_crowd_has_others(const struct hfi_crowd *crowd); /* more than one thread has waited of late */
/* Which lane it takes: of the first `spread` the one that fewest threads wait for, best one that is up, best the one that this
 * thread took last. While none of them is up or cold, another that is; -1: there is none. */
int hfi_crowd_choose(const struct hfi_crowd_seat *seats, int count, int spread, int last);

#endif
