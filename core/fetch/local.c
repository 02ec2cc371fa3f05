/* SPDX-License-Identifier: MIT */
/* local.c - see local.h. Shards by the key's hash, each a set and a list under a mutex that is held for one look-up and
 * comparison; the budget of bytes is one for all. */
#include "core/fetch/local.h"
#include "base/mutex.h"
#include "base/rare.h"
#include "base/set.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS   64
#define STRIPES  1024 /* counters of changes: keys share them, so a change of another key may keep one from being near */
#define OVERHEAD 160  /* bytes a value: its item, its body's head, its places in set and heap */

struct item { /* a struct hfi_seen, packed: there may be many */
    struct hfi_list link; /* in by_age */
    const char *key;      /* `bytes`, but of an item that is only looked for */
    struct hfi_body *body;
    int64_t  end_ns, asked_ns; /* of what is near: its mark's, and no later */
    uint64_t near_epoch;  /* 0: it is not near */
    int32_t  load_ms;
    uint16_t size;        /* of the key */
    bool     stored;
    bool     visited;     /* asked for since the hand was here last */
    char     bytes[];
};
_Static_assert(HF_KEY_MAX <= UINT16_MAX, "a key's size fits");

struct shard {
    _Alignas(64) struct hfi_mutex mutex;
    struct hfi_set items;
    struct hfi_list by_age;  /* the newest first */
    struct hfi_list *hand;   /* what is looked at next, to make room: an item's link, or the head */
    uint64_t forgets;        /* calls of hfi_local_forget so far: keys share a counter */
};

struct hfi_local_cache {
    struct shard shards[SHARDS];
    int64_t limit;
    _Atomic(int64_t) bytes;
    _Atomic(uint64_t) near_values, near_bytes;
    _Atomic(uint64_t) changes[STRIPES];
};

static unsigned long hash_of(const void *object, unsigned long seed)
{
    const struct item *item = object;
    (void)seed;
    return (unsigned long)hfi_name_of(HFI_FETCH, item->key, item->size).hash;
}

static bool is_same(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    return x->size == y->size && memcmp(x->key, y->key, x->size) == 0;
}

HFI_RARE bool hfi_local_open(hf_client *client)
{
    struct hfi_local_cache *cache = aligned_alloc(64, sizeof *cache);
    if (cache == NULL)
        return false;
    memset(cache, 0, sizeof *cache);
    for (int i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        if (!hfi_set_open(&shard->items, 8, hash_of, is_same)) {
            while (i-- > 0)
                hfi_set_close(&cache->shards[i].items);
            free(cache);
            return false;
        }
        hfi_mutex_init(&shard->mutex, HFI_RANK_INNER);
        hfi_list_init(&shard->by_age);
        shard->hand = &shard->by_age;
    }
    cache->limit = client->local_bytes == HF_OFF ? 0 : client->local_bytes;
    client->local = cache;
    return true;
}

static int64_t weight(const struct item *item)
{
    return (int64_t)(OVERHEAD + item->size + item->body->size);
}

/* ---- near or not; mutex held ---- */

static void leave_near_locked(struct hfi_local_cache *cache, struct item *item)
{
    if (item->near_epoch == 0)
        return;
    item->near_epoch = 0;
    (void)atomic_fetch_sub(&cache->near_values, 1);
    (void)atomic_fetch_sub(&cache->near_bytes, (uint64_t)weight(item));
}

static void come_near_locked(struct hfi_local_cache *cache, struct item *item, const struct hfi_near_mark *near)
{
    leave_near_locked(cache, item);
    item->near_epoch = near->epoch;
    item->asked_ns = near->read_ns;
    item->end_ns = near->end_ns;
    (void)atomic_fetch_add(&cache->near_values, 1);
    (void)atomic_fetch_add(&cache->near_bytes, (uint64_t)weight(item));
}

static void drop_locked(struct hfi_local_cache *cache, struct shard *shard, struct item *item)
{
    leave_near_locked(cache, item);
    (void)atomic_fetch_sub(&cache->bytes, weight(item));
    if (shard->hand == &item->link)
        shard->hand = item->link.prev;
    hfi_list_remove(&item->link);
    hfi_set_remove(&shard->items, hash_of(item, 0), item);
    hfi_body_unref(item->body);
    free(item);
}

HFI_RARE void hfi_local_free(hf_client *client)
{
    struct hfi_local_cache *cache = client->local;
    if (cache == NULL)
        return;
    for (int i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        while (!hfi_list_is_empty(&shard->by_age))
            drop_locked(cache, shard, hfi_list_first(&shard->by_age, struct item, link));
        hfi_set_close(&shard->items);
        hfi_mutex_destroy(&shard->mutex);
    }
    free(cache);
    client->local = NULL;
}

/* ---- room ---- */

