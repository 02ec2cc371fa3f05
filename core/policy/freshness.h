/* SPDX-License-Identifier: MIT */
/* freshness.h - what to do with a cached value: serve it, or reload it while it is still served. Pure. */
#ifndef HFI_FRESHNESS_H
#define HFI_FRESHNESS_H

#include <stdbool.h>
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

/* How long a load of this value takes: as the last one here did; else as others' of this process do on average; else, where
 * nothing has been loaded yet, a guess that makes one reload a little early, and then it is known. */
int64_t hfi_freshness_load_ms(int64_t known_ms, int64_t mean_ms, int64_t ttl_ms);
int64_t hfi_freshness_mean_ms(int64_t mean_ms, int64_t took_ms); /* of all loads so far and this one; 0: none so far */

/* Loads without a lease, by all threads of a client: HFI_LOCAL_LOADS at once, then as many a second, for nobody else shares
 * their work. `last` is what the load before was given, 0 at first; this one begins at hfi_freshness_local_at of what is
 * returned, or at once if that is past. */
#define HFI_LOCAL_LOADS 50
int64_t hfi_freshness_local(int64_t last, int64_t now_ns);
int64_t hfi_freshness_local_at(int64_t turn);

/* Another process loads this value: for 10 ms nobody here need ask whether it still does. A mark names the value by most of
 * its hash, so that another one's in the same place is no reason to wait. */
uint64_t hfi_freshness_busy_mark(uint64_t hash, int64_t now_ns);
bool     hfi_freshness_is_busy(uint64_t mark, uint64_t hash, int64_t now_ns);

#endif
