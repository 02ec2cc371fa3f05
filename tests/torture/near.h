/* SPDX-License-Identifier: MIT */
/* near.h - values from memory, while all that tells of their changes is broken: torture near. */
#ifndef HFT_NEAR_H
#define HFT_NEAR_H

/* The arguments and the exit status of a main: 1 where a promise was broken. */
int hft_near(int argc, char **argv);

#endif
