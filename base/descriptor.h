/* SPDX-License-Identifier: MIT */
/* descriptor.h - every descriptor of ours passes through here. None is 0, 1 or 2: a program that has closed its
 * standard streams would print into it. All are CLOEXEC. */
#ifndef HFI_DESCRIPTOR_H
#define HFI_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

/* Wrap it around the call that makes one, hfi_descriptor(socket(...)). Returns fd or its duplicate; -1 and errno. */
int hfi_descriptor(int fd);
int hfi_descriptor_event(void); /* a non-blocking eventfd */
/* Make it readable, or no longer; close a descriptor. libc's calls are cancellation points: a canceled thread would end there, tell
 * nobody, and leave what it was about to free. */
void hfi_event_set(int fd);
void hfi_event_clear(int fd);
void hfi_descriptor_close(int fd);
/* Another number with each call: the system gives a closed descriptor's fd to the next one. */
uint32_t hfi_descriptor_number(void);
bool hfi_descriptor_pipe(int ends[2]); /* false: errno */

#endif
