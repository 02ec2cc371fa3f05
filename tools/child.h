/* SPDX-License-Identifier: MIT */
/* child.h - the command that `holdfast run` runs: its process group, its terminal, and a guard that ends it
 * when we cannot. Knows nothing of locks but until when the command may run. */
#ifndef HOLDFAST_TOOL_CHILD_H
#define HOLDFAST_TOOL_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How signals were before we changed them, for the command to find them again. */
struct signals_before {
    sigset_t mask;
    struct sigaction actions[_NSIG];
};

struct child {
    pid_t pid;   /* also its process group; 0: not started, or reaped */
    pid_t guard;
    int   to_guard;
    int   terminal;     /* the controlling terminal, or -1 */
    bool  wants_terminal;
    bool  has_terminal;
    bool  is_ended;     /* code is its exit code; it is not reaped yet */
    int   code;
};

/* Forks the guard. Call while the process has one thread. False: errno. */
bool child_prepare(struct child *child);

/* CLOCK_BOOTTIME, in milliseconds. */
int64_t child_clock_ms(void);

/* Starts the command in a group of its own. It dies with this thread, its group at until_ms at the latest
 * (see child_allow). 0, or an errno: ENOENT and such are about the command. */
int child_start(struct child *child, char **command, char **environment, int64_t until_ms,
                const struct signals_before *before);
/* It may run until then (a child_clock_ms): the guard kills the group at that time, or once we are gone. */
void child_allow(struct child *child, int64_t until_ms);
void child_signal(struct child *child, int signal);

/* After SIGCHLD. Sets is_ended and code; returns the signal that has just stopped the command, or 0. */
int child_look(struct child *child);
/* The terminal to the command, if we are the ones to give it; and back. */
void child_lend_terminal(struct child *child);
void child_take_terminal(struct child *child);

/* Dismisses the guard, reaps it and the command, which has ended or never begun. */
void child_finish(struct child *child);

#endif
