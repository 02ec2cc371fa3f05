/* SPDX-License-Identifier: MIT */
/*
 * pace.h - do the followers of a crowd sleep, or look for their wake-ups? Which of it is faster depends on where the kernel puts a
 * thread that wakes up: beside the one that woke it, or on the server's CPU. No cost that a thread can measure says that. So both
 * ways are tried by turns, and how many waits each lets through is compared. Pure: the caller has the clock.
 */
#ifndef HFI_PACE_H
#define HFI_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct hfi_pace { /* zeroed: they sleep, and to look is tried next */
    _Atomic(int64_t) turn_ends_ns; /* HFI_NEVER: a thread is ending it, and alone has what is not atomic */
    _Atomic(int64_t) noted_ns;     /* when a follower last began to wait */
    _Atomic(int)     waits;        /* that began in this turn */
    _Atomic(bool)    is_void;      /* for a while in it no follower began to wait */
    _Atomic(bool)    looks;        /* in this turn */
    bool             usual;        /* what was faster */
    int              wins;         /* of the other way: trials won, less those lost */
    int              left;         /* usual turns till the other way is tried, */
    int              gap;          /* of so many */
    int64_t          began_ns;     /* this turn */
    int64_t          usual_ns;     /* a wait, in the last usual turn, */
    int64_t          fast_ns;      /* and in the faster way, when the two were compared last; 0: never */
};

/* A thread begins to wait where others do, */
static inline void hfi_pace_count(struct hfi_pace *pace)
{
    (void)atomic_fetch_add(&pace->waits, 1);
}

void hfi_pace_note(struct hfi_pace *pace, int64_t now_ns, int followers); /* and follows, as one of so many. */

static inline bool hfi_pace_looks(const struct hfi_pace *pace)
{
    return atomic_load(&pace->looks);
}

#endif
