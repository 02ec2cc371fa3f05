/* SPDX-License-Identifier: MIT */
/* store.h - the Redis that holders write to: it refuses a fence lower than the highest it has seen. Beside the fence
 * each write has the holder's turn, a number that the holder took inside its section: the turns, not the fences,
 * show the true order. */
#ifndef HFT_STORE_H
#define HFT_STORE_H

#include "tests/support/server.h"

#include <stdint.h>

enum hft_written {
    HFT_WRITTEN = 0,       /* by the latest holder */
    HFT_STALE_REFUSED = 1, /* a later holder had written */
    HFT_STALE_WRITTEN = 2, /* the accident that fences are there for */
    HFT_LATEST_REFUSED = 3 /* the latest holder's fence was lower than an earlier one's */
};

struct hft_store {
    redisContext *context;
};

void hft_store_open(struct hft_store *store, const char *socket); /* or ends the process */
int64_t hft_store_take_turn(struct hft_store *store, int lock);
enum hft_written hft_store_write(struct hft_store *store, int lock, int64_t fence, int64_t turn);

#endif
