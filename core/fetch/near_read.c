/* SPDX-License-Identifier: MIT */
/* near_read.c - see near_read.h. Reads under way are few, so a shard is a list. */
#include "core/fetch/near_read.h"
#include "base/perturb.h"
#include "core/context/context.h"

#include <stdlib.h>
#include <string.h>

#define SHARDS 64

struct hfi_near_reads {
    struct shard {
        struct hfi_mutex mutex;
        struct hfi_list reads;
    } shards[SHARDS];
};

bool hfi_near_reads_open(hf_client *client)
{
    struct hfi_near_reads *reads = malloc(sizeof *reads);
    if (reads == NULL)
        return false;
    for (int i = 0; i < SHARDS; i++) {
        hfi_mutex_init(&reads->shards[i].mutex, HFI_RANK_OUTER);
        hfi_list_init(&reads->shards[i].reads);
    }
    client->near_reads = reads;
    return true;
}

void hfi_near_reads_free(hf_client *client)
{
    if (client->near_reads == NULL)
        return;
    for (int i = 0; i < SHARDS; i++)
        hfi_mutex_destroy(&client->near_reads->shards[i].mutex);
    free(client->near_reads);
    client->near_reads = NULL;
}

static struct shard *shard_of(hf_client *client, const struct hfi_name *key)
{
    return &client->near_reads->shards[key->hash % SHARDS];
}

static bool is_same(const struct hfi_near_read *a, const struct hfi_near_read *b)
{
    return a->reading.epoch == b->reading.epoch && a->reading.changes == b->reading.changes && a->key->hash == b->key->hash &&
           a->key->size == b->key->size && memcmp(a->key->text, b->key->text, a->key->size) == 0;
}

bool hfi_near_read_begin(hf_client *client, const struct hfi_name *key, const struct hfi_near_reading *reading,
                         struct hfi_near_read *read)
{
    struct shard *shard = shard_of(client, key);
    *read = (struct hfi_near_read){.key = key, .reading = *reading};
    hfi_list_init(&read->link);
    hfi_list_init(&read->others);
    hfi_park_init(&read->park);
    hfi_mutex_lock(&shard->mutex);
    struct hfi_list *at = shard->reads.next;
    for (; at != &shard->reads; at = at->next) {
        struct hfi_near_read *other = hfi_container_of(at, struct hfi_near_read, link);
        if (is_same(other, read)) {
            hfi_list_append(&other->others, &read->link);
            break;
        }
    }
    bool is_first = at == &shard->reads;
    if (is_first)
        hfi_list_append(&shard->reads, &read->link);
    hfi_mutex_unlock(&shard->mutex);
    return is_first;
}

void hfi_near_read_end(hf_client *client, struct hfi_near_read *read, const struct hfi_near_found *found)
{
    struct shard *shard = shard_of(client, read->key);
    HFI_PERTURB("near-read-to-others");
    hfi_mutex_lock(&shard->mutex);
    hfi_list_remove(&read->link);
    while (!hfi_list_is_empty(&read->others)) {
        struct hfi_near_read *other = hfi_list_first(&read->others, struct hfi_near_read, link);
        hfi_list_remove(&other->link);
        other->found = *found;
        if (found->body != NULL)
            hfi_body_ref(found->body);
        other->done = true;
        hfi_park_wake(&other->park);
    }
    hfi_mutex_unlock(&shard->mutex);
}

hf_status hfi_near_read_wait(hf_client *client, struct hfi_near_read *read, hf_cancel *cancel, int64_t until_ns)
{
    struct shard *shard = shard_of(client, read->key);
    struct hfi_wait wait;
    hfi_wait_begin(&wait, client, cancel, &read->park, until_ns);
    wait.is_hurried = true; /* close shortens the reader's time, and so ours */
    hfi_mutex_lock(&shard->mutex);
    hf_status status = hfi_wait_for(&wait, &read->done, &shard->mutex, NULL);
    hfi_mutex_unlock(&shard->mutex);
    hfi_wait_end(&wait);
    hfi_mutex_lock(&shard->mutex);
    hfi_list_remove(&read->link);
    if (read->done) /* also where the wait was over at the same moment */
        status = HF_OK;
    hfi_mutex_unlock(&shard->mutex);
    return status;
}
