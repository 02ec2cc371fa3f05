/* SPDX-License-Identifier: MIT */
/* leases.h - a thousand leases of one process: torture hold, torture loss. */
#ifndef HFT_LEASES_H
#define HFT_LEASES_H

/* The arguments and the exit status of a main: 1 where a promise was broken. */
int hft_leases(int argc, char **argv);

#endif
