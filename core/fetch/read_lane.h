/* SPDX-License-Identifier: MIT */
/*
 * read_lane.h - by which lane a value is read. What an acquire or a fill was answered must serve no call that began after the
 * server had said it: the value may have been replaced before. On the lane of the key, the read of such a call is answered behind
 * it, and then it has been dealt with (P4). So a read takes another lane only while no call of this process wants a lease of that
 * key, and no fill is unanswered. Keys are told apart by a part of their hash.
 */
#ifndef HFI_READ_LANE_H
#define HFI_READ_LANE_H

#include "core/context/context.h"

/* Before an acquire or a fill of that key is listed, and once what it brings can serve nobody any more. */
void hfi_read_lane_claim(hf_client *client, uint64_t hash);
void hfi_read_lane_yield(hf_client *client, uint64_t hash);

/* For a call that has begun. is_tracked: the server is to tell of changes to the connection that reads, the key's. */
struct hfi_lane *hfi_read_lane_choose(hf_client *client, uint64_t hash, bool is_tracked);

#endif
