/* SPDX-License-Identifier: MIT */
/* local.c - see local.h. A set and a list by last use, under one mutex that is held for one look-up and comparison. */
#include "core/fetch/local.h"
#include "base/mutex.h"
#include "base/rare.h"
#include "base/set.h"

#include <stdlib.h>
#include <string.h>

#define FORGET_PLACES 64

struct item {
    struct hfi_list link; /* in by_use: the least recently used first */
    struct hfi_seen seen;
    uint64_t hash;
    size_t   size;
    const char *key;
    char     bytes[];
};

struct hfi_local_cache {
    struct hfi_mutex mutex;
    struct hfi_set items;
    struct hfi_list by_use;
    int64_t bytes, limit;
    uint64_t forgets[FORGET_PLACES]; /* calls of hfi_local_forget so far, by the key's hash: keys share a counter */
};

static unsigned long hash_of(const void *object, unsigned long seed)
{
    (void)seed;
    return (unsigned long)((const struct item *)object)->hash;
}

static bool is_same(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->size == y->size && memcmp(x->key, y->key, x->size) == 0;
}

bool hfi_local_open(hf_client *client)
{
    struct hfi_local_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL)
        return false;
    if (!hfi_set_open(&cache->items, 64, hash_of, is_same)) {
        free(cache);
        return false;
    }
    hfi_mutex_init(&cache->mutex, HFI_RANK_INNER);
    hfi_list_init(&cache->by_use);
    cache->limit = client->local_bytes == HF_OFF ? 0 : client->local_bytes;
    client->local = cache;
    return true;
}

static int64_t weight(const struct item *item)
{
    return (int64_t)(sizeof *item + item->size + (item->seen.body != NULL ? item->seen.body->size : 0));
}

static void drop_locked(struct hfi_local_cache *cache, struct item *item)
{
    cache->bytes -= weight(item);
    hfi_list_remove(&item->link);
    hfi_set_remove(&cache->items, item->hash, item);
    hfi_body_unref(item->seen.body);
    free(item);
}

void hfi_local_free(hf_client *client)
{
    struct hfi_local_cache *cache = client->local;
    if (cache == NULL)
        return;
    while (!hfi_list_is_empty(&cache->by_use))
        drop_locked(cache, hfi_container_of(cache->by_use.next, struct item, link));
    hfi_set_close(&cache->items);
    hfi_mutex_destroy(&cache->mutex);
    free(cache);
    client->local = NULL;
}

static struct item *find_locked(struct hfi_local_cache *cache, const struct hfi_name *key)
{
    struct item wanted = {.hash = key->hash, .size = key->size, .key = key->text};
    return hfi_set_find(&cache->items, key->hash, &wanted);
}

void hfi_local_look(hf_client *client, const struct hfi_name *key, struct hfi_seen *seen)
{
    struct hfi_local_cache *cache = client->local;
    *seen = (struct hfi_seen){0};
    if (cache->limit == 0)
        return;
    hfi_mutex_lock(&cache->mutex);
    struct item *item = find_locked(cache, key);
    if (item != NULL) {
        *seen = item->seen;
        hfi_body_ref(seen->body);
        hfi_list_remove(&item->link);
        hfi_list_append(&cache->by_use, &item->link);
    }
    seen->forgets = cache->forgets[key->hash % FORGET_PLACES];
    hfi_mutex_unlock(&cache->mutex);
}

static struct item *add_locked(struct hfi_local_cache *cache, const struct hfi_name *key,
                               struct hfi_body *body)
{
    HFI_ASSERT_HELD(&cache->mutex);
    struct item *item = calloc(1, sizeof *item + key->size);
    if (item == NULL)
        return NULL;
    memcpy(item->bytes, key->text, key->size);
    item->key = item->bytes;
    item->size = key->size;
    item->hash = key->hash;
    if (!hfi_set_add(&cache->items, item->hash, item)) {
        free(item);
        return NULL;
    }
    hfi_body_ref(body);
    item->seen.body = body;
    hfi_list_init(&item->link);
    hfi_list_append(&cache->by_use, &item->link);
    cache->bytes += weight(item);
    return item;
}

static bool is_same_body(const struct hfi_body *a, const struct hfi_body *b)
{
    return a->absent == b->absent && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

HFI_RARE void hfi_local_observe(hf_client *client, const struct hfi_name *key, struct hfi_seen *saw)
{
    struct hfi_local_cache *cache = client->local;
    struct hfi_body *body = saw->body;
    hfi_mutex_lock(&cache->mutex);
    struct item *item = find_locked(cache, key);
    if (cache->forgets[key->hash % FORGET_PLACES] != saw->forgets) {
        item = NULL;
    } else if ((int64_t)(body->size + key->size + sizeof *item) > cache->limit) {
        if (item != NULL)
            drop_locked(cache, item); /* the remembered value is no longer the last one seen */
        item = NULL;
    } else if (item == NULL) {
        item = add_locked(cache, key, body);
    } else if (item->seen.body != body) {
        struct hfi_body *give_way = body;
        if (is_same_body(item->seen.body, body)) {
            saw->body = item->seen.body;
            hfi_body_ref(saw->body);
        } else {
            cache->bytes -= weight(item);
            give_way = item->seen.body;
            item->seen.body = body;
            hfi_body_ref(body);
            cache->bytes += weight(item);
            item->seen.end_ns = 0; /* the known end was the old value's */
        }
        hfi_body_unref(give_way);
    }
    if (item != NULL && saw->end_ns != 0) {
        item->seen.end_ns = saw->end_ns;
        item->seen.asked_ns = saw->asked_ns;
    }
    if (item != NULL && saw->load_ms != 0)
        item->seen.load_ms = saw->load_ms;
    if (item != NULL)
        item->seen.stored = saw->stored;
    while (cache->bytes > cache->limit && !hfi_list_is_empty(&cache->by_use))
        drop_locked(cache, hfi_container_of(cache->by_use.next, struct item, link));
    hfi_mutex_unlock(&cache->mutex);
}

void hfi_local_forget(hf_client *client, const struct hfi_name *key)
{
    struct hfi_local_cache *cache = client->local;
    hfi_mutex_lock(&cache->mutex);
    struct item *item = find_locked(cache, key);
    if (item != NULL)
        drop_locked(cache, item);
    cache->forgets[key->hash % FORGET_PLACES]++;
    hfi_mutex_unlock(&cache->mutex);
}

/* The end was dated when its answer was in, up to command_ms late, and both clocks may err by 1 %. */
static bool may_be_over(const hf_client *client, const struct hfi_seen *seen, int64_t now)
{
    return seen->end_ns != HFI_NEVER && seen->end_ns - (seen->end_ns - seen->asked_ns) / 50 - client->command_ms * HFI_MS <= now;
}

void hfi_local_forget_over(hf_client *client, bool all)
{
    struct hfi_local_cache *cache = client->local;
    hfi_mutex_lock(&cache->mutex);
    int64_t now = hfi_now(client->clock);
    for (struct hfi_list *at = cache->by_use.next, *next; at != &cache->by_use; at = next) {
        struct item *item = hfi_container_of(at, struct item, link);
        next = at->next;
        if (all || may_be_over(client, &item->seen, now))
            drop_locked(cache, item);
    }
    for (int i = 0; i < FORGET_PLACES; i++)
        cache->forgets[i]++;
    hfi_mutex_unlock(&cache->mutex);
}
