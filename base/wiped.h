/* SPDX-License-Identifier: MIT */
/* wiped.h - 64-bit words that read 0 in a fork child (MADV_WIPEONFORK): what the parent owns, the child does not. */
#ifndef HFI_WIPED_H
#define HFI_WIPED_H

#include <stdatomic.h>
#include <stdint.h>

struct hfi_wiped; /* a growing set of pages; safe from any number of threads */

struct hfi_wiped *hfi_wiped_new(void); /* NULL: no memory */
void hfi_wiped_free(struct hfi_wiped *words); /* frees all its words too; NULL is a no-op */
_Atomic(int64_t) *hfi_wiped_take(struct hfi_wiped *words); /* a word that is 0; NULL: no memory */
void hfi_wiped_give(struct hfi_wiped *words, _Atomic(int64_t) *word); /* returns a word for reuse */

#endif
