/* SPDX-License-Identifier: MIT */
/* channels.c - a chained hash table of channels, and a to-do list per subscriber. */
#include "base/hash.h"
#include "base/mutex.h"
#include "pool/channels.h"
#include "pool/owner.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BUCKETS 64

struct subscriber_lists {
    struct hfi_list all, todo;
};

struct hfi_channels {
    struct hfi_mutex mutex;
    struct hfi_list *buckets;
    size_t bucket_count, channel_count; /* bucket_count is a power of two */
    int subscribers;
    struct subscriber_lists lists[];
};

static struct hfi_list *new_buckets(size_t count)
{
    struct hfi_list *buckets = malloc(count * sizeof *buckets);
    for (size_t i = 0; buckets != NULL && i < count; i++)
        hfi_list_init(&buckets[i]);
    return buckets;
}

struct hfi_channels *hfi_channels_new(int subscribers)
{
    struct hfi_channels *channels =
        calloc(1, sizeof *channels + ((size_t)subscribers + 1) * sizeof channels->lists[0]);
    if (channels == NULL)
        return NULL;
    channels->buckets = new_buckets(FIRST_BUCKETS);
    if (channels->buckets == NULL) {
        free(channels);
        return NULL;
    }
    channels->bucket_count = FIRST_BUCKETS;
    channels->subscribers = subscribers;
    hfi_mutex_init(&channels->mutex, HFI_RANK_LEAF);
    for (int i = 0; i <= subscribers; i++) {
        hfi_list_init(&channels->lists[i].all);
        hfi_list_init(&channels->lists[i].todo);
    }
    return channels;
}

static void lock(struct hfi_channels *channels)
{
    hfi_mutex_lock(&channels->mutex);
}

static void unlock(struct hfi_channels *channels)
{
    hfi_mutex_unlock(&channels->mutex);
}

static void forget_locked(struct hfi_channels *channels, struct hfi_channel *channel)
{
    hfi_list_remove(&channel->chain);
    hfi_list_remove(&channel->all);
    hfi_list_remove(&channel->todo);
    channels->channel_count--;
    free(channel);
}

void hfi_channels_free(struct hfi_channels *channels)
{
    if (channels == NULL)
        return;
    for (int i = 0; i <= channels->subscribers; i++)
        while (!hfi_list_is_empty(&channels->lists[i].all))
            forget_locked(channels, hfi_list_first(&channels->lists[i].all, struct hfi_channel, all));
    hfi_mutex_destroy(&channels->mutex);
    free(channels->buckets);
    free(channels);
}

static struct hfi_list *bucket_locked(struct hfi_channels *channels, uint64_t hash)
{
    return &channels->buckets[(hash ^ (hash >> 32)) & (channels->bucket_count - 1)];
}

static struct hfi_channel *find_locked(struct hfi_channels *channels, const char *name, size_t size)
{
    uint64_t hash = hfi_hash(HFI_HASH_BEGIN, name, size);
    struct hfi_list *bucket = bucket_locked(channels, hash);
    for (struct hfi_list *at = bucket->next; at != bucket; at = at->next) {
        struct hfi_channel *channel = hfi_container_of(at, struct hfi_channel, chain);
        if (channel->hash == hash && channel->size == size && memcmp(channel->name, name, size) == 0)
            return channel;
    }
    return NULL;
}

/* Without memory the chains only become longer. */
static void grow_locked(struct hfi_channels *channels)
{
    size_t count = channels->bucket_count * 2;
    struct hfi_list *buckets = channels->channel_count > channels->bucket_count ? new_buckets(count) : NULL;
    if (buckets == NULL)
        return;
    free(channels->buckets);
    channels->buckets = buckets;
    channels->bucket_count = count;
    for (int i = 0; i <= channels->subscribers; i++) {
        struct hfi_list *all = &channels->lists[i].all;
        for (struct hfi_list *at = all->next; at != all; at = at->next) {
            struct hfi_channel *channel = hfi_container_of(at, struct hfi_channel, all);
            hfi_list_append(bucket_locked(channels, channel->hash), &channel->chain);
        }
    }
}

static int subscriber_of(const struct hfi_channels *channels, const struct hfi_channel *channel)
{
    bool invalidates = channel->size == strlen(HFI_INVALIDATIONS) && memcmp(channel->name, HFI_INVALIDATIONS, channel->size) == 0;
    return invalidates ? channels->subscribers : (int)(channel->hash % (uint64_t)channels->subscribers);
}

