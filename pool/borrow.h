/* SPDX-License-Identifier: MIT */
/* borrow.h - connections of one's own for a while, with PgBouncer's manners. */
#ifndef HFI_BORROW_H
#define HFI_BORROW_H

#include "pool/pool.h"

struct hfi_borrowed;
struct redisContext;

/* until_ns: a point; in the past: do not wait (BUSY), but dial (connect_ms) while there may be one more.
 * HF_OK, BUSY, TIMEOUT, UNAVAILABLE, DENIED, PROTOCOL, NOMEM, CLOSED. */
hf_status hfi_borrow(struct hfi_pool *pool, int64_t until_ns, struct hfi_borrowed **borrowed, hf_error *error);
struct redisContext *hfi_borrowed_context(struct hfi_borrowed *borrowed);
void hfi_borrow_return(struct hfi_borrowed *borrowed);  /* checked and reset, or thrown away */
void hfi_borrow_discard(struct hfi_borrowed *borrowed); /* also when the pool is gone */
void hfi_borrow_forked(struct hfi_borrowed *borrowed);  /* in a fork child, instead of either */
/* Whoever waits, and whoever comes from now on, gets CLOSED. hfi_pool_close does it too, but waits for no borrower. */
void hfi_borrow_end(struct hfi_pool *pool);

#endif
