/* SPDX-License-Identifier: MIT */
/*
 * lane.h - a shared, pipelined connection: the commands of all threads, in the order in which they were listed.
 *
 * Group commit as in PostgreSQL: commands are listed without a lock, and the thread that finds the write role free
 * sends all of them. One of the waiting threads has the read role: it reads for all, and passes the role on when its
 * own wait ends.
 */
#ifndef HFI_LANE_H
#define HFI_LANE_H

#include "base/park.h"
#include "pool/command.h"

struct hfi_lane;

enum hfi_lane_kind {
    HFI_LOCK_LANE,    /* locks; a reply is at most 64 KiB */
    HFI_VALUE_LANE,   /* hf_fetch; a reply is at most max_value_bytes, a longer one is passed over */
    HFI_USER_LANE,    /* users' commands and operators' queries; the same limit */
    HFI_RESERVED_LANE, /* renewals only */
    HFI_SENTINEL_LANE /* questions to a sentinel */
};
/* The number of lanes of a server with `lanes` of each kind, and the reserved one. */
#define HFI_LANES_OF(lanes) (3 * (lanes) + 1)

/* Appends the command to the lane and takes a reference to it. Never blocks, never calls `done`. The caller may hold
 * any mutex of its own, so two commands listed under one mutex reach the server in that order. */
void hfi_lane_list(struct hfi_lane *lane, struct hfi_command *command);
/* Sends all listed commands, or leaves them to a thread that is sending, or about to (hfi_lane_flush_to_wait); or, with commands in
 * flight to a near server (hfi_costs_gathers), to a reader that looks again soon. Call it with no mutex held that a `done` may take. */
void hfi_lane_flush(struct hfi_lane *lane);
/* The same, by a thread that waits on this lane next: where the server has our CPU it may yield once before, or leave its command to a
 * thread that does, so that one `send` has the commands of both. */
void hfi_lane_flush_to_wait(struct hfi_lane *lane);
/* For a command that no thread waits for. On a lane in use it may stay listed for hfi_costs_grace_ns (until the
 * listener looks next), so that this thread's next command takes it along. On an idle lane hfi_lane_flush has it. */
void hfi_lane_flush_soon(struct hfi_lane *lane);
void hfi_lane_flush_posted(struct hfi_lane *lane); /* such a command at once, or by a reader; not left to a thread that only gathers */
/* As hfi_park_wait. Meanwhile reads the lane's replies and runs their `done`, unless another thread does. */
bool hfi_lane_wait(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns);

bool    hfi_lane_is_up(const struct hfi_lane *lane);
/* The lane is closed, or the last dial failed. */
bool    hfi_lane_is_unreachable(const struct hfi_lane *lane);
unsigned hfi_lane_cuts(const struct hfi_lane *lane); /* connections so far that ended for a reason other than silence */
/* The server that it was connected to last refuses TIME to scripts, and perhaps at all (pool/owner.h). */
bool    hfi_lane_clock_by_key(const struct hfi_lane *lane);
int     hfi_lane_index(const struct hfi_lane *lane);  /* 0, 1, ...: unique in the pool */
int64_t hfi_lane_rtt_ns(const struct hfi_lane *lane); /* smoothed; 0 before the first reply */
/* When the oldest unanswered command was sent; HFI_NEVER: there is none. */
int64_t hfi_lane_waits_since_ns(const struct hfi_lane *lane);

#endif
