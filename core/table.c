/* SPDX-License-Identifier: MIT */
/* table.c - see table.h. Shards, each a set under a mutex; and an array of slots under one of its own. */
#include "core/table.h"
#include "base/perturb.h"
#include "base/set.h"
#include "core/lock.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS    64
#define SLOT_BITS 24

struct shard {
    pthread_mutex_t mutex;
    struct hfi_set locks;
};

struct hfi_table {
    struct shard shards[SHARDS];
    pthread_mutex_t slot_mutex;
    struct hfi_lock **slots; /* NULL: free */
    uint32_t *spare;         /* free slots, a stack */
    size_t slot_room, spare_count, count;
};

static unsigned long hash_of(const void *object, unsigned long seed)
{
    (void)seed;
    return (unsigned long)((const struct hfi_lock *)object)->hash;
}

static bool is_same(const void *a, const void *b)
{
    const struct hfi_lock *x = a, *y = b;
    return x->keys.use == y->keys.use && x->keys.name_size == y->keys.name_size &&
           memcmp(x->keys.name, y->keys.name, x->keys.name_size) == 0;
}

bool hfi_table_open(hf_client *client)
{
    struct hfi_table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return false;
    (void)pthread_mutex_init(&table->slot_mutex, NULL);
    for (int i = 0; i < SHARDS; i++) {
        (void)pthread_mutex_init(&table->shards[i].mutex, NULL);
        if (!hfi_set_open(&table->shards[i].locks, 16, hash_of, is_same)) {
            while (i-- > 0)
                hfi_set_close(&table->shards[i].locks);
            free(table);
            return false;
        }
    }
    client->table = table;
    return true;
}

void hfi_table_free(hf_client *client)
{
    struct hfi_table *table = client->table;
    if (table == NULL)
        return;
    for (int i = 0; i < SHARDS; i++) {
        hfi_set_close(&table->shards[i].locks);
        (void)pthread_mutex_destroy(&table->shards[i].mutex);
    }
    (void)pthread_mutex_destroy(&table->slot_mutex);
    free(table->slots);
    free(table->spare);
    free(table);
    client->table = NULL;
}

static bool grow_slots(struct hfi_table *table)
{
    size_t room = table->slot_room == 0 ? 64 : 2 * table->slot_room;
    if (room > ((size_t)1 << SLOT_BITS))
        return false;
    struct hfi_lock **slots = realloc(table->slots, room * sizeof *slots);
    if (slots == NULL)
        return false;
    table->slots = slots;
    uint32_t *spare = realloc(table->spare, room * sizeof *spare);
    if (spare == NULL)
        return false;
    table->spare = spare;
    for (size_t i = room; i-- > table->slot_room;) {
        slots[i] = NULL;
        spare[table->spare_count++] = (uint32_t)i;
    }
    table->slot_room = room;
    return true;
}

static bool take_slot(struct hfi_table *table, struct hfi_lock *lock)
{
    (void)pthread_mutex_lock(&table->slot_mutex);
    bool found = table->spare_count > 0 || grow_slots(table);
    if (found) {
        lock->slot = table->spare[--table->spare_count];
        table->slots[lock->slot] = lock;
        table->count++;
    }
    (void)pthread_mutex_unlock(&table->slot_mutex);
    return found;
}

static void give_slot(struct hfi_table *table, uint32_t slot)
{
    (void)pthread_mutex_lock(&table->slot_mutex);
    table->slots[slot] = NULL;
    table->spare[table->spare_count++] = slot;
    table->count--;
    (void)pthread_mutex_unlock(&table->slot_mutex);
}

static struct shard *shard_of(hf_client *client, uint64_t hash)
{
    return &client->table->shards[(hash >> 40) % SHARDS];
}

