/* SPDX-License-Identifier: MIT */
/* key.c - see key.h. Calls nothing but the allocator. */
#include "core/key.h"
#include "base/buffer.h"

#include <holdfast/lock.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The part of a key that Redis Cluster hashes: between the first { and the next }, if that is not empty. */
static const char *tag_of(const char *key, size_t size, size_t *tag_size)
{
    const char *open = memchr(key, '{', size);
    if (open == NULL)
        return NULL;
    size_t rest = size - (size_t)(open + 1 - key);
    const char *close = memchr(open + 1, '}', rest);
    if (close == NULL || close == open + 1)
        return NULL;
    *tag_size = (size_t)(close - open - 1);
    return open + 1;
}

/* CRC16-CCITT (XMODEM): polynomial 0x1021, start 0, as the cluster specification wants it. */
unsigned hfi_key_slot(const char *key, size_t size)
{
    size_t tag_size;
    const char *tag = tag_of(key, size, &tag_size);
    if (tag != NULL) {
        key = tag;
        size = tag_size;
    }
    unsigned crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned)(unsigned char)key[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000) != 0 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff;
    }
    return crc & 16383;
}

uint64_t hfi_name_hash(enum hfi_use use, const char *name, size_t size)
{
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)use;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return hash ^ (hash >> 29);
}

/* For keys with braces and no tag: the smallest number that hashes to the same slot serves as one. */
static void number_tag(const char *key, size_t size, char out[12])
{
    unsigned slot = hfi_key_slot(key, size);
    for (unsigned number = 0;; number++) {
        int length = snprintf(out, 12, "%u", number);
        if (hfi_key_slot(out, (size_t)length) == slot)
            return;
    }
}

hf_status hfi_template_check(const char *key_template, hf_error *error)
{
    const char *hint = "write the lock name as one %s, for example \"%s:lock\"";
    if (key_template == NULL)
        return HF_OK;
    const char *at = strstr(key_template, "%s");
    if (at == NULL || strchr(at + 1, '%') != NULL || strchr(key_template, '%') != at)
        return hfi_fail(error, HF_INVALID, hint, "key_template must contain one %%s and no other %%");
    if (strlen(key_template) > 512)
        return hfi_fail(error, HF_INVALID, "512 bytes at most", "key_template is too long");
    return HF_OK;
}

static bool print_lock_key(struct hfi_buffer *out, const char *key_template, enum hfi_use use, const char *name,
                           size_t size)
{
    size_t tag_size;
    char number[12];
    if (use == HFI_MUTEX && key_template != NULL) {
        const char *at = strstr(key_template, "%s");
        return hfi_buffer_append(out, key_template, (size_t)(at - key_template)) &&
               hfi_buffer_append(out, name, size) && hfi_buffer_append(out, at + 2, strlen(at + 2));
    }
    const char *prefix = use == HFI_FETCH ? "hf:fetch:" : "hf:";
    if (!hfi_buffer_append(out, prefix, strlen(prefix)))
        return false;
    if (tag_of(name, size, &tag_size) != NULL)
        return hfi_buffer_append(out, ":", 1) && hfi_buffer_append(out, name, size);
    if (memchr(name, '{', size) == NULL && memchr(name, '}', size) == NULL)
        return hfi_buffer_append(out, "{", 1) && hfi_buffer_append(out, name, size) && hfi_buffer_append(out, "}", 1);
    number_tag(name, size, number);
    return hfi_buffer_print(out, "{%s}:", number) && hfi_buffer_append(out, name, size);
}

/* A side key: its kind, the tag that keeps it in the lock key's slot, the whole lock key. */
static bool print_side_key(struct hfi_buffer *out, const char *kind, const char *lock, size_t lock_size)
{
    char number[12];
    size_t tag_size;
    const char *tag = tag_of(lock, lock_size, &tag_size);
    if (tag == NULL && (memchr(lock, '{', lock_size) != NULL || memchr(lock, '}', lock_size) != NULL)) {
        number_tag(lock, lock_size, number);
        tag = number;
        tag_size = strlen(number);
    } else if (tag == NULL) {
        tag = lock;
        tag_size = lock_size;
    }
    return hfi_buffer_print(out, "hf:%s:{", kind) && hfi_buffer_append(out, tag, tag_size) &&
           hfi_buffer_append(out, "}:", 2) && hfi_buffer_append(out, lock, lock_size);
}

static bool starts(const char *key, size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(key, with, strlen(with)) == 0;
}

static bool is_side_key(const char *key, size_t size)
{
    return starts(key, size, "hf:queue:") || starts(key, size, "hf:wait:") || starts(key, size, "hf:absent:") ||
           starts(key, size, HFI_FENCE_KEY) || starts(key, size, "hf:fetch:") || starts(key, size, "hf:c:");
}

