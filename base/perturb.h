/* SPDX-License-Identifier: MIT */
/* perturb.h - marks the places between two steps where another thread may come in: above all between a clock or a flag
 * that is read and the mutex or command that it is read for. In the build of `./dev stress` a thread dawdles there by
 * chance (tests/stress/perturb.c), in the simulator it is stopped (tests/sim/stops.c), and in every other build a mark is
 * nothing at all. */
#ifndef HFI_PERTURB_H
#define HFI_PERTURB_H

#ifdef HFI_PERTURBED
/* `place` is a literal of seven bytes or more, unique in the tree. errno stays as it is. Async-signal-safe. */
void hfi_perturb(const char *place);
#define HFI_PERTURB(place) hfi_perturb(place)
#else
#define HFI_PERTURB(place) ((void)0)
#endif

#endif
