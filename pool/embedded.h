/* SPDX-License-Identifier: MIT */
/* embedded.h - embedded: one private redis-server per user (and instance name) on a unix socket. */
#ifndef HFI_EMBEDDED_H
#define HFI_EMBEDDED_H

#include "base/error.h"

struct hfi_embedded; /* this process's share in the server */

/* Joins the running server, or starts one. *path (owned by the share) is its socket. Blocks until until_ns at most.
 * UNAVAILABLE with a hint (redis-server not installed...), DENIED in a setuid program, NOMEM. */
hf_status hfi_embedded_join(const char *name, int64_t until_ns, struct hfi_embedded **share, const char **path,
                            hf_error *error);
/* The server ends when every process with a share has left or ended. A fork child holds its parent's share until it
 * leaves too. NULL is a no-op. */
void hfi_embedded_leave(struct hfi_embedded *share);

#endif
