/* SPDX-License-Identifier: MIT */
/* key_events.c - see key_events.h. */
#include "core/lock/key_events.h"
#include "core/context/call.h"
#include "core/context/dialects.h"
#include "base/buffer.h"
#include "core/lock/lock.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "core/protocol/wire.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_ROOM 40

const char *hfi_key_events_text(enum hfi_key_events_state state)
{
    static const char *const texts[] = {"not known yet", "off by option", "in force", "not configured (as-is)",
                                        "not allowed by the server"};
    return texts[state];
}

bool hfi_key_events_merge(const char *configured, const char *needed, char *out, size_t capacity)
{
    /* A stands for all event classes; K publishes them on the key's channel. */
    bool all = strchr(configured, 'A') != NULL, missing = strchr(configured, 'K') == NULL;
    int size = snprintf(out, capacity, "%s%s", configured, missing ? "K" : "");
    for (const char *flag = needed; !all && *flag != 0; flag++)
        if (strchr(out, *flag) == NULL && (size_t)size + 2 < capacity) {
            out[size++] = *flag;
            out[size] = 0;
            missing = true;
        }
    return missing;
}

/* g: what is deleted; x: what expires; e: what is evicted. */
static void print_needed(const struct hfi_dialect *known, char out[16])
{
    size_t size = (size_t)snprintf(out, 16, "gxe");
    for (const struct hfi_dialect *at = known; at != NULL; at = at->next)
        if (*at->key_events != 0 && strchr(out, *at->key_events) == NULL && size + 1 < 16) {
            out[size++] = *at->key_events;
            out[size] = 0;
        }
}

static void set_state(hf_client *client, enum hfi_key_events_state state)
{
    if (atomic_exchange(&client->events_state, (int)state) != (int)state && state != HFI_EVENTS_ON)
        hfi_log(&client->log, HF_LOG_INFO, "keyspace events are %s: foreign releases are seen %s", hfi_key_events_text(state),
                state == HFI_EVENTS_OFF ? "at the timed re-check" : "by client tracking, or at the timed re-check");
}

/* False: no memory for the command. */
static bool list(hf_client *client, int lock_lane, struct hfi_command *command, hfi_command_done *done)
{
    if (command == NULL)
        return false;
    struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_LOCK_LANE, (uint64_t)lock_lane);
    hfi_client_ref(client);
    *hfi_command_context(command, int) = lock_lane;
    command->optional = true;
    hfi_call_list(client, lane, command, done, client, hfi_now(client->clock));
    hfi_lane_flush(lane);
    return true;
}

/* A dialect has come since the flags were put together that were set last. */
static void look_if_more(hf_client *client, int lane)
{
    if (hfi_dialects_first(client) != atomic_load(&client->events_known))
        hfi_key_events_look(client, lane);
}

static void configured(struct hfi_command *command)
{
    hf_client *client = command->self;
    if (command->outcome == HFI_ANSWERED) {
        bool done = command->reply->type == REDIS_REPLY_STATUS;
        set_state(client, done ? HFI_EVENTS_ON : HFI_EVENTS_FORBIDDEN);
        if (done) {
            atomic_store(&client->events_set_ns, command->answered_ns);
            hfi_log(&client->log, HF_LOG_INFO, "switched on keyspace events (notify-keyspace-events) at %s",
                    hfi_pool_server_name(client->pool));
        }
    }
    atomic_store(&client->events_asked, false);
    look_if_more(client, *hfi_command_context(command, int));
    hfi_client_unref(client);
}

/* Sets the flags, unless another lane has set them since this one read the configuration. */
static void configure(hf_client *client, struct hfi_command *look, const struct hfi_dialect *known, const char *flags)
{
    int lane = *hfi_command_context(look, int);
    bool is_late = look->stamp_ns <= atomic_load(&client->events_set_ns);
    const struct hfi_dialect *before = is_late ? NULL : atomic_exchange(&client->events_known, known);
    if (!is_late && list(client, lane, hfi_wire_words("CONFIG", "SET", "notify-keyspace-events", flags, NULL), configured))
        return;
    if (!is_late)
        atomic_store(&client->events_known, before);
    atomic_store(&client->events_asked, false);
    if (is_late)
        look_if_more(client, lane);
}

