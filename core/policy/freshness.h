/* SPDX-License-Identifier: MIT */
/* freshness.h - what to do with a cached value: serve it, or reload it while it is still served. Pure. */
#ifndef HFI_FRESHNESS_H
#define HFI_FRESHNESS_H

#include <stdbool.h>
#include <stdint.h>

enum hfi_freshness {
    HFI_FRESH,      /* serve                                                    */
    HFI_NEARLY_OLD, /* serve, but a caller that gets the lease reloads early    */
    HFI_OLD         /* past ttl_ms: one caller reloads, the others are served   */
};

/*
 * left_ms: until the key ends at the server, stale_ms included; -1: never.
 * Early refresh is XFetch (Vattani, Chierichetti, Lowenstein 2015): reload when load time x beta x -ln(u) reaches the
 * fresh time that is left, u uniform in (0, 1]. The longer a load takes, the earlier a caller begins. Two callers
 * rarely begin at once.
 */
enum hfi_freshness hfi_freshness(int64_t left_ms, int64_t stale_ms, double beta, int64_t load_ms, double u);

/* The expected load time of this value: that of its last load here; else the mean of this process's loads; else,
 * before any load, a guess that makes one reload a little early, after which the time is known. */
int64_t hfi_freshness_load_ms(int64_t known_ms, int64_t mean_ms, int64_t ttl_ms);
int64_t hfi_freshness_mean_ms(int64_t mean_ms, int64_t took_ms); /* mean with this load; mean_ms 0: no load so far */

/* ttl_ms shortened by jitter x u of it, u uniform in [0, 1): never longer, and at least 1. */
int64_t hfi_freshness_shortened(int64_t ttl_ms, double jitter, double u);

/* Limits the loads without a lease of all threads of a client: HFI_LOCAL_LOADS at once, then HFI_LOCAL_LOADS a second.
 * They are limited because no other process shares their results. Returns the turn of this load; `last` is that of the
 * load before, 0 at first. The load begins at hfi_freshness_local_at of its turn, or at once if that is past. */
#define HFI_LOCAL_LOADS 50
int64_t hfi_freshness_local(int64_t last, int64_t now_ns);
int64_t hfi_freshness_local_at(int64_t turn);

/* Another process loads this value: for 10 ms no thread here need ask whether it still does. The mark holds most of the
 * value's hash, so the mark of another value in the same slot is not taken for it. */
uint64_t hfi_freshness_busy_mark(uint64_t hash, int64_t now_ns);
bool     hfi_freshness_is_busy(uint64_t mark, uint64_t hash, int64_t now_ns);

#endif