hf_status hfi_table_get(hf_client *client, enum hfi_use use, const char *name, size_t size, struct hfi_lock **found,
                        hf_error *error)
{
    struct hfi_lock wanted = {.hash = hfi_name_hash(use, name, size)};
    struct shard *shard = shard_of(client, wanted.hash);
    wanted.keys = (struct hfi_keys){.use = (uint8_t)use, .name_size = (uint16_t)size};
    wanted.keys.name = (char *)(uintptr_t)name; /* only compared */
    (void)pthread_mutex_lock(&shard->mutex);
    struct hfi_lock *lock = hfi_set_find(&shard->locks, wanted.hash, &wanted);
    hf_status status = HF_OK;
    if (lock == NULL) {
        status = hfi_lock_new(client, use, name, size, wanted.hash, &lock, error);
        if (status == HF_OK && (!take_slot(client->table, lock) || !hfi_set_add(&shard->locks, wanted.hash, lock))) {
            if (lock->slot != HFI_NO_SLOT)
                give_slot(client->table, lock->slot);
            hfi_lock_free(lock);
            status = hfi_fail(error, HF_NOMEM, "", "no memory for another lock name");
        }
    } else {
        atomic_fetch_add(&lock->references, 1);
    }
    (void)pthread_mutex_unlock(&shard->mutex);
    HFI_PERTURB("table-found");
    *found = status == HF_OK ? lock : NULL;
    return status;
}

void hfi_table_ref(struct hfi_lock *lock)
{
    atomic_fetch_add(&lock->references, 1);
}

/* Only under the shard's mutex does a lock lose its last reference, so nobody can find it on its way out. */
void hfi_table_unref(struct hfi_lock *lock)
{
    hf_client *client = lock->client;
    int references = atomic_load(&lock->references);
    while (references > 1)
        if (atomic_compare_exchange_weak(&lock->references, &references, references - 1))
            return;
    HFI_PERTURB("table-last-reference");
    struct shard *shard = shard_of(client, lock->hash);
    (void)pthread_mutex_lock(&shard->mutex);
    bool last = atomic_fetch_sub(&lock->references, 1) == 1;
    if (last) {
        hfi_set_remove(&shard->locks, lock->hash, lock);
        give_slot(client->table, lock->slot); /* before it can be found no more: by_grant takes no shard mutex */
    }
    (void)pthread_mutex_unlock(&shard->mutex);
    if (last)
        hfi_lock_free(lock);
}

struct hfi_lock *hfi_table_by_grant(hf_client *client, uint64_t grant)
{
    struct hfi_table *table = client->table;
    size_t slot = grant & (((uint64_t)1 << SLOT_BITS) - 1);
    (void)pthread_mutex_lock(&table->slot_mutex);
    struct hfi_lock *lock = slot < table->slot_room ? table->slots[slot] : NULL;
    /* A lock whose last reference is just going must not come back to life. */
    if (lock != NULL) {
        int references = atomic_load(&lock->references);
        while (references > 0 && !atomic_compare_exchange_weak(&lock->references, &references, references + 1))
            ;
        if (references == 0)
            lock = NULL;
    }
    (void)pthread_mutex_unlock(&table->slot_mutex);
    HFI_PERTURB("table-found-by-grant");
    return lock;
}

uint64_t hfi_table_grant(hf_client *client, const struct hfi_lock *lock)
{
    return (atomic_fetch_add(&client->grants, 1) + 1) << SLOT_BITS | lock->slot;
}

size_t hfi_table_count(hf_client *client)
{
    (void)pthread_mutex_lock(&client->table->slot_mutex);
    size_t count = client->table->count;
    (void)pthread_mutex_unlock(&client->table->slot_mutex);
    return count;
}

void hfi_table_each(hf_client *client, void (*visit)(struct hfi_lock *lock, void *arg), void *arg)
{
    struct hfi_table *table = client->table;
    for (size_t slot = 0;; slot++) {
        (void)pthread_mutex_lock(&table->slot_mutex);
        bool over = slot >= table->slot_room;
        (void)pthread_mutex_unlock(&table->slot_mutex);
        if (over)
            return;
        struct hfi_lock *lock = hfi_table_by_grant(client, slot);
        if (lock == NULL)
            continue;
        visit(lock, arg);
        hfi_table_unref(lock);
    }
}

static void renew_one(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&lock->mutex);
    hfi_entry_renew_now(&lock->entry);
    hfi_lock_set_timer(lock);
    (void)pthread_mutex_unlock(&lock->mutex);
}

void hfi_table_renew_all(hf_client *client)
{
    hfi_table_each(client, renew_one, NULL);
}
