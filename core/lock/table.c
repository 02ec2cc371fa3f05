/* SPDX-License-Identifier: MIT */
/*
 * table.c - see table.h. A hash table in shards. Creating or ending a lock takes the shard's mutex; finding one takes
 * none.
 *
 * Every lock has a slot, which counts the lock's references and links it into the chain of its hash. Slots stay in
 * place until the client's memory is freed, so any thread may look at any slot at any time. A reader increments a
 * reference count only where it is positive (no reader revives a count of 0), and only then checks which lock the slot
 * has. A chain may change while it is read. The reader may then find nothing, and searches again under the mutex, where
 * chains do not change.
 *
 * So a lock's memory is freed at once with its last reference. There is no per-thread record that a thread's end would
 * have to clean up or a fork child could find half-written, and a lookup costs one compare-and-swap. ck_ht with
 * ck_epoch would defer the freeing, and would need a record for each thread and a fence and a reference for each
 * lookup.
 *
 * A lock's mutex is one of its shard's STRIPES, that which fewest locks have, for a mutex has 40 bytes and a client may hold a
 * hundred thousand locks. A new lock has one of its own, unless its shard has had more locks at once than stripes.
 *
 * Each shard keeps a reference to the RECENT locks created last, so that a name that is acquired again and again is not
 * created each time. A lock that only `recent` refers to is as good as new: hfi_entry_arrive resets what its
 * earlier waiters left.
 */
#include "core/lock/table.h"
#include "base/mutex.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "core/lock/lock.h"
#include "core/protocol/dialect.h"

#include <stdlib.h>
#include <string.h>

#define SHARD_BITS 6
#define SHARDS     (1 << SHARD_BITS)
#define SLOT_BITS  24 /* low bits of a grant number: the shard, and above it the slot's index in the shard */
#define RECENT     8
#define FIRST      8 /* slots in a shard's first segment; each further segment doubles the total */
#define SEGMENTS   16
#define STRIPES    16
#define STRIPE     64 /* bytes, at least: what two mutexes change is not in one cache line */
#define STEPS_MOST 64 /* limit for a reader on a chain that changes */

_Static_assert(FIRST << (SEGMENTS - 1) == 1 << (SLOT_BITS - SHARD_BITS), "as many slots as a grant number can name");

struct hfi_slot {
    _Atomic(int)      references; /* 0: unused */
    _Atomic(uint32_t) tag;        /* low half of the lock's hash; its own low bits are the chain's number */
    _Atomic(uint32_t) next;       /* in the chain or the free list: an index + 1; 0: none */
    _Atomic(uint32_t) head;       /* of the chain whose number is this slot's index */
    struct hfi_lock *lock;        /* valid while there are references */
};

struct stripe {
    struct hfi_mutex mutex;
    uint32_t locks; /* that have it */
    char apart[STRIPE - sizeof(struct hfi_mutex) - sizeof(uint32_t)];
};

struct shard {
    struct hfi_mutex mutex; /* needed for any change */
    _Atomic(struct hfi_slot *) segments[SEGMENTS];
    _Atomic(uint32_t) capacity; /* number of slots, and of chains: a power of two, or 0 */
    uint32_t used, free;   /* slots ever used; head of the free list, an index + 1 */
    unsigned next_recent;
    struct hfi_lock *recent[RECENT]; /* a reference each */
    struct stripe *stripes[STRIPES]; /* those that were needed, then NULL */
};

struct hfi_table {
    struct shard shards[SHARDS];
};

static bool is_named(const struct hfi_lock *lock, const struct hfi_name *name)
{
    return lock->keys.use == name->use && lock->keys.dialect == name->dialect && lock->keys.name_size == name->size &&
           memcmp(hfi_keys_name(&lock->keys), name->text, name->size) == 0;
}

static struct shard *shard_of(hf_client *client, uint64_t hash)
{
    return &client->table->shards[(hash >> 40) % SHARDS];
}

/* The index must be below `capacity`. */
static struct hfi_slot *slot_at(struct shard *shard, uint32_t index)
{
    int segment = index < FIRST ? 0 : 32 - __builtin_clz(index / FIRST);
    uint32_t before = segment == 0 ? 0 : (uint32_t)FIRST << (segment - 1);
    return atomic_load_explicit(&shard->segments[segment], memory_order_acquire) + (index - before);
}

static _Atomic(uint32_t) *chain_of(struct shard *shard, uint32_t capacity, uint32_t tag)
{
    return &slot_at(shard, tag & (capacity - 1))->head;
}

