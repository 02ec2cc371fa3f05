/* SPDX-License-Identifier: MIT */
/*
 * stops.h - at the marks of base/perturb.h, which core/ has in this build, whoever comes by may be stopped for a while: a
 * thread of the program, the watchdog, a reader of replies or messages. When and for how long comes from a random number
 * generator of its own; how often, and at which marks more often than at others, differs from history to history.
 */
#ifndef SIM_STOPS_H
#define SIM_STOPS_H

#include "tests/sim/world.h"

void sim_stops_begin(void); /* a history begins: its seed is known */
void sim_stops_often(void); /* and for long, in this history */
void sim_stops_pause(bool on);
/* For how long threads of this process (NULL: of any) were stopped since then, all together: so much longer than
 * promised all may take. */
int64_t sim_stopped(const struct sim_process *process, int64_t since);

#endif
