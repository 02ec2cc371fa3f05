/* SPDX-License-Identifier: MIT */
/* random.h - unpredictable bytes, and a cheap rng for jitter. */
#ifndef HFI_RANDOM_H
#define HFI_RANDOM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From getrandom. False (and errno) if the kernel has none: then nothing may be granted. */
bool hfi_random(void *bytes, size_t size);

/* Fills *error right after hfi_random was false (errno); `what` needed the bytes, "a client". Returns HF_INTERNAL. */
hf_status hfi_random_fail(hf_error *error, const char *what);

/* As hfi_random, but one word at a time, from a supply that one system call refills with many words. The supply reads
 * as empty in a fork child (MADV_WIPEONFORK), so no word is used in both processes. Any thread. */
struct hfi_random_supply;
struct hfi_random_supply *hfi_random_supply_new(void); /* NULL: no memory */
void hfi_random_supply_free(struct hfi_random_supply *supply); /* NULL is a no-op */
bool hfi_random_word(struct hfi_random_supply *supply, uint64_t *word);

/* A cheap generator for jitter, not for secrets: the next number of the sequence at *state (any value). */
uint64_t hfi_rng_next(uint64_t *state);
/* `value` moved up or down by at most `part` of it (0.1: 10 %). */
int64_t hfi_jitter(uint64_t *state, int64_t value, double part);

#endif