static struct hfi_channel *add_locked(struct hfi_channels *channels, const char *name, size_t size)
{
    struct hfi_channel *channel = calloc(1, sizeof *channel + size);
    if (channel == NULL)
        return NULL;
    memcpy(channel->name, name, size);
    channel->size = size;
    channel->hash = hfi_hash(HFI_HASH_BEGIN, name, size);
    channel->subscriber = subscriber_of(channels, channel);
    hfi_list_init(&channel->todo);
    hfi_list_append(&channels->lists[channel->subscriber].all, &channel->all);
    hfi_list_append(bucket_locked(channels, channel->hash), &channel->chain);
    channels->channel_count++;
    grow_locked(channels);
    return channel;
}

static void remember_locked(struct hfi_channels *channels, struct hfi_channel *channel)
{
    hfi_list_remove(&channel->todo);
    hfi_list_append(&channels->lists[channel->subscriber].todo, &channel->todo);
}

bool hfi_channels_want(struct hfi_channels *channels, const char *name, size_t size, bool *changed)
{
    lock(channels);
    struct hfi_channel *channel = find_locked(channels, name, size);
    if (channel == NULL)
        channel = add_locked(channels, name, size);
    *changed = channel != NULL && (channel->wanted++ == 0 || channel->live); /* the latter: who wants it now has missed what came before */
    if (*changed)
        remember_locked(channels, channel);
    unlock(channels);
    return channel != NULL;
}

void hfi_channels_unwant(struct hfi_channels *channels, const char *name, size_t size, bool *changed)
{
    lock(channels);
    struct hfi_channel *channel = find_locked(channels, name, size);
    *changed = channel != NULL && channel->wanted > 0 && --channel->wanted == 0;
    if (*changed)
        remember_locked(channels, channel);
    unlock(channels);
}

bool hfi_channels_is_live(struct hfi_channels *channels, const char *name, size_t size)
{
    lock(channels);
    const struct hfi_channel *channel = find_locked(channels, name, size);
    bool live = channel != NULL && channel->live && channel->wanted > 0;
    unlock(channels);
    return live;
}

bool hfi_channels_any(struct hfi_channels *channels, int subscriber)
{
    lock(channels);
    bool any = !hfi_list_is_empty(&channels->lists[subscriber].all);
    unlock(channels);
    return any;
}

struct hfi_channel *hfi_channels_next(struct hfi_channels *channels, int subscriber,
                                      enum hfi_channel_step *step)
{
    struct hfi_list *todo = &channels->lists[subscriber].todo;
    struct hfi_channel *channel = NULL;
    *step = HFI_CHANNEL_REST;
    lock(channels);
    while (*step == HFI_CHANNEL_REST && !hfi_list_is_empty(todo)) {
        channel = hfi_container_of(todo->next, struct hfi_channel, todo);
        hfi_list_remove(&channel->todo);
        bool wanted = channel->wanted > 0;
        if (wanted != channel->asked) {
            *step = wanted ? HFI_CHANNEL_ASK : HFI_CHANNEL_DROP;
            channel->asked = wanted;
            channel->live = false;
            channel->owed++;
        } else if (wanted && channel->live) {
            *step = HFI_CHANNEL_LIVE;
        } else if (!wanted && channel->owed == 0) {
            forget_locked(channels, channel);
        }
    }
    unlock(channels);
    return *step == HFI_CHANNEL_REST ? NULL : channel;
}

bool hfi_channels_confirm(struct hfi_channels *channels, struct hfi_channel *channel)
{
    lock(channels);
    if (channel->owed > 0)
        channel->owed--;
    channel->live = channel->owed == 0 && channel->asked;
    bool live = channel->live && channel->wanted > 0;
    if (channel->owed == 0 && !channel->asked && channel->wanted == 0)
        forget_locked(channels, channel);
    unlock(channels);
    return live;
}

bool hfi_channels_refuse(struct hfi_channels *channels, struct hfi_channel *channel)
{
    lock(channels);
    if (channel->owed > 0)
        channel->owed--;
    channel->live = false; /* `asked` stays: asking again on this connection is of no use */
    bool was_subscribe = channel->asked == (channel->owed % 2 == 0); /* the two commands alternate, and `asked` is the last one */
    if (channel->owed == 0 && !channel->asked && channel->wanted == 0)
        forget_locked(channels, channel);
    unlock(channels);
    return was_subscribe;
}

void hfi_channels_lose(struct hfi_channels *channels, int subscriber)
{
    struct hfi_list *all = &channels->lists[subscriber].all, *next;
    lock(channels);
    for (struct hfi_list *at = all->next; at != all; at = next) {
        struct hfi_channel *channel = hfi_container_of(at, struct hfi_channel, all);
        next = at->next;
        channel->asked = channel->live = false;
        channel->owed = 0;
        if (channel->wanted > 0)
            remember_locked(channels, channel);
        else
            forget_locked(channels, channel);
    }
    unlock(channels);
}
