/* SPDX-License-Identifier: MIT */
/*
 * stops.h - stops at the marks of base/perturb.h, which core/ has in this build: the thread that passes a mark (a
 * thread of the program, the watchdog, a reader of replies or messages) may be stopped for a while. When and how long
 * comes from a random number generator of its own; how often, and at which marks more often, differs from history to
 * history.
 */
#ifndef SIM_STOPS_H
#define SIM_STOPS_H

#include "tests/sim/world.h"

void sim_stops_begin(void); /* a history begins: its seed is known */
void sim_stops_often(void); /* and for long, in this history */
void sim_stops_pause(bool on);
/* The sum of the stops of this process's threads (NULL: of all processes') since then: every bound is longer by
 * that. */
int64_t sim_stopped(const struct sim_process *process, int64_t since);

#endif