/* From the oldest to the newest, and round again: what was asked for since the hand came by last is spared once. */
static bool evict_locked(struct hfi_local_cache *cache, struct shard *shard)
{
    struct hfi_list *at = shard->hand;
    if (hfi_list_is_empty(&shard->by_age))
        return false;
    for (;; at = at->prev) {
        if (at == &shard->by_age)
            at = at->prev;
        struct item *item = hfi_container_of(at, struct item, link);
        if (!item->visited) {
            shard->hand = at->prev;
            drop_locked(cache, shard, item);
            return true;
        }
        item->visited = false;
    }
}

/* Begins with the shard that has grown, and goes on to the next when that is empty; one mutex at a time. */
static void make_room(struct hfi_local_cache *cache, uint64_t first)
{
    for (uint64_t i = 0; i < SHARDS && atomic_load(&cache->bytes) > cache->limit; i++) {
        struct shard *shard = &cache->shards[(first + i) % SHARDS];
        hfi_mutex_lock(&shard->mutex);
        while (atomic_load(&cache->bytes) > cache->limit && evict_locked(cache, shard))
            continue;
        hfi_mutex_unlock(&shard->mutex);
    }
}

/* ---- look and remember ---- */

static struct shard *shard_of(struct hfi_local_cache *cache, const struct hfi_name *key)
{
    return &cache->shards[key->hash % SHARDS];
}

static _Atomic(uint64_t) *changes_of(struct hfi_local_cache *cache, const struct hfi_name *key)
{
    return &cache->changes[key->hash / SHARDS % STRIPES];
}

static struct item *find_locked(struct shard *shard, const struct hfi_name *key)
{
    HFI_ASSERT_HELD(&shard->mutex);
    struct item wanted;
    wanted.size = (uint16_t)key->size;
    wanted.key = key->text;
    return hfi_set_find(&shard->items, key->hash, &wanted);
}

void hfi_local_look(hf_client *client, const struct hfi_name *key, struct hfi_seen *seen)
{
    struct hfi_local_cache *cache = client->local;
    struct shard *shard = shard_of(cache, key);
    *seen = (struct hfi_seen){0};
    if (cache->limit == 0)
        return;
    hfi_mutex_lock(&shard->mutex);
    struct item *item = find_locked(shard, key);
    if (item != NULL) {
        *seen = (struct hfi_seen){item->body, item->end_ns, item->asked_ns, item->load_ms, item->stored, 0,
                                  {item->near_epoch, item->asked_ns, item->end_ns}};
        hfi_body_ref(seen->body);
        item->visited = true;
    }
    seen->forgets = shard->forgets;
    hfi_mutex_unlock(&shard->mutex);
}

/* The body to remember: with its bytes in one block, for a reply's are in several. Moves the caller's reference to it. */
static void make_compact(struct hfi_seen *saw)
{
    struct hfi_body *body = saw->body, *compact;
    if (body->reply == NULL || (compact = hfi_body_copy(body->data, body->size)) == NULL)
        return;
    saw->body = compact;
    hfi_body_unref(body);
}

static struct item *add_locked(struct hfi_local_cache *cache, struct shard *shard, const struct hfi_name *key, struct hfi_seen *saw)
{
    HFI_ASSERT_HELD(&shard->mutex);
    struct item *item = calloc(1, sizeof *item + key->size);
    if (item == NULL)
        return NULL;
    memcpy(item->bytes, key->text, key->size);
    item->key = item->bytes;
    item->size = (uint16_t)key->size;
    if (!hfi_set_add(&shard->items, key->hash, item)) {
        free(item);
        return NULL;
    }
    make_compact(saw);
    hfi_body_ref(saw->body);
    item->body = saw->body;
    hfi_list_init(&item->link);
    hfi_list_prepend(&shard->by_age, &item->link);
    (void)atomic_fetch_add(&cache->bytes, weight(item));
    return item;
}

