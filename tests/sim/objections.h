/* SPDX-License-Identifier: MIT */
/* objections.h - an oracle, and what it objects: for its own tests. */
#ifndef HFT_SIM_OBJECTIONS_H
#define HFT_SIM_OBJECTIONS_H

#include "tests/sim/oracle.h"

extern struct sim_oracle oracle;
extern int objections;

int begin(void **state);
/* It has objected once, by that promise and with those words. It begins anew. */
void assert_objects(const char *promise, const char *words);

#endif
