/* SPDX-License-Identifier: MIT */
/* oracle.h - judges a history of holders by two promises: one holder at a time, or several that share it, or no more permits
 * than there are; and fences that only rise, but among those that share; those of permits come once. Pure: it knows no library,
 * no server and no clock. */
#ifndef HFT_ORACLE_H
#define HFT_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One holder's section: it knew itself to be the holder at enter_ns, at leave_ns and in between. */
struct hft_interval {
    int64_t asked_ns; /* when it began to wait; the oracle does not look at it */
    int64_t enter_ns, leave_ns;
    int64_t fence;
    int32_t lock;
    int16_t process, thread;
    bool    shared;
    int16_t permits; /* of a semaphore */
};

enum hft_verdict {
    HFT_OVERLAP = 1, /* `later` entered while `earlier` was inside; by = how long both were, in ns */
    HFT_FENCE = 2    /* `later` entered after `earlier` with a fence that is not higher; by = how much too low */
};

struct hft_violation {
    enum hft_verdict verdict;
    struct hft_interval earlier, later;
    int64_t by;
};

typedef void hft_violation_fn(const struct hft_violation *violation, void *arg);

/* The same where each section has permits, of which there are `limit` under each name: HFT_OVERLAP, if more are out, by so many;
 * HFT_FENCE, if two sections have the same. */
size_t hft_oracle_check_permits(struct hft_interval *history, size_t count, int limit, hft_violation_fn *report, void *arg);

/* Sorts the history by lock and time of entry, reports each violation to `report` (unless NULL), returns their
 * number. */
size_t hft_oracle_check(struct hft_interval *history, size_t count, hft_violation_fn *report, void *arg);

/* Of an overlap: how much of it was after the last of the `count` switches to another primary before its end, by when they
 * were published. The switches come in their order. */
int64_t hft_oracle_after_switch(const struct hft_violation *overlap, const int64_t *switched_ns, int count);

struct hft_grants { /* each brings a block of HFT_BLOCK fences; it is dated by the first section in it */
    size_t count;
    size_t falls;    /* below an earlier one */
    int64_t apart_ns; /* the most between one that falls and an earlier one that it is below */
};

#define HFT_BLOCK 2048

/* Sorts the history. */
struct hft_grants hft_oracle_grants(struct hft_interval *history, size_t count);

/* One of those who wait for each other: each has its own lock and waits for that of the next. */
struct hft_player {
    int64_t asked_ns, told_ns; /* its wait */
    enum hft_end { HFT_WENT_ON = 1, HFT_VICTIM, HFT_ELSE } end;
    char said[400]; /* to the victim */
};

/* One of them is the victim, at most bound_ns after the last of them began to wait (*late_ns tells how long), and was told the
 * names of all their locks; the others go on. Returns what is wrong; NULL: nothing. */
const char *hft_oracle_check_ring(const struct hft_player *players, const char *const *locks, int count, int64_t bound_ns,
                                  int64_t *late_ns);

/* At seen_ns a key held the token of a process that has not wanted the lock since unwanted_since_ns (INT64_MAX: it
 * does now). Since well_since_ns nothing kept the process from releasing it, which takes bound_ns at most. Returns
 * by how much the release is late; 0: it is not. */
int64_t hft_oracle_left_behind(int64_t seen_ns, int64_t unwanted_since_ns, int64_t well_since_ns, int64_t bound_ns);

/* A value that was gone at gone_ns (0: it is not) was given to a call that began at began_ns. Returns by how much that is more
 * than bound_ns too late; 0: it is not. */
int64_t hft_oracle_too_old(int64_t began_ns, int64_t gone_ns, int64_t bound_ns);

#endif
