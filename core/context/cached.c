/* SPDX-License-Identifier: MIT */
/* cached.c - see cached.h. */
#include "core/context/cached.h"
#include "base/perturb.h"

/* The look comes first: an exchange would take the cache line from its owner, though nothing is there. */
void *hfi_cached_take(_Atomic(void *) *slot)
{
    return atomic_load(slot) != NULL ? atomic_exchange(slot, NULL) : NULL;
}

/* `closing` is tested again after the insertion: the slot may have been emptied between the first look and that. */
void *hfi_cached_leave(hf_client *client, _Atomic(void *) *slot, void *memory)
{
    void *none = NULL;
    if (atomic_load(&client->closing) || !atomic_compare_exchange_strong(slot, &none, memory))
        return memory;
    HFI_PERTURB("memory-cached");
    return atomic_load(&client->closing) ? atomic_exchange(slot, NULL) : NULL;
}
