/* SPDX-License-Identifier: MIT */
/* table.h - the locks of a client, by name and by slot. A lock stays in the table while it is referenced; up to 512
 * recently created ones are kept as a cache. */
#ifndef HFI_TABLE_H
#define HFI_TABLE_H

#include "core/context/context.h"
#include "core/protocol/name.h"

struct hfi_lock;

bool hfi_table_open(hf_client *client); /* false: no memory */
void hfi_table_forget(hf_client *client); /* drops the cached ones */
void hfi_table_free(hf_client *client);   /* no reference to any lock is left */

/* A reference to the lock of that name, which is created if there is none. Takes no mutex if it exists. INVALID (the
 * name), NOMEM. */
hf_status hfi_table_get(hf_client *client, const struct hfi_name *name, struct hfi_lock **lock, hf_error *error);
/* The same by key, in that dialect (NULL: none); any bytes may be passed. NULL: no lock or fetch of this client has such a key;
 * or no memory. */
struct hfi_lock *hfi_table_by_key(hf_client *client, const struct hfi_dialect *dialect, const char *key, size_t size);
void hfi_table_ref(struct hfi_lock *lock);
void hfi_table_unref(struct hfi_lock *lock);
/* The caller's `count` references are the only ones, but for the cache's: no lease, no command in flight and no other thread has
 * one. While the caller holds the lock's mutex, others may come to have one, but can do nothing with it. */
bool hfi_table_is_alone(const struct hfi_lock *lock, int count);
/* The lane of the lock of that name, if there is one that more than the cache refers to; else NULL. A lock's mutex may be held. */
struct hfi_lane *hfi_table_lane_in_use(hf_client *client, const struct hfi_name *name);

/* A grant number names its lock's slot, so that a message that carries only a token finds the lock; of a semaphore the home
 * of its grants (hfi_lock_of_grant). Returns a reference, or NULL. The lock may have another token by now. */
struct hfi_lock *hfi_table_by_grant(hf_client *client, uint64_t grant);
uint64_t hfi_table_grant(hf_client *client, const struct hfi_lock *lock); /* a fresh grant number */

/* Calls visit for every lock, and every further grant of a semaphore, with a reference to it and no mutex held. */
void hfi_table_each(hf_client *client, void (*visit)(struct hfi_lock *lock, void *arg), void *arg);

#endif
