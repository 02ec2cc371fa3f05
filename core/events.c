/* SPDX-License-Identifier: MIT */
/* events.c - see events.h. */
#include "core/events.h"
#include "base/buffer.h"
#include "base/perturb.h"
#include "core/lock.h"
#include "core/table.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct hfi_watch { /* a foreign lock that somebody waits for */
    struct hfi_list  link; /* client->watches */
    struct hfi_lock *lock; /* a reference */
    size_t size;
    char   channel[];
};

const char *hfi_events_text(enum hfi_events_state state)
{
    static const char *const texts[] = {"not known yet", "off by option", "in force", "not configured (as-is)",
                                        "not allowed by the server"};
    return texts[state];
}

bool hfi_events_merge(const char *configured, char *out, size_t room)
{
    /* A stands for all classes, g x e among them; K says that they are published by key. */
    bool all = strchr(configured, 'A') != NULL;
    char missing[5] = "";
    int count = 0;
    for (const char *flag = "Kgxe"; *flag != 0; flag++)
        if (strchr(configured, *flag) == NULL && (*flag == 'K' || !all))
            missing[count++] = *flag;
    (void)snprintf(out, room, "%s%s", configured, missing);
    return count > 0;
}

static void set_state(hf_client *client, enum hfi_events_state state)
{
    int before = atomic_exchange(&client->events_state, (int)state);
    if (before != (int)state && state != HFI_EVENTS_ON)
        hfi_log(&client->log, HF_LOG_INFO, "keyspace events are %s: foreign releases are seen at the timed re-check",
                hfi_events_text(state));
}

static void list(hf_client *client, struct hfi_command *command, hfi_command_done *done)
{
    int64_t now = hfi_now(client->clock);
    if (command == NULL)
        return;
    struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_LOCK_LANE, 0);
    hfi_client_ref(client);
    command->done = done;
    command->self = client;
    command->until_ns = now + client->command_ms * HFI_MS;
    hfi_lane_list(lane, command);
    hfi_command_unref(command);
    hfi_lane_flush(lane);
}

static void configured(struct hfi_command *command)
{
    hf_client *client = command->self;
    if (command->outcome == HFI_ANSWERED) {
        bool done = command->reply->type == REDIS_REPLY_STATUS;
        set_state(client, done ? HFI_EVENTS_ON : HFI_EVENTS_FORBIDDEN);
        if (done)
            hfi_log(&client->log, HF_LOG_INFO, "switched on keyspace events (notify-keyspace-events) at %s",
                    hfi_pool_server_name(client->pool));
    }
    hfi_client_unref(client);
}

static void looked(struct hfi_command *command)
{
    hf_client *client = command->self;
    const redisReply *reply = command->outcome == HFI_ANSWERED ? command->reply : NULL;
    char merged[64];
    if (reply != NULL && (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
                          reply->element[1]->type != REDIS_REPLY_STRING)) {
        set_state(client, HFI_EVENTS_FORBIDDEN);
    } else if (reply != NULL) {
        if (!hfi_events_merge(reply->element[1]->str, merged, sizeof merged))
            set_state(client, HFI_EVENTS_ON);
        else if (strcmp(client->keyspace_events, "as-is") == 0)
            set_state(client, HFI_EVENTS_MISSING);
        else
            list(client, hfi_wire_words("CONFIG", "SET", "notify-keyspace-events", merged, NULL), configured);
    }
    hfi_client_unref(client);
}

void hfi_events_look(hf_client *client, int lane)
{
    if (strcmp(client->keyspace_events, "off") == 0)
        atomic_store(&client->events_state, HFI_EVENTS_OFF);
    else if (lane == hfi_lane_index(hfi_pool_lane(client->pool, HFI_LOCK_LANE, 0)))
        list(client, hfi_wire_words("CONFIG", "GET", "notify-keyspace-events", NULL), looked);
}

static struct hfi_watch *find_locked(hf_client *client, const char *channel, size_t size)
{
    for (struct hfi_list *at = client->watches.next; at != &client->watches; at = at->next) {
        struct hfi_watch *watch = hfi_of(at, struct hfi_watch, link);
        if (watch->size == size && memcmp(watch->channel, channel, size) == 0)
            return watch;
    }
    return NULL;
}

static void begin_watch(struct hfi_lock *lock)
{
    hf_client *client = lock->client;
    char prefix[40];
    size_t prefix_size =
        (size_t)snprintf(prefix, sizeof prefix, "__keyspace@%d__:", client->database);
    struct hfi_watch *watch = malloc(sizeof *watch + prefix_size + lock->keys.lock_size);
    if (watch == NULL)
        return;
    watch->size = prefix_size + lock->keys.lock_size;
    memcpy(watch->channel, prefix, prefix_size);
    memcpy(watch->channel + prefix_size, lock->keys.lock, lock->keys.lock_size);
    watch->lock = lock;
    hfi_table_ref(lock);
    (void)pthread_mutex_lock(&client->watch_mutex);
    hfi_list_append(&client->watches, &watch->link);
    (void)pthread_mutex_unlock(&client->watch_mutex);
    lock->watch = watch;
    (void)hfi_pool_subscribe(client->pool, watch->channel, watch->size);
}

static void end_watch(struct hfi_lock *lock)
{
    hf_client *client = lock->client;
    struct hfi_watch *watch = lock->watch;
    (void)pthread_mutex_lock(&client->watch_mutex);
    hfi_list_remove(&watch->link);
    (void)pthread_mutex_unlock(&client->watch_mutex);
    lock->watch = NULL;
    hfi_pool_unsubscribe(client->pool, watch->channel, watch->size);
    free(watch);
    hfi_table_unref(lock); /* never the last: the caller has one */
}

void hfi_events_watch(struct hfi_lock *lock, bool on)
{
    if (on && lock->watch == NULL && strcmp(lock->client->keyspace_events, "off") != 0)
        begin_watch(lock);
    else if (!on && lock->watch != NULL)
        end_watch(lock);
}

static void ask_again(hf_client *client, const char *channel, size_t channel_size)
{
    struct hfi_actions actions;
    struct hfi_lock *lock = NULL;
    (void)pthread_mutex_lock(&client->watch_mutex);
    struct hfi_watch *watch = find_locked(client, channel, channel_size);
    if (watch != NULL) {
        lock = watch->lock;
        hfi_table_ref(lock);
    }
    (void)pthread_mutex_unlock(&client->watch_mutex);
    if (lock == NULL)
        return;
    HFI_PERTURB("watch-found");
    hfi_actions_init(&actions);
    int64_t now = hfi_lock_enter(lock);
    hfi_entry_nudged(&lock->entry, now, &actions);
    hfi_lock_perform(lock, &actions, now, NULL);
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    hfi_table_unref(lock);
}

void hfi_events_heard(hf_client *client, const char *channel, size_t channel_size, const char *event, size_t size)
{
    static const char *const ends[] = {"del", "expired", "evicted", "rename_from"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (strlen(ends[i]) == size && memcmp(ends[i], event, size) == 0)
            ask_again(client, channel, channel_size);
}

/* Acknowledged: the key may have gone before. Ask, and only then rely on the events. */
void hfi_events_subscribed(hf_client *client, const char *channel, size_t channel_size)
{
    ask_again(client, channel, channel_size);
}
