/* SPDX-License-Identifier: MIT */
/* set.h - a set of pointers, found by the content that they point to: ck_hs with malloc. The caller serialises. */
#ifndef HFI_SET_H
#define HFI_SET_H

#include <ck_hs.h>
#include <stdbool.h>
#include <stdint.h>

struct hfi_set {
    ck_hs_t table;
};

typedef unsigned long hfi_set_hash(const void *thing, unsigned long seed); /* must ignore the seed */
typedef bool          hfi_set_same(const void *a, const void *b);

/* False: no memory. */
bool  hfi_set_open(struct hfi_set *set, unsigned long capacity, hfi_set_hash *hash, hfi_set_same *same);
void  hfi_set_close(struct hfi_set *set); /* the elements stay their owner's */
void *hfi_set_find(struct hfi_set *set, uint64_t hash, const void *like); /* NULL: none */
bool  hfi_set_add(struct hfi_set *set, uint64_t hash, void *thing);       /* false: no memory, or it has one */
void  hfi_set_remove(struct hfi_set *set, uint64_t hash, const void *thing);

#endif
