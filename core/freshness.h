/* SPDX-License-Identifier: MIT */
/* freshness.h - what to do with a cached value: serve it, or reload it while it is still served. Pure. */
#ifndef HFI_FRESHNESS_H
#define HFI_FRESHNESS_H

#include <stdint.h>

enum hfi_freshness {
    HFI_FRESH,      /* serve                                                    */
    HFI_NEARLY_OLD, /* serve, but whoever can have the lease reloads it early   */
    HFI_OLD         /* past ttl_ms: one reloads, the others are served          */
};

/*
 * left_ms: until the key ends at the server, stale_ms included; -1: never.
 * Early refresh is XFetch (Vattani, Chierichetti, Lowenstein 2015): reload when load time x beta x -ln(u) reaches what is
 * left, u uniform in (0, 1]: the longer a load takes, the earlier somebody begins, and rarely two at once.
 */
enum hfi_freshness hfi_freshness(int64_t left_ms, int64_t stale_ms, double beta, int64_t load_ms, double u);

#endif
