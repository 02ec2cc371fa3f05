/* SPDX-License-Identifier: MIT */
/* family.h - the descendants of a process, whatever group or session they have moved to: found in /proc, and
 * signalled through their pidfds, so that a stranger with a reused pid is not. */
#ifndef HOLDFAST_TOOL_FAMILY_H
#define HOLDFAST_TOOL_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

struct refusal { /* of the processes that we may not signal: how many, and the first of them */
    int   count;
    pid_t pid;
    uid_t uid;
};

/* The present descendants of this process are of no family, nor is what they start while they live. */
void family_begin(void);
/* Which living descendants of `ancestor` may not be signalled by us. */
void family_ask(pid_t ancestor, struct refusal *refused);
/* KILL to all descendants, and to those that they start meanwhile; to the process group too (0: none). True: all are
 * dead then, except those that refused, and any that the kernel keeps for more than half a second. False: gave up
 * after a while, because more processes kept coming, or because they could not be listed. */
bool family_kill(pid_t ancestor, pid_t group, struct refusal *refused);

/* False: other users' processes are hidden from us (hidepid), or all processes are. */
bool family_is_visible(void);
/* The process was forked and has not exec'd since. False also where that cannot be told. */
bool family_is_copy(pid_t pid);

#endif
