/* SPDX-License-Identifier: MIT */
/* renew.c - see renew.h. */
#include "core/lock/renew.h"
#include "core/context/call.h"
#include "core/lock/perform.h"
#include "core/lock/quarantine.h"
#include "core/lock/retire.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "base/perturb.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct renewed_lock {
    struct hfi_lock *lock; /* a reference */
    uint64_t grant;
    int32_t permits;       /* that it named */
};

struct hfi_renewed_batch { /* one script; lives until its answer */
    hf_client *client;
    int lane;
    int count, permits;
    struct renewed_lock at[HFI_RENEW_MOST];
};

static void renewed_one(struct hfi_renewed_batch *batch, int index, const struct hfi_command *command)
{
    struct hfi_lock *lock = batch->at[index].lock;
    hf_client *client = batch->client;
    struct hfi_step step;
    const struct redisReply *left = NULL;
    enum hfi_renewed how = HFI_RENEW_FAILED;
    uint64_t grant = batch->at[index].grant;
    struct hfi_token revoked;
    if (command->outcome == HFI_ANSWERED)
        how = hfi_wire_renewed(command->reply, index, &left);
    bool is_fetch = lock->keys.use == HFI_FETCH;
    bool counts = command->replicas_missing == 0 && /* a failover could lose it */
                  (is_fetch || hfi_quarantine_of_lane_ns(client, batch->lane, command->answered_ns) == 0);
    if (!counts && (how == HFI_RENEW_OK || how == HFI_RENEW_REMOTE_WAITER))
        how = HFI_RENEW_FAILED; /* V stays */
    if (left != NULL && !hfi_token_is_left_of(&client->identity, left->str, left->len, grant, &revoked))
        how = HFI_RENEW_TAKEN;
    bool ours = how == HFI_RENEW_OK || how == HFI_RENEW_REMOTE_WAITER;
    HFI_PERTURB("renewed-to-entry");
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, hfi_lane_rtt_ns(lock->lane));
    if (how == HFI_RENEW_REVOKED)
        hfi_retire_revoked(lock, revoked, now);
    if (lock->token.grant == grant) {
        if (how == HFI_RENEW_GONE && hfi_entry_has_shrunk(&lock->entry, batch->at[index].permits))
            hfi_entry_renew_now(&lock->entry);
        else if (ours)
            hfi_entry_renewed(&lock->entry, command->stamp_ns, &step);
        else if (how != HFI_RENEW_FAILED)
            hfi_entry_lost(&lock->entry,
                           how == HFI_RENEW_REVOKED || lock->revoked != 0 ? HF_REASON_REVOKED
                           : how == HFI_RENEW_GONE                        ? HF_REASON_GONE
                                                                          : HF_REASON_TAKEN,
                           &step);
        if (how == HFI_RENEW_REMOTE_WAITER)
            hfi_entry_remote_waiter(&lock->entry, &step);
        else if (how == HFI_RENEW_OK)
            hfi_entry_no_remote_waiter(&lock->entry, command->stamp_ns, &step);
        hfi_lock_perform(lock, &step, NULL);
    }
    hfi_mutex_unlock(lock->mutex);
    if (ours)
        hfi_count(client, renewals);
    else
        hfi_count(client, renewals_failed);
    hfi_lane_flush(lock->lane);
    hfi_table_unref(lock);
}

static void renewed(struct hfi_command *command)
{
    struct hfi_renewed_batch *batch = command->self;
    if (command->outcome == HFI_ANSWERED)
        hfi_server_time_observe(batch->client, batch->lane, hfi_wire_script_reply(command->reply).now_us, command->stamp_ns,
                            command->answered_ns);
    for (int i = 0; i < batch->count; i++)
        renewed_one(batch, i, command);
    hfi_client_unref(batch->client);
    free(batch);
}

void hfi_renewals_init(struct hfi_renewals *renewals, hf_client *client, int64_t now)
{
    renewals->client = client;
    renewals->now = now;
    renewals->batch = NULL;
}

void hfi_renewals_send(struct hfi_renewals *renewals, int at_least)
{
    hf_client *client = renewals->client;
    struct hfi_renewed_batch *batch = renewals->batch;
    if (batch == NULL || (batch->count < at_least && batch->permits < HFI_PERMITS_MOST))
        return;
    renewals->batch = NULL;
    int64_t patience = renewals->patience_ns > 10 * HFI_MS ? renewals->patience_ns : 10 * HFI_MS;
    struct hfi_lane *lane = hfi_pool_answering(client->pool, renewals->now, patience);
    struct hfi_command *command = hfi_wire_renew(&client->identity, renewals->what, batch->count);
    if (command == NULL) { /* the next attempt is due soon */
        for (int i = 0; i < batch->count; i++)
            hfi_table_unref(batch->at[i].lock);
        hfi_client_unref(client);
        free(batch);
        return;
    }
    batch->lane = hfi_lane_index(lane);
    command->optional = true;
    HFI_PERTURB("renewal-to-list");
    hfi_call_list(client, lane, command, renewed, batch, renewals->now);
    hfi_lane_flush(lane);
}

void hfi_renewals_add(struct hfi_renewals *renewals, struct hfi_lock *lock, const struct hfi_renew_params *params)
{
    int64_t patience_ns = params->patience_ns;
    HFI_ASSERT_HELD(lock->mutex);
    if (renewals->batch == NULL) {
        renewals->batch = malloc(sizeof *renewals->batch);
        if (renewals->batch == NULL)
            return;
        hfi_client_ref(renewals->client);
        renewals->batch->client = renewals->client;
        renewals->batch->count = renewals->batch->permits = 0;
        renewals->patience_ns = patience_ns;
    }
    struct hfi_renewed_batch *batch = renewals->batch;
    int at = batch->count++;
    hfi_table_ref(lock);
    batch->permits += params->permits;
    batch->at[at] = (struct renewed_lock){lock, lock->token.grant, params->permits};
    renewals->what[at] = (struct hfi_renewal){&lock->keys, lock->token, params->ttl_ms, params->permits};
    if (patience_ns < renewals->patience_ns)
        renewals->patience_ns = patience_ns;
}