HFI_RARE bool hfi_table_open(hf_client *client)
{
    struct hfi_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return false;
    for (int i = 0; i < SHARDS; i++)
        hfi_mutex_init(&table->shards[i].mutex, HFI_RANK_MIDDLE);
    client->table = table;
    return true;
}

HFI_RARE void hfi_table_forget(hf_client *client)
{
    for (int i = 0; i < SHARDS; i++) {
        struct shard *shard = &client->table->shards[i];
        struct hfi_lock *recent[RECENT];
        hfi_mutex_lock(&shard->mutex);
        memcpy(recent, shard->recent, sizeof recent);
        memset(shard->recent, 0, sizeof shard->recent);
        for (int j = 0; j < RECENT; j++)
            if (recent[j] != NULL)
                atomic_store(&recent[j]->cached, false);
        hfi_mutex_unlock(&shard->mutex);
        for (int j = 0; j < RECENT; j++)
            if (recent[j] != NULL)
                hfi_table_unref(recent[j]);
    }
}

HFI_RARE void hfi_table_free(hf_client *client)
{
    struct hfi_table *table = client->table;
    if (table == NULL)
        return;
    hfi_table_forget(client);
    for (int i = 0; i < SHARDS; i++) {
        for (int j = 0; j < SEGMENTS; j++)
            free(atomic_load(&table->shards[i].segments[j]));
        for (int j = 0; j < STRIPES && table->shards[i].stripes[j] != NULL; j++) {
            hfi_mutex_destroy(&table->shards[i].stripes[j]->mutex);
            free(table->shards[i].stripes[j]);
        }
        hfi_mutex_destroy(&table->shards[i].mutex);
    }
    free(table);
    client->table = NULL;
}

/* A reference to the lock of this slot; NULL: the slot is unused. */
static struct hfi_lock *pin(struct hfi_slot *slot)
{
    int references = atomic_load(&slot->references);
    while (references > 0)
        if (atomic_compare_exchange_weak(&slot->references, &references, references + 1))
            return slot->lock;
    return NULL;
}

/* Searches without the mutex; returns a reference. NULL: not found, but the lock may exist all the same. */
static struct hfi_lock *find(struct shard *shard, const struct hfi_name *name)
{
    uint32_t tag = (uint32_t)name->hash, capacity = atomic_load_explicit(&shard->capacity, memory_order_acquire);
    uint32_t at = capacity == 0 ? 0 : atomic_load_explicit(chain_of(shard, capacity, tag), memory_order_acquire);
    for (int steps = 0; at != 0 && steps < STEPS_MOST; steps++) {
        struct hfi_slot *slot = slot_at(shard, at - 1);
        if (atomic_load_explicit(&slot->tag, memory_order_relaxed) == tag) {
            HFI_PERTURB("table-seen");
            struct hfi_lock *lock = pin(slot);
            if (lock != NULL && is_named(lock, name))
                return lock;
            if (lock != NULL)
                hfi_table_unref(lock);
        }
        at = atomic_load_explicit(&slot->next, memory_order_acquire);
    }
    return NULL;
}

/* No reference: under the shard's mutex every lock in a chain has one. */
static struct hfi_lock *seen_locked(struct shard *shard, const struct hfi_name *name)
{
    HFI_ASSERT_HELD(&shard->mutex);
    uint32_t tag = (uint32_t)name->hash, capacity = atomic_load(&shard->capacity);
    uint32_t at = capacity == 0 ? 0 : atomic_load(chain_of(shard, capacity, tag));
    while (at != 0) {
        struct hfi_slot *slot = slot_at(shard, at - 1);
        if (atomic_load(&slot->tag) == tag && is_named(slot->lock, name))
            return slot->lock;
        at = atomic_load(&slot->next);
    }
    return NULL;
}

static void join_chain_locked(struct shard *shard, uint32_t capacity, uint32_t index)
{
    struct hfi_slot *slot = slot_at(shard, index);
    _Atomic(uint32_t) *head = chain_of(shard, capacity, atomic_load(&slot->tag));
    atomic_store(&slot->next, atomic_load(head));
    atomic_store(head, index + 1);
}

