/* SPDX-License-Identifier: MIT */
/* inbound.c - see inbound.h. */
#include "core/lock/inbound.h"
#include "core/context/dialects.h"
#include "core/lock/members.h"
#include "core/lock/deadlock.h"
#include "core/lock/retire.h"
#include "core/lock/grants.h"
#include "core/lock/key_events.h"
#include "core/lock/info.h"
#include "core/lock/observer.h"
#include "core/lock/perform.h"
#include "core/protocol/message.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/lock/tracking.h"
#include "base/perturb.h"

#include <string.h>

/* Only a fence that fence.c accepts may raise the highest fence seen: any client can publish a grant message. */
static void granted(struct hfi_lock *lock, const struct hfi_message *message, bool good, struct hfi_step *step)
{
    if (!hfi_entry_granted(&lock->entry, message->echo, message->fence, good, step))
        return;
    hfi_count(lock->client, hand_offs_taken);
    lock->there = true;
    if (good)
        (void)hfi_fence_accept(lock->client, message->fence, HFI_FENCE_BLOCK, 0, 0, step->now);
}

/* A token waits for one lock. An older program does not say which one it has handed on. */
static bool is_of(const struct hfi_lock *lock, const struct hfi_message *message)
{
    return message->key_size == 0 || (message->key_size == lock->keys.lock_size &&
                                      memcmp(message->key, lock->keys.lock, message->key_size) == 0);
}

/* True: the message named the token in use, or one that a break may have put in its place. */
static bool concerns(struct hfi_lock *lock, const struct hfi_message *message, struct hfi_token token)
{
    struct hfi_step step;
    int64_t rtt = hfi_lane_rtt_ns(lock->lane);
    HFI_PERTURB("message-to-entry");
    int64_t now = hfi_lock_enter(lock);
    lock = hfi_lock_of_grant(lock, token.grant);
    hfi_step_init(&step, now, rtt);
    bool good = message->letter == 'G' && hfi_fence_is_good(message->fence, 0, hfi_server_time_at_least(lock->client, now), 0);
    bool is_current = lock->entry.remote != HFI_NOTHING && hfi_token_is_same(lock->token, token);
    bool known = is_current;
    if (lock->token.grant == token.grant && (!is_current || message->letter == 'B')) {
        if (message->letter == 'B' && lock->entry.remote == HFI_HELD)
            hfi_retire_note_break(lock, message);
        known = hfi_entry_token_questioned(&lock->entry, &step);
        hfi_lock_perform(lock, &step, NULL);
    } else if (is_current) {
        switch (message->letter) {
        case 'G':
            if (is_of(lock, message))
                granted(lock, message, good, &step);
            else
                hfi_entry_requery(&lock->entry, &step);
            break;
        case 'R':
            hfi_entry_remote_waiter(&lock->entry, &step);
            break;
        case 'F':
            hfi_entry_requery(&lock->entry, &step);
            break;
        case 'I':
            hfi_info_tell(lock, message);
            break;
        }
        hfi_lock_perform(lock, &step, NULL);
    }
    if (message->letter == 'R' && lock->keys.use == HFI_SEMAPHORE) /* the one that it names may have been given back meanwhile */
        hfi_grants_wanted(lock, now);
    hfi_lock_leave(lock);
    return known;
}

/* The threads that wait for this lock ask the server. Takes over the reference; NULL: none of this client's. */
static void may_be_free(hf_client *client, struct hfi_lock *lock)
{
    struct hfi_lock *readers;
    if (lock == NULL)
        return;
    HFI_PERTURB("watch-found");
    hfi_key_events_requery(lock);
    struct hfi_name name = hfi_keys_name_as(&lock->keys, HFI_SHARED);
    bool may_share = lock->keys.use == HFI_MUTEX && atomic_load_explicit(&client->shares, memory_order_relaxed);
    if (may_share && hfi_table_get(client, &name, &readers, NULL) == HF_OK) {
        hfi_key_events_requery(readers);
        hfi_table_unref(readers);
    }
    hfi_table_unref(lock);
}

