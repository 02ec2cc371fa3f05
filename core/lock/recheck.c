/* SPDX-License-Identifier: MIT */
/*
 * recheck.c - see recheck.h.
 *
 * A batch is listed at the end of its tick, so a release or an acquire of one of its names may be listed before it (P4
 * orders only those two). That does no harm: for a token that is not in the queue the script does nothing. For the same
 * reason a re-check without an answer leaves no token in doubt (P5): executed late, it creates nothing.
 */
#include "core/lock/recheck.h"
#include "core/context/call.h"
#include "core/lock/perform.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/lock/trouble.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

#define AHEAD 4
#define CACHE_LINE 64

struct hfi_rechecked_batch { /* one script; lives until its answer */
    struct hfi_rechecked_batch *next;
    hf_client *client;
    struct hfi_lane *lane;
    int64_t patience_ms, claim_ttl_ms;
    uint8_t use;
    int count;
    struct hfi_lock *locks[HFI_RECHECK_MOST]; /* references */
    struct hfi_recheck what[HFI_RECHECK_MOST];
};

/* command NULL: there was no memory for it. */
static void rechecked_one(struct hfi_rechecked_batch *batch, int index, const struct hfi_command *command)
{
    struct hfi_lock *lock = batch->locks[index];
    struct hfi_answer answer = {.kind = HFI_ASK_ALONE};
    struct hfi_step step;
    if (command != NULL && command->outcome == HFI_ANSWERED) {
        int64_t no_time;
        answer = hfi_wire_rechecked(command->reply, index);
        if (command->reply->type == REDIS_REPLY_ERROR)
            answer = hfi_wire_answer(command->reply, false, &no_time);
        if (answer.kind == HFI_CANNOT && answer.status != HF_UNAVAILABLE) /* caused by one name, or a missing right */
            answer.kind = HFI_ASK_ALONE;
    } else if (command != NULL && command->outcome == HFI_UNSENT) {
        answer.kind = HFI_NOT_SENT;
        answer.status = hfi_pool_why_down(batch->client->pool, NULL);
    } else if (command != NULL) {
        answer.kind = HFI_NO_ANSWER;
    }
    HFI_PERTURB("rechecked-to-entry");
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, hfi_lane_rtt_ns(lock->lane));
    if (lock->token.grant == batch->what[index].token.grant && lock->entry.remote != HFI_NOTHING) {
        if (answer.kind != HFI_IN_QUEUE && answer.kind != HFI_ASK_ALONE)
            hfi_lock_note_trouble(lock, command, HFI_IN_QUEUE);
        if (lock->entry.remote == HFI_QUEUED)
            answer.ticket = lock->entry.ask.ticket;
        hfi_entry_answered(&lock->entry, &answer, &step);
        hfi_lock_perform(lock, &step, NULL);
    }
    hfi_mutex_unlock(lock->mutex);
    hfi_table_unref(lock);
}

/* With ten thousand locks, each has long left every CPU cache: prefetch the next ones while this one is processed. */
static void look_ahead(const struct hfi_rechecked_batch *batch, int index)
{
    if (index + 2 * AHEAD < batch->count) {
        const char *lock = (const char *)batch->locks[index + 2 * AHEAD];
        for (size_t at = 0; at < sizeof(struct hfi_lock); at += CACHE_LINE)
            __builtin_prefetch(lock + at, 1);
    }
    if (index + AHEAD < batch->count)
        __builtin_prefetch(batch->locks[index + AHEAD]->slot, 1);
}

static void rechecked_all(struct hfi_rechecked_batch *batch, const struct hfi_command *command)
{
    struct hfi_lane *lane = batch->lane;
    hf_client *client = batch->client;
    for (int i = 0; i < batch->count; i++) {
        look_ahead(batch, i);
        rechecked_one(batch, i, command);
    }
    free(batch);
    hfi_lane_flush(lane);
    hfi_client_unref(client);
}

static void rechecked(struct hfi_command *command)
{
    struct hfi_rechecked_batch *batch = command->self;
    if (command->outcome == HFI_ANSWERED)
        hfi_server_time_observe(batch->client, hfi_lane_index(batch->lane), hfi_wire_script_reply(command->reply).now_us,
                            command->stamp_ns, command->answered_ns);
    rechecked_all(batch, command);
}

static void list(struct hfi_rechecked_batch *batch, int64_t now)
{
    hf_client *client = batch->client;
    struct hfi_lane *lane = batch->lane;
    struct hfi_recheck_params common = {hfi_server_time_not_after(client, hfi_lane_index(lane), now), batch->patience_ms, now,
                                    batch->claim_ttl_ms};
    struct hfi_command *command = hfi_wire_recheck(&client->identity, &common, batch->what, batch->count);
    if (command == NULL) {
        rechecked_all(batch, NULL);
        return;
    }
    command->awaited = HFI_AWAITED_BY_NOBODY;
    command->optional = true;
    HFI_PERTURB("re-check-to-list");
    hfi_call_list(client, lane, command, rechecked, batch, now);
}

void hfi_rechecks_init(struct hfi_rechecks *rechecks, hf_client *client, int64_t now)
{
    *rechecks = (struct hfi_rechecks){.client = client, .now = now};
}

/* A batch with these parameters and capacity for one more name; NULL: no memory. */
static struct hfi_rechecked_batch *batch_for(struct hfi_rechecks *rechecks, struct hfi_lane *lane, uint8_t use,
                                             const struct hfi_acquire_params *params)
{
    struct hfi_rechecked_batch *batch = rechecks->batches;
    while (batch != NULL && (batch->lane != lane || batch->use != use || batch->patience_ms != params->patience_ms ||
                             batch->claim_ttl_ms != params->claim_ttl_ms || batch->count == HFI_RECHECK_MOST))
        batch = batch->next;
    if (batch != NULL)
        return batch;
    batch = malloc(sizeof *batch);
    if (batch == NULL)
        return NULL;
    hfi_client_ref(rechecks->client);
    batch->client = rechecks->client;
    batch->lane = lane;
    batch->use = use;
    batch->patience_ms = params->patience_ms;
    batch->claim_ttl_ms = params->claim_ttl_ms;
    batch->count = 0;
    batch->next = rechecks->batches;
    rechecks->batches = batch;
    return batch;
}

bool hfi_rechecks_add(struct hfi_rechecks *rechecks, struct hfi_lock *lock)
{
    struct hfi_acquire_params params = hfi_entry_recheck_params(&lock->entry, rechecks->now);
    hfi_lock_may_live(lock, params.claim_ttl_ms + params.patience_ms);
    struct hfi_rechecked_batch *batch = batch_for(rechecks, lock->lane, lock->keys.use, &params);
    if (batch == NULL)
        return false;
    batch->locks[batch->count] = lock;
    batch->what[batch->count++] = (struct hfi_recheck){&lock->keys, lock->token};
    return true;
}

void hfi_rechecks_send(struct hfi_rechecks *rechecks)
{
    while (rechecks->batches != NULL) {
        struct hfi_lane *lane = rechecks->batches->lane;
        struct hfi_rechecked_batch **at = &rechecks->batches;
        while (*at != NULL) {
            struct hfi_rechecked_batch *batch = *at;
            if (batch->lane != lane) {
                at = &batch->next;
                continue;
            }
            *at = batch->next;
            list(batch, rechecks->now);
        }
        hfi_lane_flush(lane);
    }
}
