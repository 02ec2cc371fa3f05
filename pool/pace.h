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
    int              wins;         /* turns that spoke for another way, less those that did not */
    int              left;         /* usual turns, void ones aside, till the other way has one, */
    int              gap;          /* of so many */
    int64_t          began_ns;     /* this turn */
    int64_t          usual_ns;     /* a wait, in the last usual turn; 0: not known */
};

void hfi_pace_count(struct hfi_pace *pace); /* a thread begins to wait where others do, */
void hfi_pace_note(struct hfi_pace *pace, int64_t now_ns, int followers); /* and follows, as one of so many */
bool hfi_pace_looks(const struct hfi_pace *pace);

#endif