/* Where the locks of this page have their keys; a fetched value there would be taken for a token, and a token served. */
static bool is_lock_key(const char *key, size_t size)
{
    return starts(key, size, "hf:{") || starts(key, size, "hf::");
}

bool hfi_key_name(const char *key_template, const char *key, size_t size, enum hfi_use *use, const char **name,
                  size_t *name_size)
{
    const char *end = key + size, *close;
    *use = starts(key, size, "hf:fetch:") ? HFI_FETCH : HFI_MUTEX;
    if (*use == HFI_MUTEX && key_template != NULL) {
        size_t before = (size_t)(strstr(key_template, "%s") - key_template), behind = strlen(key_template) - before - 2;
        if (size <= before + behind)
            return false;
        *name = key + before;
        end -= behind;
    } else {
        const char *prefix = *use == HFI_FETCH ? "hf:fetch:" : "hf:";
        if (size <= strlen(prefix) || !starts(key, size, prefix))
            return false;
        *name = key + strlen(prefix);
        if (**name == ':') { /* it has a tag of its own */
            (*name)++;
        } else if (end[-1] == '}' && (close = memchr(*name, '}', (size_t)(end - *name))) == end - 1) {
            (*name)++;
            end--;
        } else { /* a number for a tag */
            close = memchr(*name, '}', (size_t)(end - *name));
            *name = close == NULL || end - close < 2 ? end : close + 2;
        }
    }
    *name_size = (size_t)(end - *name);
    return end > *name && *name_size <= HF_NAME_MAX && memchr(*name, 0, *name_size) == NULL;
}

/* Five strings, one after the other in one buffer; remembers where each starts. */
struct pieces {
    struct hfi_buffer text;
    size_t start[5], size[5];
    int count;
    bool failed;
};

static void end_piece(struct pieces *pieces, bool written)
{
    size_t start = pieces->count == 0 ? 0 : pieces->start[pieces->count - 1] + pieces->size[pieces->count - 1] + 1;
    pieces->failed = pieces->failed || !written;
    pieces->start[pieces->count] = start;
    pieces->size[pieces->count] = hfi_buffer_size(&pieces->text) - start;
    pieces->count++;
    pieces->failed = !hfi_buffer_append(&pieces->text, "", 1) || pieces->failed;
}

hf_status hfi_keys_make(const char *key_template, enum hfi_use use, const char *name, size_t name_size,
                        struct hfi_keys *keys, hf_error *error)
{
    struct pieces pieces = {.count = 0};
    struct hfi_buffer lock = {0};
    char quoted[80];
    if (!print_lock_key(&lock, key_template, use, name, name_size)) {
        hfi_buffer_done(&lock);
        return hfi_fail(error, HF_NOMEM, "", "no memory for the keys of a lock");
    }
    const char *key = hfi_buffer_data(&lock);
    size_t size = hfi_buffer_size(&lock);
    bool refused = use == HFI_MUTEX && key_template != NULL && is_side_key(key, size);
    if (refused) {
        hfi_fail(error, HF_INVALID, "choose another name or key_template",
                 "the lock key %s lies where holdfast keeps its own keys", hfi_quote(quoted, sizeof quoted, key, size));
    } else if (use == HFI_FETCH && (is_side_key(name, name_size) || is_lock_key(name, name_size))) {
        refused = true;
        hfi_fail(error, HF_INVALID, "choose another key", "the key %s lies where holdfast keeps its own keys",
                 hfi_quote(quoted, sizeof quoted, name, name_size));
    }
    if (refused) {
        hfi_buffer_done(&lock);
        return HF_INVALID;
    }
    end_piece(&pieces, hfi_buffer_append(&pieces.text, key, size));
    end_piece(&pieces, print_side_key(&pieces.text, "queue", key, size));
    end_piece(&pieces, print_side_key(&pieces.text, "wait", key, size));
    end_piece(&pieces, use != HFI_FETCH || print_side_key(&pieces.text, "absent", key, size));
    end_piece(&pieces, hfi_buffer_append(&pieces.text, name, name_size));
    hfi_buffer_done(&lock);
    if (pieces.failed) {
        hfi_buffer_done(&pieces.text);
        return hfi_fail(error, HF_NOMEM, "", "no memory for the keys of a lock");
    }
    char *at = pieces.text.bytes;
    *keys = (struct hfi_keys){.memory = at,
                              .lock = at + pieces.start[0],
                              .queue = at + pieces.start[1],
                              .waiters = at + pieces.start[2],
                              .absent = use == HFI_FETCH ? at + pieces.start[3] : NULL,
                              .name = at + pieces.start[4],
                              .lock_size = pieces.size[0],
                              .queue_size = pieces.size[1],
                              .waiters_size = pieces.size[2],
                              .absent_size = pieces.size[3],
                              .name_size = pieces.size[4]};
    return HF_OK;
}

void hfi_keys_done(struct hfi_keys *keys)
{
    free(keys->memory);
    *keys = (struct hfi_keys){0};
}
