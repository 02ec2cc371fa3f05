/* SPDX-License-Identifier: MIT */
/* embedded.h - embedded: one private redis-server per user (and instance name) on a unix socket. */
#ifndef HFI_EMBEDDED_H
#define HFI_EMBEDDED_H

#include "base/error.h"

struct hfi_embedded; /* this process's share in it */

/* Starts the server, or joins the one that runs, or adopts one whose last client crashed. *path (owned by the share) is
 * its socket. Blocks at most until_ns. UNAVAILABLE with a hint (redis-server not installed...), NOMEM. */
hf_status hfi_embedded_join(const char *name, int64_t until_ns, struct hfi_embedded **share, const char **path,
                            hf_error *error);
/* The last one to leave stops the server. NULL is a no-op. */
void hfi_embedded_leave(struct hfi_embedded *share);
/* In a fork child: forgets without leaving. */
void hfi_embedded_forked(struct hfi_embedded *share);

#endif
