/* SPDX-License-Identifier: MIT */
/* perturb.h - marks points between two steps where another thread may come in: above all between reading a clock or a
 * flag and the mutex or command that it is read for. In the build of `./dev stress` a thread pauses there at random
 * (tests/support/perturb.c), in the simulator it is stopped (tests/sim/stops.c), and in every other build a mark
 * compiles to nothing. */
#ifndef HFI_PERTURB_H
#define HFI_PERTURB_H

#ifdef HFI_PERTURBED
/* `place` is a literal of seven bytes or more, unique in the tree. errno is preserved. Async-signal-safe. */
void hfi_perturb(const char *place);
#define HFI_PERTURB(place) hfi_perturb(place)
#else
#define HFI_PERTURB(place) ((void)0)
#endif

#endif