/* Doubles the slots and the chains. */
static bool grow_locked(struct shard *shard)
{
    HFI_ASSERT_HELD(&shard->mutex);
    uint32_t capacity = atomic_load(&shard->capacity), more = capacity == 0 ? FIRST : capacity;
    int segment = capacity == 0 ? 0 : 32 - __builtin_clz(capacity / FIRST);
    struct hfi_slot *slots = segment < SEGMENTS ? calloc(more, sizeof *slots) : NULL;
    if (slots == NULL)
        return false;
    atomic_store(&shard->segments[segment], slots);
    for (uint32_t i = 0; i < capacity; i++)
        atomic_store(&slot_at(shard, i)->head, 0);
    for (uint32_t i = 0; i < shard->used; i++)
        if (atomic_load(&slot_at(shard, i)->references) > 0)
            join_chain_locked(shard, capacity + more, i);
    atomic_store(&shard->capacity, capacity + more);
    return true;
}

/* The stripe that fewest locks have: made, if all others are in use and there is memory. NULL: there is none, nor memory. */
static HFI_RARE struct stripe *stripe_locked(struct shard *shard)
{
    struct stripe *least = NULL;
    for (int i = 0; i < STRIPES && (least == NULL || least->locks > 0); i++) {
        struct stripe *stripe = shard->stripes[i];
        if (stripe == NULL && (stripe = calloc(1, sizeof *stripe)) != NULL) {
            hfi_mutex_init(&stripe->mutex, HFI_RANK_OUTER);
            shard->stripes[i] = stripe;
        }
        if (stripe == NULL)
            break;
        if (least == NULL || stripe->locks < least->locks)
            least = stripe;
    }
    return least;
}

/* Publishes the lock with the caller's reference and, if it is cached, that of `recent`. *gone: the lock that falls out
 * of `recent`, whose reference the caller has to drop. False: no memory. */
static bool put_locked(hf_client *client, struct hfi_lock *lock, uint64_t hash, struct hfi_lock **gone)
{
    struct shard *shard = shard_of(client, hash);
    struct stripe *stripe = stripe_locked(shard);
    uint32_t index = shard->free - 1;
    if (stripe == NULL)
        return false;
    if (shard->free == 0) {
        if (shard->used == atomic_load(&shard->capacity) && !grow_locked(shard))
            return false;
        index = shard->used++;
    } else {
        shard->free = atomic_load(&slot_at(shard, index)->next);
    }
    struct hfi_slot *slot = slot_at(shard, index);
    bool stays = lock->keys.use != HFI_FETCH; /* not a fetch's: those are many, and local.c keeps their values */
    lock->slot = slot;
    lock->mutex = &stripe->mutex;
    stripe->locks++;
    lock->slot_id = index << SHARD_BITS | (uint32_t)(shard - client->table->shards);
    slot->lock = lock;
    atomic_store(&slot->tag, (uint32_t)hash);
    atomic_store(&slot->references, stays ? 2 : 1);
    join_chain_locked(shard, atomic_load(&shard->capacity), index);
    atomic_store(&lock->cached, stays);
    if (stays) {
        struct hfi_lock **turn = &shard->recent[shard->next_recent++ % RECENT];
        *gone = *turn;
        *turn = lock;
    }
    if (*gone != NULL)
        atomic_store(&(*gone)->cached, false);
    return true;
}

static HFI_RARE void take_out_locked(struct shard *shard, const struct hfi_lock *lock)
{
    uint32_t index = lock->slot_id >> SHARD_BITS;
    struct hfi_slot *slot = lock->slot;
    _Atomic(uint32_t) *link = chain_of(shard, atomic_load(&shard->capacity), atomic_load(&slot->tag));
    while (atomic_load(link) != index + 1)
        link = &slot_at(shard, atomic_load(link) - 1)->next;
    atomic_store(link, atomic_load(&slot->next));
    atomic_store(&slot->next, shard->free);
    shard->free = index + 1;
    hfi_container_of(lock->mutex, struct stripe, mutex)->locks--;
}

static HFI_RARE hf_status make(hf_client *client, const struct hfi_name *name, struct hfi_lock **made, hf_error *error)
{
    struct shard *shard = shard_of(client, name->hash);
    struct hfi_lock *gone = NULL;
    hf_status status = HF_OK;
    hfi_mutex_lock(&shard->mutex);
    struct hfi_lock *lock = seen_locked(shard, name);
    if (lock != NULL) {
        hfi_table_ref(lock);
    } else {
        status = hfi_lock_new(client, name, &lock, error);
        if (status == HF_OK && !put_locked(client, lock, name->hash, &gone)) {
            hfi_lock_free(lock);
            status = hfi_fail(error, HF_NOMEM, "", "no memory for another lock name");
        }
    }
    hfi_mutex_unlock(&shard->mutex);
    if (gone != NULL)
        hfi_table_unref(gone);
    *made = status == HF_OK ? lock : NULL;
    return status;
}

