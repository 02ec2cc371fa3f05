/* SPDX-License-Identifier: MIT */
/* random.h - bytes nobody can guess, and dice for jitter. */
#ifndef HFI_RANDOM_H
#define HFI_RANDOM_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From getrandom; false (and errno) if the kernel has none: then nothing may be granted. */
bool hfi_random(void *bytes, size_t size);

/* Says so, right after it was false (errno); `what` is what they were needed for, "a client". HF_INTERNAL. */
hf_status hfi_random_fail(hf_error *error, const char *what);

/* The same, a word at a time, from a supply that is fetched in bulk: a system call for many words. What is in supply
 * reads as nothing in a fork child (MADV_WIPEONFORK), so no word is used on both sides. Any thread. */
struct hfi_random_supply;
struct hfi_random_supply *hfi_random_supply_new(void); /* NULL: no memory */
void hfi_random_supply_free(struct hfi_random_supply *supply); /* NULL is a no-op */
bool hfi_random_word(struct hfi_random_supply *supply, uint64_t *word);

/* A cheap generator for jitter, not for secrets: next number of the sequence that *state is in (any value). */
uint64_t hfi_rng_next(uint64_t *state);
/* `value` moved by at most `part` (0.1: 10 %) up or down. */
int64_t hfi_jitter(uint64_t *state, int64_t value, double part);

#endif
