/* SPDX-License-Identifier: MIT */
/* reset.h - a borrowed connection becomes as good as new, or it turns out that it cannot. */
#ifndef HFI_RESET_H
#define HFI_RESET_H

#include "pool/pool.h"

/* All with one deadline, and without raising SIGPIPE. The socket may be blocking: it is not made to block here. */
bool hfi_reset_ping(struct hfi_pool *pool, int fd, int64_t until_ns);
/* RESET (before Redis 6.2: DISCARD, UNWATCH, ...), then hello as for a new connection. False: throw it away. */
bool hfi_reset(struct hfi_pool *pool, int fd, int64_t until_ns);
/* Nothing has come in that nobody asked for, and the server has not hung up. */
bool hfi_reset_is_quiet(int fd);

#endif
