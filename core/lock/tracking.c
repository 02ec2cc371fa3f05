/* SPDX-License-Identifier: MIT */
/* tracking.c - see tracking.h. */
#include "core/lock/tracking.h"
#include "base/perturb.h"
#include "core/context/call.h"
#include "core/lock/key_events.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"
#include "core/protocol/dialect.h"
#include "core/protocol/wire.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <string.h>

bool hfi_tracking_is_needed(const hf_client *client)
{
    int state = atomic_load(&client->events_state);
    return state == HFI_EVENTS_MISSING || state == HFI_EVENTS_FORBIDDEN;
}

const char *hfi_tracking_text(const hf_client *client)
{
    static const char *const texts[] = {", client tracking is not tried yet", ", client tracking instead", ", client tracking is refused"};
    return hfi_tracking_is_needed(client) ? texts[atomic_load(&client->tracking_state)] : "";
}

static bool is_first_refusal(hf_client *client)
{
    return atomic_exchange(&client->tracking_state, HFI_TRACKING_REFUSED) != HFI_TRACKING_REFUSED;
}

static void log_refusal(hf_client *client, const char *why)
{
    char text[160];
    hfi_log(&client->log, HF_LOG_INFO, "client tracking is refused, foreign releases are seen at the timed re-check: %s",
            hfi_quote(text, sizeof text, why, strlen(why)));
}

static void log_no_tracker(struct hfi_job *job)
{
    log_refusal(hfi_container_of(job, hf_client, untracked), "the server tells no CLIENT ID or no run id, or refuses the channel");
}

/* Of the transaction: what is wrong with it as a whole, or with one of the two commands that arm; NULL: nothing. */
static const redisReply *error_of(const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR)
        return reply;
    for (size_t i = 0; i + 1 < reply->elements; i++)
        if (reply->element[i]->type == REDIS_REPLY_ERROR)
            return reply->element[i];
    return NULL;
}

/* Nobody tells that the lock was free before its key was tracked. */
static bool is_late(const struct hfi_lock *lock, const redisReply *reply)
{
    return lock->keys.dialect != NULL ? lock->keys.dialect->is_late(reply) : hfi_dialect_is_nil(reply);
}

/* Other errors than a refusal pass: a tracker that the server has lost already is subscribed anew, and then armed by its new id. */
static void armed(struct hfi_command *command)
{
    struct hfi_lock *lock = command->self;
    hf_client *client = lock->client;
    const redisReply *reply = command->outcome == HFI_ANSWERED ? command->reply : NULL;
    const redisReply *error = reply != NULL ? error_of(reply) : NULL;
    int untried = HFI_TRACKING_UNTRIED;
    if (error != NULL && hfi_reply_is_withheld(error) && is_first_refusal(client))
        log_refusal(client, error->str);
    else if (reply != NULL && reply->elements == 3 && error == NULL)
        (void)atomic_compare_exchange_strong(&client->tracking_state, &untried, HFI_TRACKING_ON);
    if (reply != NULL && reply->elements == 3 && is_late(lock, reply->element[2]))
        hfi_key_events_requery(lock);
    hfi_table_unref(lock);
}

int64_t hfi_tracking_id(const hf_client *client)
{
    bool is_armed = hfi_tracking_is_needed(client) && atomic_load(&client->tracking_state) != HFI_TRACKING_REFUSED;
    int64_t id = is_armed ? hfi_pool_tracker_id(client->pool) : 0;
    return id > 0 ? id : 0;
}

void hfi_tracking_arm(struct hfi_lock *lock, int64_t now)
{
    HFI_ASSERT_HELD(lock->mutex);
    hf_client *client = lock->client;
    if (!lock->watched || !hfi_tracking_is_needed(client) || atomic_load(&client->tracking_state) == HFI_TRACKING_REFUSED)
        return;
    if (!atomic_exchange(&client->tracker_wanted, true))
        atomic_store(&client->tracker_wanted, hfi_pool_subscribe(client->pool, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS)));
    int64_t id, before;
    for (id = hfi_pool_tracker_id(client->pool), before = 0; id > 0 && id != before; id = hfi_pool_tracker_id(client->pool)) {
        struct hfi_command *command = hfi_wire_track(&lock->keys, id);
        if (command == NULL)
            return; /* the next answer comes */
        command->optional = true;
        command->awaited = HFI_AWAITED_BY_NOBODY;
        hfi_table_ref(lock);
        HFI_PERTURB("watch-to-track");
        hfi_call_list(client, lock->lane, command, armed, lock, now);
        before = id; /* the lane redirects to one at a time: another lock may have listed the next one's meanwhile */
    }
    /* A log function may ask for another lock, which may have the same mutex. */
    if (id < 0 && is_first_refusal(client) && client->log.write != NULL) {
        hfi_list_init(&client->untracked.link);
        client->untracked.run = log_no_tracker;
        hfi_dispatcher_post(client->dispatcher, &client->untracked);
    }
}

bool hfi_tracking_is_channel(const char *channel, size_t size)
{
    return size == strlen(HFI_INVALIDATIONS) && memcmp(channel, HFI_INVALIDATIONS, size) == 0;
}

static void arm_any(struct hfi_lock *lock, void *arg)
{
    int64_t now = hfi_lock_enter(lock);
    (void)arg;
    hfi_tracking_arm(lock, now);
    hfi_lock_leave(lock);
}

void hfi_tracking_subscribed(hf_client *client)
{
    atomic_store(&client->tracker_heard, true);
    hfi_table_each(client, arm_any, NULL);
}
