/* SPDX-License-Identifier: MIT */
/* embedded_server.h - starts the process of the private redis-server. embedded.c decides when. */
#ifndef HFI_EMBEDDED_SERVER_H
#define HFI_EMBEDDED_SERVER_H

#include <stdint.h>

#define HFI_EMBEDDED_MEMBERS_FD 3 /* the descriptor number of `members` in the server */

struct hfi_inheritance { /* descriptors that the server inherits, as numbered in this process */
    int members, name, folder;
    int report; /* set by hfi_embedded_spawn */
};

/* Starts the server as a daemon: the direct child exits at once, so the program is left without a child. The server
 * listens on the unix socket `path`, and its log is in `folder`. Returns 0 or an errno; the server may not answer yet.
 * Blocks until until_ns at most. */
int hfi_embedded_spawn(struct hfi_inheritance *ours, const char *folder, const char *path, int64_t until_ns);

#endif