/* What marks another library's lock is gone, or went before we were subscribed to the key's events. */
static void key_ended(hf_client *client, const char *key, size_t size)
{
    may_be_free(client, hfi_table_by_key(client, NULL, key, size));
    for (const struct hfi_dialect *at = hfi_dialects_first(client); at != NULL; at = at->next) {
        if (!at->is_member)
            may_be_free(client, hfi_table_by_key(client, at, key, size));
        else if (strlen(at->parameter) == size && memcmp(at->parameter, key, size) == 0)
            hfi_members_changed(client, at);
    }
}

static void requery_any(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    hfi_key_events_requery(lock);
}

/* It need not have ended: a foreign holder that extends its lock is told of too. */
static void invalidated(hf_client *client, const char *key, size_t size)
{
    if (key == NULL)
        hfi_table_each(client, requery_any, NULL);
    else
        key_ended(client, key, size);
}

void hfi_inbound_message(void *self, const char *channel, size_t channel_size, const char *text, size_t size)
{
    hf_client *client = self;
    struct hfi_message message;
    struct hfi_token token;
    if (hfi_tracking_is_channel(channel, channel_size)) {
        invalidated(client, text, size);
        return;
    }
    if (channel_size != HFI_CHANNEL_SIZE || memcmp(channel, client->identity.channel, channel_size) != 0) {
        size_t key_size;
        const char *key = hfi_key_events_key(client, channel, channel_size, &key_size);
        if (!hfi_observers_notice(client, channel, channel_size, text, size) && key != NULL && hfi_key_events_is_end(text, size))
            key_ended(client, key, key_size);
        return;
    }
    if (!hfi_message_parse(text, size, &message))
        return;
    if (message.letter == 'A') {
        hfi_info_on_message(client, &message);
        hfi_observers_answer(client, &message);
        return;
    }
    if (message.letter == 'D' || message.letter == 'E') {
        hfi_deadlocks_message(client, &message);
        return;
    }
    if (!hfi_token_is_of(&client->identity, message.token, message.token_size, &token))
        return;
    struct hfi_lock *lock = hfi_table_by_grant(client, token.grant);
    bool known = lock != NULL && concerns(lock, &message, token);
    if (!known) /* and never will be: a token is known before it is sent, and used once */
        hfi_retire_heal(client, lock, token, &message);
    if (lock != NULL)
        hfi_table_unref(lock);
}

static void happens(struct hfi_lock *lock, void (*what)(struct hfi_entry *, struct hfi_step *))
{
    struct hfi_step step;
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, 0);
    what(&lock->entry, &step);
    hfi_lock_perform(lock, &step, NULL);
    hfi_lock_leave(lock);
}

static void ask_again(struct hfi_lock *lock, void *lane)
{
    if (hfi_lane_index(lock->lane) == *(const int *)lane)
        happens(lock, hfi_entry_ask_together);
}

static void look_around(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    happens(lock, hfi_entry_missed);
}

/* Messages published while the subscription was down are lost: every waiter asks again, and every holder renews to
 * learn whether another process waits. */
void hfi_inbound_subscribed(void *self, const char *channel, size_t channel_size)
{
    hf_client *client = self;
    size_t key_size;
    const char *key = hfi_key_events_key(client, channel, channel_size, &key_size);
    if (channel_size == HFI_CHANNEL_SIZE && memcmp(channel, client->identity.channel, channel_size) == 0)
        hfi_table_each(client, look_around, NULL);
    else if (hfi_tracking_is_channel(channel, channel_size))
        hfi_tracking_subscribed(client);
    else if (!hfi_observers_notice(client, channel, channel_size, NULL, 0) && key != NULL)
        key_ended(client, key, key_size);
}

void hfi_inbound_lane_up(void *self, int lane)
{
    hf_client *client = self;
    hfi_key_events_look(client, lane);
    hfi_table_each(client, ask_again, &lane);
    /* The connection that is gone was told of changes of all sets, whatever the lanes of those that wait. */
    for (const struct hfi_dialect *at = hfi_dialects_first(client); lane == 0 && at != NULL; at = at->next)
        if (at->is_member && hfi_tracking_is_needed(client))
            hfi_members_changed(client, at);
}
