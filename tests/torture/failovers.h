/* SPDX-License-Identifier: MIT */
/* failovers.h - a primary that sentinels watch is killed, frozen and deposed: torture sentinel. */
#ifndef HFT_FAILOVERS_H
#define HFT_FAILOVERS_H

/* The arguments and the exit status of a main: 1 where a promise was broken. */
int hft_failovers(int argc, char **argv);

#endif
