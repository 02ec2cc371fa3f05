/* SPDX-License-Identifier: MIT */
/* guard.h - the process between `holdfast run` and its command: it starts the command, and ends it with all that descends
 * from it when the lease is over or we are gone. We end it when the guard is gone; when both are, the kernel does.
 *
 * What each must know of the other is in memory that both share; a byte on the socket between them says: look there. */
#ifndef HOLDFAST_TOOL_GUARD_H
#define HOLDFAST_TOOL_GUARD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How signals were before we changed them, for the command to find them again. */
struct signals_before {
    sigset_t mask;
    struct sigaction actions[_NSIG];
};

enum guard_wish { GUARD_WAIT, GUARD_START, GUARD_GO, GUARD_END };

struct guard_board {
    /* Ours. */
    _Atomic(int64_t) until_ms; /* the command may run until then, a guard_clock_ms */
    _Atomic(int64_t) fence;    /* for START */
    _Atomic(int)     wish;     /* an enum guard_wish; GO: the terminal is the command's, if it may have it */
    /* The guard's. */
    _Atomic(int) pid;     /* the command's, and its process group's; 0: not started */
    _Atomic(int) failure; /* an errno: there is no command */
    _Atomic(int) runs;    /* it is the command by now, no longer the guard's copy */
    _Atomic(int) stopped; /* a signal that has stopped it; for us to take */
    _Atomic(int) code;    /* its exit code; -1: it has not ended. It is not reaped before END */
};

struct guard_job {
    const char *name;
    char      **command;
    bool        keep_url; /* the command finds $HOLDFAST_URL too */
    int         cage;     /* cage.h */
    const struct signals_before *before;
    char *words; /* main's, all of them: what ps and pkill -f see of a process */
    size_t words_size;
};

int64_t guard_clock_ms(void); /* CLOCK_BOOTTIME, in milliseconds */

/* In a process of its own, forked by one that has a single thread. Never returns. */
_Noreturn void guard_run(int socket, struct guard_board *board, const struct guard_job *job);

#endif
