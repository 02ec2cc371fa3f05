/* SPDX-License-Identifier: MIT */
/* turns.h - how many lost lanes may dial at once over a slow link. Pure: the caller passes the time.
 *
 * The handshakes of many lanes at once fill a narrow link for longer than a lease, and a renewal queues up behind them.
 * A far link that is wide does not mind. Which of the two it is, is measured: the reserved lane dials alone, and then two
 * lanes at a time. As long as a dial takes no longer beside others than alone, more may dial at once; else fewer. */
#ifndef HFI_TURNS_H
#define HFI_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_turns { /* of one endpoint; initially zeroed: any number at once */
    int64_t alone_ns; /* what a dial takes by itself; 0: any number may dial */
    int64_t begun_ns; /* when the last dial began */
    int under_way, most;
};

/* The reserved lane has come up over a slow link, by a dial that took so long. */
void hfi_turns_limit(struct hfi_turns *turns, int64_t alone_ns);
/* When another dial may begin: now_ns or before, or else that moment, if no dial ends sooner. */
int64_t hfi_turns_next_ns(struct hfi_turns *turns, int64_t now_ns);
void hfi_turns_begin(struct hfi_turns *turns, int64_t now_ns);
/* A dial that began at begun_ns has ended. One that failed, or hung, ends the limit: its lesson is not about width. */
void hfi_turns_end(struct hfi_turns *turns, bool up, int64_t begun_ns, int64_t now_ns);

#endif