hf_status hfi_table_get(hf_client *client, const struct hfi_name *name, struct hfi_lock **found, hf_error *error)
{
    hf_status status = HF_OK;
    *found = find(shard_of(client, name->hash), name);
    if (*found == NULL)
        status = make(client, name, found, error);
    HFI_PERTURB("table-found");
    return status;
}

HFI_RARE struct hfi_lock *hfi_table_by_key(hf_client *client, const struct hfi_dialect *dialect, const char *key, size_t size)
{
    struct hfi_name name;
    struct hfi_lock *lock;
    if (!hfi_key_name(dialect != NULL ? dialect->key_template : client->key_template, key, size, &name))
        return NULL;
    name = hfi_name_in(dialect, name);
    if (hfi_table_get(client, &name, &lock, NULL) != HF_OK)
        return NULL;
    if (lock->keys.lock_size == size && memcmp(lock->keys.lock, key, size) == 0)
        return lock;
    hfi_table_unref(lock);
    return NULL;
}

void hfi_table_ref(struct hfi_lock *lock)
{
    atomic_fetch_add(&lock->slot->references, 1);
}

/* The count is read first: a lock that falls out of `recent` in between is said not to be alone, never the other way round. */
bool hfi_table_is_alone(const struct hfi_lock *lock, int count)
{
    int references = atomic_load(&lock->slot->references);
    HFI_PERTURB("table-counted");
    return references - atomic_load(&lock->cached) == count;
}

/* Takes no reference: others may give theirs back meanwhile, and would not know that it was the last but this one. */
HFI_RARE struct hfi_lane *hfi_table_lane_in_use(hf_client *client, const struct hfi_name *name)
{
    struct shard *shard = shard_of(client, name->hash);
    hfi_mutex_lock(&shard->mutex);
    const struct hfi_lock *lock = seen_locked(shard, name);
    struct hfi_lane *lane = lock != NULL && !hfi_table_is_alone(lock, 0) ? atomic_load(&lock->lane) : NULL;
    hfi_mutex_unlock(&shard->mutex);
    return lane;
}

/* A lock loses its last reference only under the shard's mutex, so under that mutex every lock in a chain has one. */
void hfi_table_unref(struct hfi_lock *lock)
{
    struct hfi_slot *slot = lock->slot;
    int references = atomic_load(&slot->references);
    while (references > 1)
        if (atomic_compare_exchange_weak(&slot->references, &references, references - 1))
            return;
    HFI_PERTURB("table-last-reference");
    struct shard *shard = &lock->client->table->shards[lock->slot_id % SHARDS];
    hfi_mutex_lock(&shard->mutex);
    bool last = atomic_fetch_sub(&slot->references, 1) == 1;
    if (last)
        take_out_locked(shard, lock);
    hfi_mutex_unlock(&shard->mutex);
    if (last)
        hfi_lock_free(hfi_lock_home(lock));
}

HFI_RARE struct hfi_lock *hfi_table_by_grant(hf_client *client, uint64_t grant)
{
    uint32_t slot_id = (uint32_t)(grant & (((uint64_t)1 << SLOT_BITS) - 1)), index = slot_id >> SHARD_BITS;
    struct shard *shard = &client->table->shards[slot_id % SHARDS];
    if (index >= atomic_load(&shard->capacity))
        return NULL;
    struct hfi_lock *lock = pin(slot_at(shard, index));
    HFI_PERTURB("table-found-by-grant");
    return lock;
}

uint64_t hfi_table_grant(hf_client *client, const struct hfi_lock *lock)
{
    return (atomic_fetch_add(&client->grants, 1) + 1) << SLOT_BITS | lock->slot_id;
}

HFI_RARE void hfi_table_each(hf_client *client, void (*visit)(struct hfi_lock *lock, void *arg), void *arg)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        for (uint32_t index = 0; index < atomic_load(&client->table->shards[i].capacity); index++) {
            struct hfi_lock *lock = hfi_table_by_grant(client, index << SHARD_BITS | i);
            if (lock == NULL)
                continue;
            for (struct hfi_lock *grant = lock; grant != NULL; grant = hfi_lock_next(grant)) {
                visit(grant, arg);
                HFI_PERTURB("visited-to-next");
            }
            hfi_table_unref(lock);
        }
    }
}
