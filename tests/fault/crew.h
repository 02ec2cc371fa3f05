/* SPDX-License-Identifier: MIT */
/* crew.h - threads of several clients that take, hold and release locks while something goes wrong, and the oracle that
 * looks at what they wrote down. */
#ifndef HFT_CREW_H
#define HFT_CREW_H

#include "tests/fault/fault.h"

struct hft_crew;

struct hft_crew_plan {
    const char *url;
    int clients, threads, locks; /* threads: of each client */
    int64_t lease_ms, wait_ms, command_ms;
    int64_t stay_us; /* each holder stays up to that long */
    bool
        overlaps_only; /* replies were spoiled on purpose: a fence may have a wrong digit, and any status may come */
    bool fences_only; /* data was lost on purpose: two may have been in, but fences have to tell them apart */
};

struct hft_crew_result {
    long acquired, timeouts, unavailable, lost, unknown;
    int64_t longest_ns; /* an acquire that came through */
};

struct hft_crew *hft_crew_start(struct hft_run *run, const struct hft_crew_plan *plan);
long hft_crew_acquired(struct hft_crew *crew);
/* Ends them, closes the clients, judges: overlaps, fences, answers that nobody expects. Adds a note. */
struct hft_crew_result hft_crew_end(struct hft_crew *crew);

#endif