static void looked(struct hfi_command *command)
{
    hf_client *client = command->self;
    const redisReply *reply = command->outcome == HFI_ANSWERED ? command->reply : NULL;
    char merged[64], needed[16];
    if (reply != NULL && (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
                          reply->element[1]->type != REDIS_REPLY_STRING)) {
        set_state(client, HFI_EVENTS_FORBIDDEN);
    } else if (reply != NULL) {
        const struct hfi_dialect *known = hfi_dialects_first(client);
        print_needed(known, needed);
        if (!hfi_key_events_merge(reply->element[1]->str, needed, merged, sizeof merged))
            set_state(client, HFI_EVENTS_ON);
        else if (strcmp(client->keyspace_events, "as-is") == 0)
            set_state(client, HFI_EVENTS_MISSING);
        else if (!atomic_exchange(&client->events_asked, true))
            configure(client, command, known, merged);
    }
    hfi_client_unref(client);
}

void hfi_key_events_look(hf_client *client, int lane)
{
    if (strcmp(client->keyspace_events, "off") == 0)
        atomic_store(&client->events_state, HFI_EVENTS_OFF);
    else if (hfi_pool_is_lock_lane(client->pool, lane))
        (void)list(client, lane, hfi_wire_words("CONFIG", "GET", "notify-keyspace-events", NULL), looked);
}

void hfi_key_events_look_again(hf_client *client)
{
    for (int lane = 0; hfi_pool_is_lock_lane(client->pool, lane); lane++)
        hfi_key_events_look(client, lane);
}

/* Writes the part of a channel that precedes the key and returns its length. */
static size_t print_prefix(const hf_client *client, char out[PREFIX_ROOM])
{
    return (size_t)snprintf(out, PREFIX_ROOM, "__keyspace@%d__:", client->database);
}

void hfi_key_events_watch(struct hfi_lock *lock, bool on)
{
    HFI_ASSERT_HELD(lock->mutex);
    hf_client *client = lock->client;
    char channel[PREFIX_ROOM + HFI_ANY_KEY_MOST];
    if (on == lock->watched || (on && strcmp(client->keyspace_events, "off") == 0))
        return;
    size_t key_size, size = print_prefix(client, channel);
    const char *key = hfi_watched_key(&lock->keys, &key_size);
    memcpy(channel + size, key, key_size);
    size += key_size;
    lock->watched = on;
    if (on) {
        hfi_table_ref(lock);
        (void)hfi_pool_subscribe(client->pool, channel, size);
    } else {
        hfi_pool_unsubscribe(client->pool, channel, size);
        hfi_table_unref(lock); /* never the last: the caller has one */
    }
}

void hfi_key_events_requery(struct hfi_lock *lock)
{
    struct hfi_step step;
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, 0);
    if (lock->watched)
        hfi_entry_requery(&lock->entry, &step);
    hfi_lock_perform(lock, &step, NULL);
    hfi_lock_leave(lock);
}

const char *hfi_key_events_key(const hf_client *client, const char *channel, size_t channel_size, size_t *size)
{
    char prefix[PREFIX_ROOM];
    size_t before = print_prefix(client, prefix);
    bool is_one = channel_size > before && memcmp(channel, prefix, before) == 0;
    *size = is_one ? channel_size - before : 0;
    return is_one ? channel + before : NULL;
}

bool hfi_key_events_is_end(const char *event, size_t size)
{
    static const char *const ends[] = {"del",  "expired", "evicted", "rename_from", /* the key is gone; in some dialects: */
                                       "srem", "incrby",  "lpush",   "rpush"};
    bool is_end = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        is_end = is_end || (strlen(ends[i]) == size && memcmp(ends[i], event, size) == 0);
    return is_end;
}
