/* SPDX-License-Identifier: MIT */
/*
 * entry_stand.h - one entry on a test stand: the test gives it events, and its decisions come back as words.
 *
 * native wait try (a ! behind them: with a fresh token) re-check renew more floor give-back close end watch unwatch
 * explain-late at-risk:REASON safe-again lost:REASON call:NAME, then NAME=lease, NAME=value or NAME=STATUS of each
 * thread that is woken.
 */
#ifndef HFT_ENTRY_STAND_H
#define HFT_ENTRY_STAND_H

#include "core/policy/entry.h"

#define HFT_FENCE (INT64_C(3700000000000000000) / 2048 * 2048) /* where the counter of the stand begins */

struct hft_thread {
    struct hfi_waiter waiter;
    const char *name;
};

struct hft_stand {
    struct hfi_entry_rules rules;
    struct hfi_entry entry;
    int64_t now, rtt;
    int64_t sent_at; /* the stamp of the last renewal */
    int64_t counter;  /* the last block of fences given out */
    int64_t asked_at; /* stamp of the last acquire or re-check */
    struct hfi_acquire_params asking; /* of the last re-check */
    char did[512];
};

void hft_stand_init(struct hft_stand *stand);
/* A waiting thread with a lease of 10 s and a stop of 1 s. */
struct hft_thread hft_thread(const char *name);
struct hft_thread hft_try(const char *name);

const char *hft_arrive(struct hft_stand *stand, struct hft_thread *thread);
const char *hft_leave(struct hft_stand *stand, struct hft_thread *thread);
const char *hft_come(struct hft_stand *stand, struct hft_thread *thread); /* a thread that was called */
/* The answer to an acquire. sent_at 0: the stamp of the last acquire; fence 0 of a grant: a good block from the
 * counter. */
const char *hft_answer(struct hft_stand *stand, struct hfi_answer answer);
const char *hft_handed(struct hft_stand *stand, int64_t echo); /* the grant message, with a good block */
const char *hft_handed_fence(struct hft_stand *stand, int64_t echo, int64_t fence, bool good);
const char *hft_fences(struct hft_stand *stand, int64_t first, int64_t count, bool good);
const char *hft_no_counter(struct hft_stand *stand);
const char *hft_wanted(struct hft_stand *stand);
const char *hft_wanted_beside(struct hft_stand *stand);
const char *hft_unwanted(struct hft_stand *stand, int64_t sent_at);
const char *hft_doubted(struct hft_stand *stand); /* "held" at the end: the token may stand for what is held */
const char *hft_missed(struct hft_stand *stand);
const char *hft_nudged(struct hft_stand *stand);
/* "refused: " before the words if the end had passed. */
const char *hft_release(struct hft_stand *stand, bool quietly);
const char *hft_filled(struct hft_stand *stand, bool give_it_back);
const char *hft_renewed(struct hft_stand *stand, int64_t sent_at);
const char *hft_lost(struct hft_stand *stand, hf_reason reason);
const char *hft_refuse_all(struct hft_stand *stand, hf_status status);
const char *hft_look(struct hft_stand *stand);
/* Moves the clock to the next point to look at, and looks. */
const char *hft_look_next(struct hft_stand *stand);
void hft_pass_ms(struct hft_stand *stand, int64_t ms);

/* Arrived, asked natively, granted: `thread` holds. */
void hft_hold(struct hft_stand *stand, struct hft_thread *thread);
/* A thread arrives, finds the lock busy and is queued at `position` behind a holder of this process. */
void hft_queue(struct hft_stand *stand, struct hft_thread *thread, int64_t position);

#endif
