/* SPDX-License-Identifier: MIT */
/*
 * versions.h - which value each page had at the server, and until when, on true time; and whether what a call gives out was
 * there lately enough. Like the oracle it knows nothing of Redis or the library, so a test can tell it a wrong history.
 */
#ifndef SIM_VERSIONS_H
#define SIM_VERSIONS_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_VERSIONS_MOST  16384
#define SIM_VERSIONS_PAGES 2

/* A value's number; or these. */
#define SIM_NO_VALUE  0
#define SIM_NONE_MARK (-1) /* a loader said that there is none, and the server knows */

struct sim_versions {
    void (*violated)(const char *what);
    struct sim_version {
        int page;
        int64_t number, since, until; /* the last time that it was there; INT64_MAX: it is */
    } all[SIM_VERSIONS_MOST];
    int count;
    int64_t now[SIM_VERSIONS_PAGES], ends_at[SIM_VERSIONS_PAGES]; /* what is there, and ends by itself then */
};

void sim_versions_begin(struct sim_versions *versions, void (*violated)(const char *what));
/* From now on the page has this value, which ends by itself at that time (INT64_MAX: never), noticed or not. */
void sim_versions_is(struct sim_versions *versions, int page, int64_t number, int64_t ends_at, int64_t now);
/* When this value came last; -1: never. */
int64_t sim_versions_since(const struct sim_versions *versions, int page, int64_t number);
/* A call gives this value out. It was there at some moment not before `least`, and was not replaced by `own`, when a write of
 * this process was executed that had returned before the call began (-1: none had). */
void sim_versions_given(struct sim_versions *versions, int page, int64_t number, const char *source, int64_t least, int64_t own);

#endif
