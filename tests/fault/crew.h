/* SPDX-License-Identifier: MIT */
/* crew.h - a crew: threads of several clients that acquire, hold and release locks while a fault is at work, and the
 * oracle that judges the sections that they recorded. */
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
        overlaps_only; /* replies were corrupted on purpose: a fence may have a wrong digit, and any status may come */
    bool fences_only; /* data was lost on purpose: two sections may overlap, but fences have to order them */
};

struct hft_crew_result {
    long acquired, timeouts, unavailable, lost, unknown;
    int64_t longest_ns; /* an acquire that came through */
};

struct hft_crew *hft_crew_start(struct hft_run *run, const struct hft_crew_plan *plan);
long hft_crew_acquired(struct hft_crew *crew);
void hft_crew_stop(struct hft_crew *crew); /* Its threads have ended; its clients still pay what they owe. */
/* Ends the threads, closes the clients and judges overlaps, fences and unexpected answers. Adds a note to the run. */
struct hft_crew_result hft_crew_end(struct hft_crew *crew);

#endif
