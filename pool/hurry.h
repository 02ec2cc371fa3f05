/* SPDX-License-Identifier: MIT */
/* hurry.h - who waits for the server while the client is being closed has no more time than close has. */
#ifndef HFI_HURRY_H
#define HFI_HURRY_H

#include "pool/pool_private.h"

/* until_ns, or sooner if close has begun. */
int64_t hfi_hurry_until(const struct hfi_pool *pool, int64_t until_ns);
/* A user's thread sleeps until the descriptor is ready, a signal or close comes, or it is time. False: it is. */
bool hfi_hurry_poll(struct hfi_pool *pool, int fd, short events, int64_t until_ns);

#endif
