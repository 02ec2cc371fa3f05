/* SPDX-License-Identifier: MIT */
/* turns.h - how many lost lanes dial at once over a slow link. Pure: the caller passes the time.
 *
 * The handshakes of many lanes at once fill a narrow link for longer than a lease, and a renewal queues up behind them.
 * A far link that is wide does not mind. Each time that lanes come back it is measured which of the two the link is: two
 * lanes dial at once, one more for each dial beside others that took no longer than the shortest one (within a quarter),
 * one fewer for each that did, down to two. */
#ifndef HFI_TURNS_H
#define HFI_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_turns { /* of one endpoint; initially zeroed */
    int64_t best_ns;            /* the shortest dial since the lanes began to come back; 0: none yet */
    int64_t begun_ns, ended_ns; /* when the last dial began, when the last one ended */
    int under_way, most;
};

/* Returns when another dial may begin, over a link with round trips of road_ns: now_ns, or the time after which the last
 * one is considered to hang, if none ends before. */
int64_t hfi_turns_next_ns(const struct hfi_turns *turns, int64_t road_ns, int64_t now_ns);
void hfi_turns_begin(struct hfi_turns *turns, int64_t now_ns);
/* A dial that began at begun_ns has ended. `whole`: it came up, by as many round trips as those it is compared with. */
void hfi_turns_end(struct hfi_turns *turns, bool whole, int64_t begun_ns, int64_t now_ns);

#endif
