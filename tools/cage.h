/* SPDX-License-Identifier: MIT */
/* cage.h - a cgroup (v2) for the command, where a user other than root may create one: the kernel kills every process
 * in it, also one that runs as another user. Root needs none, and may not divide a cgroup that is not delegated. */
#ifndef HOLDFAST_TOOL_CAGE_H
#define HOLDFAST_TOOL_CAGE_H

#include <stdbool.h>

int  cage_open(void);       /* a descriptor; -1: not possible here */
void cage_enter(int cage);  /* the calling process, with all that it will start; -1 is a no-op in all of these */
bool cage_kill(int cage);   /* and waits until it is empty, half a second at most; false: it may not be */
void cage_close(int cage);  /* processes still in it are moved back to our cgroup */

#endif
