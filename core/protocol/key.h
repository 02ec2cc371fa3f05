/* SPDX-License-Identifier: MIT */
/* key.h - the Redis keys of a lock name. Pure. */
#ifndef HFI_KEY_H
#define HFI_KEY_H

#include "core/protocol/name.h"

#include <stdbool.h>

#define HFI_FENCE_KEY "hf:fence"
#define HFI_SINCE_KEY "hf:since" /* of quarantine.lua */
#define HFI_CLOCK_KEY "hf:clock:0" /* of clock_by_key.lua */
#define HFI_READERS   "hf1:shared" /* the value of a lock key while readers have the lock */

#define HFI_LOCK_KEY_MOST 1100 /* bytes: template and lock name */
#define HFI_ELECTION_CHANNEL_MOST (2 * HFI_LOCK_KEY_MOST + 16)
#define HFI_ANY_KEY_MOST  4120 /* bytes: a data key with our prefix and tag */

/* A name and its lock key. Side keys are printed when they are needed (hfi_side_keys_print). */
struct hfi_keys {
    char *lock;    /* the lock key, the name, and where it is numbered the number, each with its NUL */
    const struct hfi_dialect *dialect; /* of the name */
    uint16_t lock_size, name_size, tag_size;
    uint8_t use;   /* enum hfi_use */
    bool numbered; /* the key has braces, but no tag of its own: the smallest number that hashes to the key's slot is the tag */
};
static inline char *hfi_keys_name(const struct hfi_keys *keys)
{
    return keys->lock + keys->lock_size + 1;
}
/* The same text as the name of another use, or of its own. */
static inline struct hfi_name hfi_keys_name_as(const struct hfi_keys *keys, enum hfi_use use)
{
    return hfi_name_of(use, hfi_keys_name(keys), keys->name_size);
}
/* What stands in braces in the side keys, so that they share the lock key's slot (protocol.md). */
const char *hfi_keys_tag(const struct hfi_keys *keys);

struct hfi_side_keys {
    char  *queue, *waiters;
    char  *third; /* HFI_FETCH: absent; HFI_DIALECT: lease; else NULL */
    size_t queue_size, waiters_size, third_size;
    char  *more; /* heap memory for them where `capacity` is too small; else NULL */
    char   capacity[3 * (2 * 520 + 16)];
};

/* Makes the keys of a name; hfi_keys_done frees them. key_template: NULL, or the user's template with one %s; it
 * does not apply to HFI_FETCH. Fails with INVALID (the key would be too long, or lie among our side keys) or NOMEM. */
hf_status hfi_keys_make(const char *key_template, const struct hfi_name *name, struct hfi_keys *keys, hf_error *error);
/* HF_OK if a fetched value may be stored under `key`; INVALID if it lies among our own keys or possible lock keys. */
hf_status hfi_fetch_key_check(const char *key_template, const char *key, size_t size, hf_error *error);
/* Extracts the name from a possible lock key; its text lies in `key`. `key` is a lock key only if the keys made from that
 * name contain it again: the caller checks. False: no client with this template has such a lock key. */
bool hfi_key_name(const char *key_template, const char *key, size_t size, struct hfi_name *name);
void hfi_keys_done(struct hfi_keys *keys);
/* The key whose events tell that the lock may be free; not ended by a NUL. */
const char *hfi_watched_key(const struct hfi_keys *keys, size_t *size);
/* hfi_keys_make in one allocation, *memory: `front` bytes for the caller, then the keys. The caller frees *memory and
 * must not call hfi_keys_done. */
hf_status hfi_keys_make_behind(size_t front, void **memory, const char *key_template, const struct hfi_name *name,
                               struct hfi_keys *keys, hf_error *error);
/* False: no memory. Else hfi_side_keys_done frees them. */
bool hfi_side_keys_print(const struct hfi_keys *keys, struct hfi_side_keys *sides);
void hfi_side_keys_done(struct hfi_side_keys *sides);
/* The channel on which the holders of a HFI_MUTEX announce themselves, with its NUL; returns its size. */
size_t hfi_election_channel(const struct hfi_keys *keys, char out[HFI_ELECTION_CHANNEL_MOST]);
#define HFI_TAG_KEY_MOST  540  /* bytes: a tag with our prefix and braces, and its NUL */
/* The key of a tag's index, with its NUL; returns its size. The tag is as hfi_name_take takes it. */
size_t hfi_tag_key(const struct hfi_name *tag, char out[HFI_TAG_KEY_MOST]);
/* HF_OK, or INVALID with the reason. A NULL template is valid. */
hf_status hfi_template_check(const char *key_template, hf_error *error);

/* How messages speak of it: `lock "NAME"`, and so on. */
#define HFI_TITLE 176
void hfi_keys_title(const struct hfi_keys *keys, char out[HFI_TITLE]);

/* Redis Cluster's hash slot, 0..16383, of a whole key. */
unsigned hfi_key_slot(const char *key, size_t size);

#endif
