/* SPDX-License-Identifier: MIT */
/* borrowers.h - the borrowed connections of a pool, as the pool sees them. */
#ifndef HFI_BORROWERS_H
#define HFI_BORROWERS_H

#include <stdint.h>

struct hfi_borrowers;
struct hfi_pool_counts;
struct hfi_peer;
struct hfi_polled;

struct hfi_borrowers *hfi_borrowers_new(struct hfi_peer *peer); /* NULL: no memory */
/* Called by the listener before every poll(). Closes connections that have idled or lived too long, keeps
 * min_connections, logs those that are out too long. Never blocks. Returns when it must be called again at the latest;
 * also call it when what is *polled is ready. */
int64_t hfi_borrowers_maintain(struct hfi_borrowers *borrowers, int64_t now_ns, struct hfi_polled *polled);
void hfi_borrowers_count(struct hfi_borrowers *borrowers, struct hfi_pool_counts *counts);
/* After the listener has ended, and after hfi_borrow_end: closes idle connections. */
void hfi_borrowers_close(struct hfi_borrowers *borrowers);
/* After close, when no hfi_borrow is under way any more. A connection that is still out stays its borrower's. NULL is a
 * no-op. */
void hfi_borrowers_free(struct hfi_borrowers *borrowers);
void hfi_borrowers_forked(struct hfi_borrowers *borrowers); /* in a fork child: closes descriptors, nothing else */

#endif
