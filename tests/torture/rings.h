/* SPDX-License-Identifier: MIT */
/* rings.h - processes that wait for each other: torture rings. */
#ifndef HFT_RINGS_H
#define HFT_RINGS_H

/* The arguments and the exit status of a main: 1 where a promise was broken. */
int hft_rings(int argc, char **argv);

#endif
