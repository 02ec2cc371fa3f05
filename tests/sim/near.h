/* SPDX-License-Identifier: MIT */
/* near.h - profile near: values that are kept in memory, by near_ms, while others write them and something goes wrong; and how
 * old what calls give out may be (versions.h). */
#ifndef SIM_NEAR_H
#define SIM_NEAR_H

#include "tests/sim/history.h"

struct sim_near { /* as the seed has it */
    bool on;
    enum sim_profile hurt; /* as in that profile; SIM_CALM: nothing is */
    int64_t lag_ms[SIM_PROCESSES + 1]; /* of the process with that number */
    int64_t write_most_ms; /* between two writes of others */
    uint64_t hits;
};
extern struct sim_near sim_near;

void sim_near_draw(void);
void sim_near_begin(void);
int64_t sim_near_lag_ms(const struct sim_process *process);
void sim_near_fetch(struct sim_actor *actor); /* or forgets */

/* What the server tells. */
void sim_near_look(void); /* keys may have changed, or its clock is about to be stepped */
void sim_near_script_ran(const char *script, int page, const struct sim_process *process);

#endif
