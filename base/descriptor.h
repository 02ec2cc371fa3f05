/* SPDX-License-Identifier: MIT */
/* descriptor.h - where every descriptor of ours comes from. None is 0, 1 or 2: a program that has closed its standard
 * streams would print into it. All are CLOEXEC. */
#ifndef HFI_DESCRIPTOR_H
#define HFI_DESCRIPTOR_H

#include <stdbool.h>

/* Around the call that makes one, "hfi_descriptor(socket(...))": the same, or another number for it; -1 and errno. */
int hfi_descriptor(int fd);
int hfi_descriptor_event(void); /* a non-blocking eventfd */
bool hfi_descriptor_pipe(int ends[2]); /* false: errno */

#endif
