/* SPDX-License-Identifier: MIT */
/* key.c - see key.h. Calls nothing but the allocator. */
#include "core/protocol/key.h"
#include "core/protocol/dialect.h"

#include <holdfast/fetch.h>

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

/* CRC16-CCITT (XMODEM): polynomial 0x1021, start 0, as the cluster specification requires. */
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

#define NUMBER 12 /* bytes for one that is a tag, with its NUL */

/* The smallest number that hashes to the key's slot; returns its size. */
static size_t number_tag(const char *key, size_t size, char out[NUMBER])
{
    unsigned slot = hfi_key_slot(key, size);
    for (unsigned number = 0;; number++) {
        int length = snprintf(out, NUMBER, "%u", number);
        if (hfi_key_slot(out, (size_t)length) == slot)
            return (size_t)length;
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

/* The parts of a lock key before and after the name. capacity: the buffer for a `before` that is not the template's. */
struct frame {
    const char *before, *after;
    size_t before_size, after_size;
    char capacity[32];
};

/* A template may not move the keys of data, nor those of semaphores, which no other library knows. */
static bool is_templated(enum hfi_use use)
{
    return use != HFI_FETCH && use != HFI_SEMAPHORE;
}

static const char *prefix_of(enum hfi_use use)
{
    return use == HFI_FETCH ? "hf:fetch:" : use == HFI_SEMAPHORE ? "hf:sem:" : "hf:";
}

/* Without a template: the prefix, and braces around the name, so that it has a tag. */
static void frame_with(const char *prefix, const struct hfi_name *name, struct frame *frame)
{
    size_t tag_size;
    char number[NUMBER];
    frame->before = frame->capacity;
    frame->after = "";
    if (tag_of(name->text, name->size, &tag_size) != NULL) {
        (void)snprintf(frame->capacity, sizeof frame->capacity, "%s:", prefix);
    } else if (memchr(name->text, '{', name->size) == NULL && memchr(name->text, '}', name->size) == NULL) {
        (void)snprintf(frame->capacity, sizeof frame->capacity, "%s{", prefix);
        frame->after = "}";
    } else {
        (void)number_tag(name->text, name->size, number);
        (void)snprintf(frame->capacity, sizeof frame->capacity, "%s{%s}:", prefix, number);
    }
    frame->before_size = strlen(frame->capacity);
    frame->after_size = strlen(frame->after);
}

static void frame_of(const char *key_template, const struct hfi_name *name, struct frame *frame)
{
    if (!is_templated(name->use) || key_template == NULL) {
        frame_with(prefix_of(name->use), name, frame);
        return;
    }
    const char *at = strstr(key_template, "%s");
    frame->before = key_template;
    frame->before_size = (size_t)(at - key_template);
    frame->after = at + 2;
    frame->after_size = strlen(at + 2);
}

static char *put(char *at, const char *text, size_t size)
{
    memcpy(at, text, size);
    return at + size;
}

const char *hfi_keys_tag(const struct hfi_keys *keys)
{
    if (keys->numbered)
        return hfi_keys_name(keys) + keys->name_size + 1;
    return keys->tag_size == keys->lock_size ? keys->lock : strchr(keys->lock, '{') + 1;
}

/* Prints a side key: its kind, the dialect's side, the tag that keeps it in the lock key's slot, the whole lock key. The side
 * is in front of the brace, where no lock key can have it too. Returns the byte after its NUL. */
static char *print_side_key(char *at, const char *kind, const struct hfi_keys *keys, char **key, size_t *size)
{
    *key = at;
    at = put(at, kind, strlen(kind));
    if (keys->dialect != NULL)
        at = put(at, keys->dialect->side, strlen(keys->dialect->side));
    at = put(at, "{", 1);
    at = put(at, hfi_keys_tag(keys), keys->tag_size);
    at = put(at, "}:", 2);
    at = put(at, keys->lock, keys->lock_size);
    *size = (size_t)(at - *key);
    *at = 0;
    return at + 1;
}

bool hfi_side_keys_print(const struct hfi_keys *keys, struct hfi_side_keys *sides)
{
    size_t size = 3 * (strlen("hf:absent:{}:") + sizeof keys->dialect->side + keys->tag_size + keys->lock_size + 1);
    sides->more = size > sizeof sides->capacity ? malloc(size) : NULL;
    if (size > sizeof sides->capacity && sides->more == NULL)
        return false;
    char *at = sides->more != NULL ? sides->more : sides->capacity;
    at = print_side_key(at, "hf:queue:", keys, &sides->queue, &sides->queue_size);
    at = print_side_key(at, "hf:wait:", keys, &sides->waiters, &sides->waiters_size);
    sides->third = NULL;
    if (keys->use == HFI_FETCH || keys->use == HFI_DIALECT)
        (void)print_side_key(at, keys->use == HFI_FETCH ? "hf:absent:" : "hf:lease:", keys, &sides->third, &sides->third_size);
    return true;
}

void hfi_side_keys_done(struct hfi_side_keys *sides)
{
    free(sides->more);
}

const char *hfi_watched_key(const struct hfi_keys *keys, size_t *size)
{
    bool is_member = keys->dialect != NULL && keys->dialect->is_member;
    *size = is_member ? strlen(keys->dialect->parameter) : keys->lock_size;
    return is_member ? keys->dialect->parameter : keys->lock;
}

size_t hfi_election_channel(const struct hfi_keys *keys, char out[HFI_ELECTION_CHANNEL_MOST])
{
    char *channel;
    size_t size;
    (void)print_side_key(out, "hf:e:", keys, &channel, &size);
    return size;
}

_Static_assert(HFI_TAG_KEY_MOST > HF_NAME_MAX + sizeof "hf:tag:{16383}:", "each tag has its key");

size_t hfi_tag_key(const struct hfi_name *tag, char out[HFI_TAG_KEY_MOST])
{
    struct frame frame;
    frame_with("hf:tag:", tag, &frame);
    char *end = put(put(put(out, frame.before, frame.before_size), tag->text, tag->size), frame.after, frame.after_size);
    *end = 0;
    return (size_t)(end - out);
}

static bool starts(const char *key, size_t size, const char *with)
{
    return size >= strlen(with) && memcmp(key, with, strlen(with)) == 0;
}

static bool is_side_key(const char *key, size_t size)
{
    static const char *const kinds[] = {"hf:queue:", "hf:wait:", "hf:absent:", HFI_FENCE_KEY, "hf:fetch:", "hf:c:",
                                        "hf:e:",     /* and what later versions keep: no name becomes invalid with them */
                                        "hf:held:",  "hf:sem:",  "hf:since",   "hf:clock:",   "hf:lease:", "hf:tag:"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        is_one = is_one || starts(key, size, kinds[i]);
    return is_one;
}

/* True if a client with this template, or with none, may have a lock key here. A value stored under a lock key would be
 * read as a token, and a token served as a value. */
static bool is_lock_key(const char *key_template, const char *key, size_t size)
{
    if (starts(key, size, "hf:{") || starts(key, size, "hf::"))
        return true;
    if (key_template == NULL)
        return false;
    const char *behind = strstr(key_template, "%s") + 2;
    size_t before_size = (size_t)(behind - 2 - key_template), behind_size = strlen(behind);
    return size > before_size + behind_size && size - before_size - behind_size <= HF_NAME_MAX &&
           memcmp(key, key_template, before_size) == 0 && memcmp(key + size - behind_size, behind, behind_size) == 0;
}

bool hfi_key_name(const char *key_template, const char *key, size_t size, struct hfi_name *name)
{
    const char *from, *end = key + size;
    enum hfi_use use = starts(key, size, "hf:fetch:") ? HFI_FETCH : starts(key, size, "hf:sem:") ? HFI_SEMAPHORE : HFI_MUTEX;
    if (use == HFI_MUTEX && key_template != NULL) {
        size_t before = (size_t)(strstr(key_template, "%s") - key_template), behind = strlen(key_template) - before - 2;
        if (size <= before + behind)
            return false;
        from = key + before;
        end -= behind;
    } else {
        const char *prefix = prefix_of(use);
        if (size <= strlen(prefix) || !starts(key, size, prefix))
            return false;
        from = key + strlen(prefix);
        if (*from == ':') { /* hf::NAME: the name has its own tag */
            from++;
        } else if (end[-1] == '}' && memchr(from, '}', (size_t)(end - from)) == end - 1) {
            from++;
            end--;
        } else { /* hf:{NUMBER}:NAME */
            const char *close = memchr(from, '}', (size_t)(end - from));
            from = close == NULL || end - close < 2 ? end : close + 2;
        }
    }
    return end > from && hfi_name_take(use, from, (size_t)(end - from), name, NULL) == HF_OK;
}

hf_status hfi_fetch_key_check(const char *key_template, const char *key, size_t size, hf_error *error)
{
    char quoted[80];
    if (!is_side_key(key, size) && !is_lock_key(key_template, key, size))
        return HF_OK;
    return hfi_fail(error, HF_INVALID, "choose another key, or a narrower key_template",
                    "the key %s lies where holdfast keeps its own keys", hfi_quote(quoted, sizeof quoted, key, size));
}

static hf_status check_key(const char *key_template, const struct hfi_name *name, const struct hfi_keys *keys,
                           hf_error *error)
{
    char quoted[80];
    if (name->use == HFI_FETCH)
        return hfi_fetch_key_check(key_template, name->text, name->size, error);
    if (name->use != HFI_SEMAPHORE && is_side_key(keys->lock, keys->lock_size))
        return hfi_fail(error, HF_INVALID, "choose another name or key_template",
                        "the lock key %s lies where holdfast keeps its own keys",
                        hfi_quote(quoted, sizeof quoted, keys->lock, keys->lock_size));
    return HF_OK;
}

hf_status hfi_keys_make_behind(size_t front, void **memory, const char *key_template, const struct hfi_name *name,
                               struct hfi_keys *keys, hf_error *error)
{
    struct frame frame;
    *keys = (struct hfi_keys){.use = (uint8_t)name->use, .dialect = name->dialect};
    if (name->dialect != NULL)
        key_template = name->dialect->key_template;
    frame_of(key_template, name, &frame);
    size_t size = frame.before_size + name->size + frame.after_size;
    if (name->use != HFI_FETCH && size > HFI_LOCK_KEY_MOST)
        return hfi_fail(error, HF_INVALID, "choose a shorter name or key_template", "the lock key is too long");
    /* Only a template can make a key that needs a number for its tag. */
    *memory = malloc(front + size + 1 + name->size + 1 + (key_template != NULL ? NUMBER : 0));
    if (*memory == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory for the keys of a lock");
    char *text = (char *)*memory + front;
    keys->lock = text;
    keys->lock_size = (uint16_t)size;
    keys->name_size = (uint16_t)name->size;
    char *at = put(put(put(text, frame.before, frame.before_size), name->text, name->size), frame.after, frame.after_size);
    *at = 0;
    at = put(at + 1, name->text, name->size);
    *at = 0;
    size_t tag_size = size;
    keys->numbered = tag_of(text, size, &tag_size) == NULL &&
                     (memchr(text, '{', size) != NULL || memchr(text, '}', size) != NULL);
    if (keys->numbered)
        tag_size = number_tag(text, size, at + 1);
    keys->tag_size = (uint16_t)tag_size;
    hf_status status = check_key(key_template, name, keys, error);
    if (status == HF_OK)
        return HF_OK;
    free(*memory);
    *keys = (struct hfi_keys){0};
    return status;
}

hf_status hfi_keys_make(const char *key_template, const struct hfi_name *name, struct hfi_keys *keys, hf_error *error)
{
    void *memory;
    return hfi_keys_make_behind(0, &memory, key_template, name, keys, error);
}

void hfi_keys_title(const struct hfi_keys *keys, char out[HFI_TITLE])
{
    char name[160];
    (void)snprintf(out, HFI_TITLE, "%s %s", keys->use == HFI_SEMAPHORE ? "semaphore" : "lock",
                   hfi_quote(name, sizeof name, hfi_keys_name(keys), keys->name_size));
}

void hfi_keys_done(struct hfi_keys *keys)
{
    free(keys->lock);
    *keys = (struct hfi_keys){0};
}
