/* SPDX-License-Identifier: MIT */
/* cage.h - a cgroup (v2) for the command, where a user who is not root may make one: the kernel kills whoever is in it, also
 * what runs as another user. Root needs none, and a cgroup that is not delegated to him is not his to divide. */
#ifndef HOLDFAST_TOOL_CAGE_H
#define HOLDFAST_TOOL_CAGE_H

#include <stdbool.h>

int  cage_open(void);       /* a descriptor; -1: not here */
void cage_enter(int cage);  /* the calling process, and all that it will start; -1 is a no-op in all of these */
bool cage_kill(int cage);   /* and waits until nobody is in it, half a second at most; false: somebody may be */
void cage_close(int cage);  /* who is still in it goes back to where we are */

#endif
