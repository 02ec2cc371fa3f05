/* SPDX-License-Identifier: MIT */
/*
 * near_crowd.h - processes that read and change the same pages, and the memory in which they note what is true.
 *
 * The values of a key are its versions, 1, 2, 3 ... in the order in which the server had them; that there is none for a while is
 * a version too. Who makes one, or runs a loader, has the page's gate until the server's answer is in; where that answer is not
 * known the page goes on under another name, for what is executed late would come in another order. So each version is gone from
 * a known moment on, and every read is judged.
 */
#ifndef HFT_NEAR_CROWD_H
#define HFT_NEAR_CROWD_H

#include "tests/support/server.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { HFT_CROWD = 3, HFT_READERS = 4, HFT_PAGES = 24, HFT_NAMES = 100000, HFT_VERSIONS = 128, HFT_LAG_MS = 300, HFT_NEAR_MS = 5000,
       HFT_SOON_MS = 60 };

struct hft_page_gate {
    _Atomic(int) taken, wanted; /* by loaders, who go first */
    _Atomic(int) name;
    int version;                /* the last one, whether the server has it or not; with the gate */
};

struct hft_near_ledger { /* in memory that all processes share */
    char url[128];
    _Atomic(bool) go, stop;
    _Atomic(int) names, wrong;
    struct hft_page_gate pages[HFT_PAGES];
    _Atomic(int64_t) reads, near, cached, loaded, unjudged, failed;   /* by readers; unjudged: not stored, or the server was away */
    _Atomic(int64_t) sets, forgets, loads, expiries, ends, unsettled; /* by how a version came */
    _Atomic(int64_t) oldest_ns;   /* of what was given out: how long it had been gone */
    _Atomic(int64_t) told, lapses;
    _Atomic(int) least[HFT_CROWD][HFT_NAMES]; /* the version that a process has made, or forgotten up to, itself */
    _Atomic(int64_t) gone_ns[HFT_NAMES][HFT_VERSIONS]; /* since when the server's answer says so; 0: not yet */
};

struct hft_near_ledger *hft_near_ledger_new(void);
/* In a process of its own: waits for `go`, and works until `stop`. */
_Noreturn void hft_near_work(struct hft_near_ledger *ledger, const struct hft_server *server, int process, unsigned seed);

#endif
