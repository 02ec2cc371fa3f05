/* SPDX-License-Identifier: MIT */
/* verify.c - hf_lease_verify. */
#include "core/lock/retire.h"
#include "core/context/call.h"
#include "core/lock/event_sink.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct inquiry { /* who owns the key? Freed by the asking thread, or by the answer if that thread has given up */
    struct hfi_lock *lock;
    struct hfi_park park;
    bool done, abandoned;
    enum hfi_outcome outcome;
    enum { SAME, MISSING, OTHERS, REVOKED, ERROR } found;
    hf_error why;
    struct hfi_token token; /* the lease's */
    struct hfi_token there; /* REVOKED: what a break left of it */
};

static void verified(struct hfi_command *command)
{
    struct inquiry *inquiry = command->self;
    struct hfi_lock *lock = inquiry->lock;
    const redisReply *reply = command->reply;
    HFI_PERTURB("verify-answered");
    hfi_mutex_lock(&lock->mutex);
    inquiry->outcome = command->outcome;
    if (command->outcome == HFI_ANSWERED && reply->type == REDIS_REPLY_ERROR) {
        inquiry->found = ERROR;
        (void)hfi_reply_fail(reply, "cannot verify the lease", hfi_pool_server_name(lock->client->pool), &inquiry->why);
        if (strncmp(reply->str, "WRONGTYPE", 9) == 0)
            inquiry->found = OTHERS;
    } else if (command->outcome == HFI_ANSWERED) {
        inquiry->found = reply->type == REDIS_REPLY_NIL ? MISSING : OTHERS;
        if (reply->type == REDIS_REPLY_STRING && hfi_token_is_of_grant(&lock->client->identity, reply->str, reply->len,
                                                                       inquiry->token.grant, &inquiry->there))
            inquiry->found = hfi_token_is_same(inquiry->there, inquiry->token) ? SAME : REVOKED;
    }
    bool abandoned = inquiry->abandoned;
    inquiry->done = true;
    hfi_park_wake(&inquiry->park);
    hfi_mutex_unlock(&lock->mutex);
    if (abandoned) {
        free(inquiry);
        hfi_table_unref(lock);
    }
}

static hf_status verdict(struct hfi_lock *lock, hf_lease *lease, const struct inquiry *inquiry, hf_error *error)
{
    hf_client *client = lock->client;
    if (inquiry->outcome == HFI_UNSENT)
        return hfi_pool_why_down(client->pool, error);
    if (inquiry->outcome == HFI_UNANSWERED) {
        hfi_fail(error, HF_UNKNOWN, "the lease stands until its end; ask again", "the server did not answer in time");
        hfi_fail_server(error, hfi_pool_server_name(client->pool));
        return HF_UNKNOWN;
    }
    if (inquiry->found == ERROR) {
        if (error != NULL)
            *error = inquiry->why;
        return inquiry->why.status;
    }
    hfi_mutex_lock(&lock->mutex);
    if (inquiry->found != SAME && lock->holder == lease && lock->token.grant == inquiry->token.grant) {
        struct hfi_step step;
        int64_t now = hfi_now(client->clock);
        hfi_step_init(&step, now, 0);
        if (inquiry->found == REVOKED)
            hfi_retire_revoked(lock, inquiry->there, now);
        hfi_entry_lost(&lock->entry,
                       inquiry->found == REVOKED || lock->revoked.grant != 0 ? HF_REASON_REVOKED
                       : inquiry->found == MISSING                     ? HF_REASON_GONE
                                                                       : HF_REASON_TAKEN,
                       &step);
        hfi_lock_perform(lock, &step, NULL);
    }
    hfi_lock_leave(lock);
    return hf_lease_is_valid(lease) ? HF_OK : hfi_handle_lost(lease, error);
}

static hf_status verify(hf_lease *lease, hf_error *error)
{
    struct hfi_lock *lock = lease->lock;
    hf_client *client = lock->client;
    struct inquiry *inquiry = calloc(1, sizeof *inquiry);
    struct hfi_command *command = hfi_wire_words("GET", lock->keys.lock, NULL);
    if (inquiry == NULL || command == NULL) {
        free(inquiry);
        if (command != NULL)
            hfi_command_unref(command);
        return hfi_fail(error, HF_NOMEM, "", "no memory to ask the server");
    }
    inquiry->lock = lock;
    hfi_park_init(&inquiry->park);
    int64_t now = hfi_lock_enter(lock), end = atomic_load(lease->end);
    if (lock->holder != lease || now >= end) {
        hfi_mutex_unlock(&lock->mutex);
        hfi_command_unref(command);
        free(inquiry);
        return hfi_handle_lost(lease, error);
    }
    inquiry->token = lock->token;
    hfi_call_list(client, lock->lane, command, verified, inquiry, now);
    /* Wait no longer than the lease lasts. An inquiry abandoned then is freed by its answer, whenever that comes. */
    while (!inquiry->done && !inquiry->abandoned) {
        uint32_t epoch = hfi_park_epoch(&inquiry->park);
        hfi_lock_leave(lock);
        (void)hfi_lane_wait(lock->lane, &inquiry->park, epoch, end);
        HFI_PERTURB("verify-woken");
        hfi_mutex_lock(&lock->mutex);
        end = atomic_load(lease->end); /* it may have been renewed or withdrawn */
        inquiry->abandoned = !inquiry->done && hfi_now(client->clock) >= end;
    }
    bool abandoned = inquiry->abandoned;
    if (abandoned)
        hfi_table_ref(lock);
    hfi_mutex_unlock(&lock->mutex);
    if (abandoned)
        return hfi_handle_lost(lease, error);
    hf_status status = verdict(lock, lease, inquiry, error);
    free(inquiry);
    return status;
}

/* One after the other. What was ours when it was asked may be lost when the last one is. */
static hf_status verify_parts(hf_lease *whole, hf_error *error)
{
    struct hfi_parts *parts = whole->parts;
    hf_status status = HF_OK;
    for (int i = 0; i < parts->count && status == HF_OK && hf_lease_is_valid(whole); i++)
        status = verify(parts->at[i].lease, error);
    for (int i = 0; i < parts->count && status != HF_LOST && status != HF_CLOSED; i++)
        if (!hf_lease_is_valid(parts->at[i].lease))
            status = hfi_handle_lost(parts->at[i].lease, error);
    return status;
}

hf_status hf_lease_verify(hf_lease *lease, hf_error *error)
{
    if (lease == NULL)
        return hfi_fail(error, HF_INVALID, "pass the lease that hf_lock_acquire gave", "lease is NULL");
    hf_client *client = lease->client;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    if (lease->parts == NULL)
        status = verify(lease, error);
    else
        status = verify_parts(lease, error);
    hfi_client_leave(client);
    return status;
}
