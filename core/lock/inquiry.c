/* SPDX-License-Identifier: MIT */
/* inquiry.c - see inquiry.h. */
#include "core/lock/inquiry.h"
#include "core/context/call.h"
#include "core/lock/event_sink.h"
#include "core/lock/perform.h"
#include "core/lock/retire.h"
#include "core/lock/table.h"
#include "base/perturb.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct asking { /* freed by the asking thread, or by the answer if that thread has given up */
    struct hfi_lock *lock;
    const struct hfi_inquiry_kind *kind;
    struct hfi_park park;
    bool done, abandoned;
    enum hfi_outcome outcome;
    enum hfi_finding found;
    struct hfi_inquiry inquiry;
};

static enum hfi_finding judge(struct asking *asking, const redisReply *reply)
{
    struct hfi_lock *lock = asking->lock;
    if (reply->type != REDIS_REPLY_ERROR)
        return asking->kind->find(lock, reply, &asking->inquiry);
    (void)hfi_reply_fail(reply, asking->kind->failed, hfi_pool_server_name(lock->client->pool), &asking->inquiry.why);
    if (asking->kind->undone != NULL && hfi_reply_meaning(reply->str, reply->len)->executed)
        asking->inquiry.why.status = HF_UNKNOWN;
    return strncmp(reply->str, "WRONGTYPE", 9) == 0 ? HFI_FOUND_OTHERS : HFI_FOUND_ERROR;
}

static void answered(struct hfi_command *command)
{
    struct asking *asking = command->self;
    struct hfi_lock *lock = asking->lock;
    HFI_PERTURB("verify-answered");
    hfi_mutex_lock(lock->mutex);
    asking->outcome = command->outcome;
    if (command->outcome == HFI_ANSWERED)
        asking->found = judge(asking, command->reply);
    bool did_nothing = command->outcome == HFI_UNSENT ||
                       (command->outcome == HFI_ANSWERED && asking->found == HFI_FOUND_ERROR &&
                        asking->inquiry.why.status != HF_UNKNOWN);
    if (did_nothing && asking->kind->undone != NULL && lock->token.grant == asking->inquiry.token.grant)
        asking->kind->undone(&lock->entry);
    bool abandoned = asking->abandoned;
    asking->done = true;
    hfi_park_wake(&asking->park);
    hfi_mutex_unlock(lock->mutex);
    if (abandoned) {
        free(asking);
        hfi_table_unref(lock);
    }
}

/* The server has another token, or none. */
static void lose(struct hfi_lock *lock, const struct asking *asking)
{
    struct hfi_step step;
    int64_t now = hfi_now(lock->client->clock);
    hfi_step_init(&step, now, 0);
    if (asking->found == HFI_FOUND_REVOKED)
        hfi_retire_revoked(lock, asking->inquiry.there, now);
    hfi_entry_lost(&lock->entry,
                   asking->found == HFI_FOUND_REVOKED || lock->revoked != 0 ? HF_REASON_REVOKED
                   : asking->found == HFI_FOUND_NOTHING                           ? HF_REASON_GONE
                                                                                  : HF_REASON_TAKEN,
                   &step);
    hfi_lock_perform(lock, &step, NULL);
}

static hf_status verdict(hf_lease *lease, const struct asking *asking, hf_error *error)
{
    struct hfi_lock *lock = asking->lock;
    hf_client *client = lock->client;
    if (asking->outcome == HFI_UNSENT)
        return hfi_pool_why_down(client->pool, error);
    if (asking->outcome == HFI_UNANSWERED) {
        hfi_fail(error, HF_UNKNOWN, "the lease stands until its end; ask again", "the server did not answer in time");
        hfi_fail_server(error, hfi_pool_server_name(client->pool));
        return HF_UNKNOWN;
    }
    if (asking->found == HFI_FOUND_ERROR)
        return hfi_fail_by(error, asking->inquiry.why.status, &asking->inquiry.why);
    hfi_mutex_lock(lock->mutex);
    if (asking->found != HFI_FOUND_SAME && lease->holds && lock->token.grant == asking->inquiry.token.grant)
        lose(lock, asking);
    hfi_lock_leave(lock);
    return hf_lease_is_valid(lease) ? HF_OK : hfi_handle_lost(lease, error);
}

hf_status hfi_inquire(hf_lease *lease, const struct hfi_inquiry_kind *kind, hf_error *error)
{
    struct hfi_lock *lock = lease->lock;
    struct asking *asking = calloc(1, sizeof *asking);
    if (asking == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory to ask the server");
    asking->lock = lock;
    asking->kind = kind;
    hfi_park_init(&asking->park);
    int64_t now = hfi_lock_enter(lock), end = atomic_load(lease->end);
    bool holds = lease->holds && now < end;
    struct hfi_command *command = holds ? kind->question(lock, now) : NULL;
    if (command == NULL) {
        hfi_mutex_unlock(lock->mutex);
        free(asking);
        return holds ? hfi_fail(error, HF_NOMEM, "", "no memory to ask the server") : hfi_handle_lost(lease, error);
    }
    asking->inquiry.token = lock->token;
    hfi_call_list(lock->client, lock->lane, command, answered, asking, now);
    /* Wait no longer than the lease lasts. A question abandoned then is freed by its answer, whenever that comes. */
    while (!asking->done && !asking->abandoned) {
        uint32_t epoch = hfi_park_epoch(&asking->park);
        hfi_lock_leave(lock);
        (void)hfi_lane_wait(lock->lane, &asking->park, epoch, end);
        HFI_PERTURB("verify-woken");
        hfi_mutex_lock(lock->mutex);
        end = atomic_load(lease->end); /* it may have been renewed or withdrawn */
        asking->abandoned = !asking->done && hfi_now(lock->client->clock) >= end;
    }
    bool abandoned = asking->abandoned;
    if (abandoned)
        hfi_table_ref(lock);
    hfi_mutex_unlock(lock->mutex);
    if (abandoned)
        return hfi_handle_lost(lease, error);
    hf_status status = verdict(lease, asking, error);
    free(asking);
    return status;
}
