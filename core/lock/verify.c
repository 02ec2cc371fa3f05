/* SPDX-License-Identifier: MIT */
/* verify.c - hf_lease_verify. */
#include "core/context/call.h"
#include "core/lock/event_sink.h"
#include "core/lock/inquiry.h"
#include "core/protocol/wire.h"

#include <hiredis/hiredis.h>

/* Many have the key together, and it tells nothing of one of them; or it is spelled in a dialect. */
static bool is_not_in_key(const struct hfi_lock *lock)
{
    return lock->keys.use == HFI_SHARED || lock->keys.use == HFI_SEMAPHORE || lock->keys.use == HFI_DIALECT ||
           (lock->entry.remote == HFI_HELD && lock->entry.held.downgraded);
}

/* Then it is asked about by a renewal, for as long as is left anyway; of permits by the first one: those above may have been
 * given back before this is executed (NOSCRIPT). */
static struct hfi_command *question(struct hfi_lock *lock, int64_t now)
{
    const struct hfi_renewal renewal = {&lock->keys, lock->token, hfi_entry_question_ttl_ms(&lock->entry, now), 1};
    return is_not_in_key(lock) ? hfi_wire_renew(&lock->client->identity, &renewal, 1)
                                : hfi_wire_words("GET", lock->keys.lock, NULL);
}

/* There is something else instead of the token. */
static enum hfi_finding find_other(const struct hfi_lock *lock, const struct redisReply *other, struct hfi_inquiry *inquiry)
{
    return hfi_token_is_left_of(&lock->client->identity, other->str, other->len, inquiry->token.grant, &inquiry->there)
               ? HFI_FOUND_REVOKED
               : HFI_FOUND_OTHERS;
}

static enum hfi_finding find_renewed(const struct hfi_lock *lock, const struct redisReply *reply, struct hfi_inquiry *inquiry)
{
    const redisReply *left = NULL;
    switch (hfi_wire_renewed(reply, 0, &left)) {
    case HFI_RENEW_OK:
    case HFI_RENEW_REMOTE_WAITER:
        return HFI_FOUND_SAME;
    case HFI_RENEW_GONE:
        return HFI_FOUND_NOTHING;
    case HFI_RENEW_REVOKED:
        return find_other(lock, left, inquiry);
    case HFI_RENEW_FAILED:
        (void)hfi_fail(&inquiry->why, HF_DENIED, "allow this user GET and ZSCORE of the lock's keys",
                       "this user may not read the key of the lock any more");
        return HFI_FOUND_ERROR;
    case HFI_RENEW_TAKEN:
        break;
    }
    return HFI_FOUND_OTHERS;
}

static enum hfi_finding find(struct hfi_lock *lock, const struct redisReply *reply, struct hfi_inquiry *inquiry)
{
    if (reply->type == REDIS_REPLY_ARRAY) {
        return find_renewed(lock, reply, inquiry);
    }
    if (reply->type != REDIS_REPLY_STRING)
        return HFI_FOUND_NOTHING;
    if (hfi_token_is_of(&lock->client->identity, reply->str, reply->len, &inquiry->there) &&
        hfi_token_is_same(inquiry->there, inquiry->token))
        return HFI_FOUND_SAME;
    return find_other(lock, reply, inquiry); /* no downgrade overtakes it: that follows on the same lane */
}

static const struct hfi_inquiry_kind verification = {"cannot verify the lease", question, find, NULL};

/* One after the other. What was ours when it was asked may be lost when the last one is. */
static hf_status verify_parts(hf_lease *whole, hf_error *error)
{
    struct hfi_parts *parts = whole->parts;
    hf_status status = HF_OK;
    for (int i = 0; i < parts->count && status == HF_OK && hf_lease_is_valid(whole); i++)
        status = hfi_inquire(parts->at[i].lease, &verification, error);
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
        status = hfi_inquire(lease, &verification, error);
    else
        status = verify_parts(lease, error);
    hfi_client_leave(client);
    return status;
}
