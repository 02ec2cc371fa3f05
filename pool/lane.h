/* SPDX-License-Identifier: MIT */
/*
 * lane.h - a shared, pipelined connection: everybody's commands, in the order in which they were listed.
 *
 * PostgreSQL's group commit for Redis: commands are listed without a lock; whoever finds the write side free sends
 * all that is listed; one of the waiting threads reads for everybody and passes the role on when its own wait ends.
 */
#ifndef HFI_LANE_H
#define HFI_LANE_H

#include "base/park.h"
#include "pool/command.h"

struct hfi_lane;

/* Puts the command at the end of the lane. Takes one reference of its own. Never blocks, never calls `done`; any
 * mutex of the caller's may be held, so two listings under one mutex reach the server in that order. */
void hfi_lane_list(struct hfi_lane *lane, struct hfi_command *command);
/* Sends what is listed, or leaves it to the thread that is sending. With no mutex held that a `done` may take. */
void hfi_lane_flush(struct hfi_lane *lane);
/* For a command that nobody waits for: on a lane that is in use it may lie for half a millisecond (the listener's next
 * look), so that this thread's next command takes it along. On an idle one it is sent now. */
void hfi_lane_flush_soon(struct hfi_lane *lane);
/* As hfi_park_wait; meanwhile, unless another thread does, reads the lane's replies (and runs their `done`). */
bool hfi_lane_wait(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns);

bool    hfi_lane_is_up(const struct hfi_lane *lane);
/* Down and not about to come up: the last dial failed and the next one is not due. Commands come back UNSENT. */
bool    hfi_lane_is_down(const struct hfi_lane *lane);
/* Down, and not only because the server was silent. */
bool    hfi_lane_is_unreachable(const struct hfi_lane *lane);
unsigned hfi_lane_cuts(const struct hfi_lane *lane); /* connections so far that ended otherwise than by silence */
int     hfi_lane_index(const struct hfi_lane *lane);  /* 0, 1, ...: unique in the pool */
int64_t hfi_lane_rtt_ns(const struct hfi_lane *lane); /* smoothed; 0 before the first reply */
/* Since when the oldest sent command waits for its answer; HFI_NEVER: none does. */
int64_t hfi_lane_waits_since_ns(const struct hfi_lane *lane);

#endif
