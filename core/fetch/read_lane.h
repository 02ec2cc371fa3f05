/* SPDX-License-Identifier: MIT */
/*
 * read_lane.h - by which lane a value is read. What an acquire or a fill was answered must serve no call that began after the
 * server had said it: the value may have been replaced before. On the lane of the key, the read of such a call is answered behind
 * it, and then it has been dealt with (P4). So a read takes another lane only while no call of this process wants a lease of that
 * key, and no fill is unanswered; and a lane that is connected to the same run of a server, or it would miss what was stored or
 * forgotten. Keys are told apart by a part of their hash.
 */
#ifndef HFI_READ_LANE_H
#define HFI_READ_LANE_H

#include "core/context/context.h"

/* Before an acquire or a fill of that key is listed, and once what it brings can serve nobody any more. */
void hfi_read_lane_claim(hf_client *client, uint64_t hash);
void hfi_read_lane_yield(hf_client *client, uint64_t hash);

/* For a call that has begun, and a read that the server need not track: it tells of changes by the connection of the key. */
struct hfi_lane *hfi_read_lane_choose(hf_client *client, uint64_t hash);

#endif