static bool is_same_body(const struct hfi_body *a, const struct hfi_body *b)
{
    return a->absent == b->absent && a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static void replace_locked(struct hfi_local_cache *cache, struct item *item, struct hfi_seen *saw)
{
    struct hfi_body *old = item->body;
    if (is_same_body(old, saw->body)) {
        hfi_body_ref(old);
        hfi_body_unref(saw->body);
        saw->body = old;
        return;
    }
    leave_near_locked(cache, item);
    make_compact(saw);
    (void)atomic_fetch_add(&cache->bytes, (int64_t)saw->body->size - (int64_t)old->size);
    hfi_body_ref(saw->body);
    item->body = saw->body;
    item->end_ns = 0; /* the known end was the old value's */
    hfi_body_unref(old);
}

/* NULL: it is not remembered. */
static struct item *place_locked(struct hfi_local_cache *cache, struct shard *shard, const struct hfi_name *key, struct hfi_seen *saw)
{
    struct item *item = find_locked(shard, key);
    if (shard->forgets != saw->forgets)
        return NULL;
    if ((int64_t)(saw->body->size + key->size + OVERHEAD) > cache->limit / 4) {
        if (item != NULL)
            drop_locked(cache, shard, item); /* the remembered value is no longer the last one seen */
        return NULL;
    }
    if (item == NULL)
        return add_locked(cache, shard, key, saw);
    if (item->body != saw->body)
        replace_locked(cache, item, saw);
    return item;
}

HFI_RARE bool hfi_local_observe(hf_client *client, const struct hfi_name *key, struct hfi_seen *saw, uint64_t changes)
{
    struct hfi_local_cache *cache = client->local;
    struct shard *shard = shard_of(cache, key);
    bool is_near = false;
    hfi_mutex_lock(&shard->mutex);
    struct item *item = place_locked(cache, shard, key, saw);
    if (item != NULL) {
        bool is_unchanged = atomic_load(changes_of(cache, key)) == changes;
        if (saw->end_ns != 0 && (item->near_epoch == 0 || (is_unchanged && saw->near.read_ns != 0))) {
            /* What nothing tracks may have been read before a shorter life was set, of which nobody was told. */
            bool is_told = item->near_epoch == 0 || saw->near.epoch != 0;
            item->end_ns = is_told || saw->end_ns < item->end_ns ? saw->end_ns : item->end_ns;
            item->asked_ns = is_told || saw->asked_ns > item->asked_ns ? saw->asked_ns : item->asked_ns;
        }
        if (saw->load_ms != 0)
            item->load_ms = saw->load_ms < INT32_MAX ? (int32_t)saw->load_ms : INT32_MAX;
        item->stored = saw->stored;
        is_near = saw->near.epoch != 0 && is_unchanged;
        if (is_near)
            come_near_locked(cache, item, &saw->near);
    }
    hfi_mutex_unlock(&shard->mutex);
    if (atomic_load(&cache->bytes) > cache->limit)
        make_room(cache, key->hash);
    return is_near;
}

void hfi_local_forget(hf_client *client, const struct hfi_name *key)
{
    struct hfi_local_cache *cache = client->local;
    struct shard *shard = shard_of(cache, key);
    (void)atomic_fetch_add(changes_of(cache, key), 1);
    hfi_mutex_lock(&shard->mutex);
    struct item *item = find_locked(shard, key);
    if (item != NULL)
        drop_locked(cache, shard, item);
    shard->forgets++;
    hfi_mutex_unlock(&shard->mutex);
}

/* ---- changes ---- */

uint64_t hfi_local_changes(hf_client *client, const struct hfi_name *key)
{
    return atomic_load(changes_of(client->local, key));
}

/* First the counter: who keeps a value that was read before either sees it, or has kept it when the item is looked for. */
void hfi_local_changed(hf_client *client, const struct hfi_name *key)
{
    struct hfi_local_cache *cache = client->local;
    struct shard *shard = shard_of(cache, key);
    (void)atomic_fetch_add(changes_of(cache, key), 1);
    hfi_mutex_lock(&shard->mutex);
    struct item *item = find_locked(shard, key);
    if (item != NULL)
        leave_near_locked(cache, item);
    hfi_mutex_unlock(&shard->mutex);
}

void hfi_local_count(const hf_client *client, struct hfi_local_amount *amount)
{
    amount->near_values = atomic_load(&client->local->near_values);
    amount->near_bytes = atomic_load(&client->local->near_bytes);
}

/* ---- a tag ---- */

/* The end was dated when its answer was in, up to command_ms late, and both clocks may err by 1 %. */
static bool may_be_over(const hf_client *client, const struct item *item, int64_t now)
{
    return item->end_ns != HFI_NEVER && item->end_ns - (item->end_ns - item->asked_ns) / 50 - client->command_ms * HFI_MS <= now;
}

HFI_RARE void hfi_local_forget_over(hf_client *client, bool all)
{
    struct hfi_local_cache *cache = client->local;
    for (int i = 0; i < STRIPES; i++)
        (void)atomic_fetch_add(&cache->changes[i], 1);
    for (int i = 0; i < SHARDS; i++) {
        struct shard *shard = &cache->shards[i];
        hfi_mutex_lock(&shard->mutex);
        int64_t now = hfi_now(client->clock);
        for (struct hfi_list *at = shard->by_age.next, *next; at != &shard->by_age; at = next) {
            struct item *item = hfi_container_of(at, struct item, link);
            next = at->next;
            if (all || may_be_over(client, item, now))
                drop_locked(cache, shard, item);
        }
        shard->forgets++;
        hfi_mutex_unlock(&shard->mutex);
    }
}
