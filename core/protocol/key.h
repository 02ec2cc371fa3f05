/* SPDX-License-Identifier: MIT */
/* key.h - the Redis keys of a lock name. Pure. */
#ifndef HFI_KEY_H
#define HFI_KEY_H

#include "base/error.h"

#include <stdbool.h>

enum hfi_use { HFI_MUTEX, HFI_FETCH }; /* what a name locks: itself, or the filling of the data key of that name */

#define HFI_FENCE_KEY "hf:fence"

#define HFI_LOCK_KEY_MOST 1100 /* bytes: a template and a lock's name */
#define HFI_ANY_KEY_MOST  4120 /* a data key in our own tags */

/* What a name is called, here and at the server; each with its NUL. The side keys are printed when they are needed. */
struct hfi_keys {
    char *lock;
    char *name;
    char *tag;  /* what side keys have between braces, to share the lock key's slot (protocol.md) */
    uint16_t lock_size, name_size, tag_size;
    uint8_t use; /* enum hfi_use */
};

struct hfi_side_keys {
    char  *queue, *waiters, *absent; /* absent: HFI_FETCH only, else NULL */
    size_t queue_size, waiters_size, absent_size;
    char  *more; /* where capacity is too small */
    char   capacity[3 * (2 * 520 + 16)];
};

/* key_template: NULL, or the user's with one %s; it applies to HFI_MUTEX only. INVALID (a name or template that would
 * give a key of our own side keys), NOMEM. */
hf_status hfi_keys_make(const char *key_template, enum hfi_use use, const char *name, size_t name_size,
                        struct hfi_keys *keys, hf_error *error);
/* Whether a value may lie there, beside our own keys and those of locks: INVALID. */
hf_status hfi_fetch_key_check(const char *key_template, const char *key, size_t size, hf_error *error);
/* The name whose lock key this may be, a part of `key`; made into keys again it must give the same. False: nobody's who
 * has this template. */
bool hfi_key_name(const char *key_template, const char *key, size_t size, enum hfi_use *use, const char **name,
                  size_t *name_size);
void hfi_keys_done(struct hfi_keys *keys);
/* The same behind the first `front` bytes of *memory, which are the caller's; so is freeing it. */
hf_status hfi_keys_make_behind(size_t front, void **memory, const char *key_template, enum hfi_use use, const char *name,
                               size_t name_size, struct hfi_keys *keys, hf_error *error);
/* False: no memory for them. Else hfi_side_keys_done ends them. */
bool hfi_side_keys_print(const struct hfi_keys *keys, struct hfi_side_keys *sides);
void hfi_side_keys_done(struct hfi_side_keys *sides);
/* INVALID with the reason, or HF_OK. NULL is fine. */
hf_status hfi_template_check(const char *key_template, hf_error *error);

/* Redis Cluster's hash slot, 0..16383, of a whole key. */
unsigned hfi_key_slot(const char *key, size_t size);
/* FNV-1a, to pick lanes and shards. */
uint64_t hfi_name_hash(enum hfi_use use, const char *name, size_t size);

#endif
