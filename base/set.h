/* SPDX-License-Identifier: MIT */
/* set.h - things that are found by what they are equal to: ck_hs with the program's allocator. The caller serialises. */
#ifndef HFI_SET_H
#define HFI_SET_H

#include <ck_hs.h>
#include <stdbool.h>
#include <stdint.h>

struct hfi_set {
    ck_hs_t table;
};

typedef unsigned long hfi_set_hash(const void *thing, unsigned long seed); /* without using the seed */
typedef bool          hfi_set_same(const void *a, const void *b);

bool  hfi_set_open(struct hfi_set *set, unsigned long capacity, hfi_set_hash *hash, hfi_set_same *same); /* false: no memory */
void  hfi_set_close(struct hfi_set *set); /* the things are their owner's */
void *hfi_set_find(struct hfi_set *set, uint64_t hash, const void *like); /* NULL: none */
bool  hfi_set_add(struct hfi_set *set, uint64_t hash, void *thing);       /* false: no memory, or one is there */
void  hfi_set_remove(struct hfi_set *set, uint64_t hash, const void *thing);

#endif
