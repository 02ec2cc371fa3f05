/* SPDX-License-Identifier: MIT */
/* guard.h - the process between `holdfast run` and its command: it starts the command, and kills it with all its
 * descendants when the lease is over or holdfast is gone. When the guard is gone, holdfast kills them; when both
 * are gone, the kernel does.
 *
 * The two share a board in memory; a byte on the socket between them means: read the board. */
#ifndef HOLDFAST_TOOL_GUARD_H
#define HOLDFAST_TOOL_GUARD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The signal state as it was before we changed it, to be restored for the command. */
struct signals_before {
    sigset_t mask;
    struct sigaction actions[_NSIG];
};

enum guard_wish { GUARD_WAIT, GUARD_START, GUARD_GO, GUARD_END };

struct guard_board {
    /* Written by holdfast. */
    _Atomic(int64_t) until_ms; /* the command may run until then, a guard_clock_ms */
    _Atomic(int64_t) fence;    /* for START */
    _Atomic(int)     wish;     /* an enum guard_wish; GO: the command has the terminal, if it may have it */
    /* Written by the guard. */
    _Atomic(int) pid;     /* the command's, and its process group's; 0: not started */
    _Atomic(int) failure; /* an errno: there is no command */
    _Atomic(int) runs;    /* the guard's child has exec'd and is the command */
    _Atomic(int) stopped; /* the signal that has stopped the command; holdfast resets it */
    _Atomic(int) signal;  /* that ended the command; 0: none did. Written before code */
    _Atomic(int) code;    /* the command's exit code; -1: it has not ended. It is not reaped before END */
};

struct guard_job {
    const char *name;
    char      **command;
    bool        keep_url; /* $HOLDFAST_URL stays in the command's environment */
    int         cage;     /* cage.h */
    const struct signals_before *before;
    char *words; /* main's command line, all of it: what ps and pkill -f see of a process */
    size_t words_size;
};

int64_t guard_clock_ms(void); /* CLOCK_BOOTTIME, in milliseconds */

/* Runs in a process of its own, forked by a single-threaded one. Never returns. */
_Noreturn void guard_run(int socket, struct guard_board *board, const struct guard_job *job);

#endif
