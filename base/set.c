/* SPDX-License-Identifier: MIT */
/* set.c - see set.h. */
#include "base/set.h"

#include <stdlib.h>

static void *allocate(size_t size)
{
    return malloc(size);
}

static void deallocate(void *memory, size_t size, bool deferred)
{
    (void)size;
    (void)deferred;
    free(memory);
}

static struct ck_malloc memory = {.malloc = allocate, .free = deallocate};

bool hfi_set_open(struct hfi_set *set, unsigned long capacity, hfi_set_hash *hash, hfi_set_same *same)
{
    return ck_hs_init(&set->table, CK_HS_MODE_OBJECT | CK_HS_MODE_SPMC | CK_HS_MODE_DELETE, hash, same, &memory, capacity, 0);
}

void hfi_set_close(struct hfi_set *set)
{
    ck_hs_destroy(&set->table);
}

void *hfi_set_find(struct hfi_set *set, uint64_t hash, const void *like)
{
    return ck_hs_get(&set->table, (unsigned long)hash, like);
}

bool hfi_set_add(struct hfi_set *set, uint64_t hash, void *thing)
{
    return ck_hs_put(&set->table, (unsigned long)hash, thing);
}

void hfi_set_remove(struct hfi_set *set, uint64_t hash, const void *thing)
{
    (void)ck_hs_remove(&set->table, (unsigned long)hash, thing);
}
