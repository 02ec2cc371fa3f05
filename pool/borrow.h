/* SPDX-License-Identifier: MIT */
/* borrow.h - lends whole connections for exclusive use, with PgBouncer's semantics. */
#ifndef HFI_BORROW_H
#define HFI_BORROW_H

#include "base/error.h"

#include <stdint.h>

struct hfi_borrowed;
struct hfi_pool;
struct redisContext;

/* Lends a connection, and waits for one until until_ns. If that is past, it does not wait (BUSY), but still dials
 * (connect_ms) while max_connections allows one more.
 * HF_OK, BUSY, TIMEOUT, UNAVAILABLE, DENIED, PROTOCOL, NOMEM, CLOSED. */
hf_status hfi_borrow(struct hfi_pool *pool, int64_t until_ns, struct hfi_borrowed **borrowed, hf_error *error);
struct redisContext *hfi_borrowed_context(struct hfi_borrowed *borrowed);
void hfi_borrow_return(struct hfi_borrowed *borrowed);  /* checks and resets it, or closes it */
void hfi_borrow_discard(struct hfi_borrowed *borrowed); /* closes it; also after the pool is gone */
void hfi_borrow_forked(struct hfi_borrowed *borrowed);  /* in a fork child, instead of either */
/* Waiting and later callers of hfi_borrow get CLOSED. hfi_pool_close does this too, but does not wait for borrowers. */
void hfi_borrow_end(struct hfi_pool *pool);

#endif
