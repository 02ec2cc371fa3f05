/* SPDX-License-Identifier: MIT */
/* family.h - the processes that descend from one, whatever group or session they have gone to: found in /proc, told by
 * their pidfds, so that no stranger with a number that came again is. */
#ifndef HOLDFAST_TOOL_FAMILY_H
#define HOLDFAST_TOOL_FAMILY_H

#include <stdbool.h>
#include <sys/types.h>

struct refusal { /* of those whom we may not signal: how many, and the first of them */
    int   count;
    pid_t pid;
    uid_t uid;
};

/* Who descends from this process now is none of any family, nor what they start, as long as they live. */
void family_begin(void);
/* Who of the living descendants of `ancestor` may not be signalled by us. */
void family_ask(pid_t ancestor, struct refusal *refused);
/* KILL to all of them, and to those that they start meanwhile; to the process group too (0: none). True: they are dead then,
 * but for those that refused, and for one that the kernel keeps longer than half a second. False: we gave up after a while,
 * because there were always more, or nobody could be looked for. */
bool family_kill(pid_t ancestor, pid_t group, struct refusal *refused);

/* False: other users' processes are hidden from us (hidepid), or all are. */
bool family_is_visible(void);
/* It was forked and has become no other program since. False where that cannot be told. */
bool family_is_copy(pid_t pid);

#endif
