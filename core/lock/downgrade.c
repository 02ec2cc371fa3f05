/* SPDX-License-Identifier: MIT */
/* downgrade.c - hf_lease_downgrade. The token stays, and becomes one of the readers' at the server. */
#include "core/context/call.h"
#include "core/lock/event_sink.h"
#include "core/lock/inquiry.h"
#include "core/protocol/script_error.h"
#include "core/protocol/wire.h"

#include <hiredis/hiredis.h>
#include <string.h>

/* From now on no thread of this process gets the lease from this one: it would believe itself alone. */
static struct hfi_command *question(struct hfi_lock *lock, int64_t now)
{
    struct hfi_command *command = hfi_wire_downgrade(&lock->client->identity, &lock->keys, lock->token,
                                                     hfi_entry_question_ttl_ms(&lock->entry, now));
    if (command != NULL)
        hfi_entry_downgrade(&lock->entry);
    return command;
}

static enum hfi_finding find(struct hfi_lock *lock, const struct redisReply *reply, struct hfi_inquiry *inquiry)
{
    const char *word = hfi_wire_script_reply(reply).word, *foreign = hfi_wire_foreign(reply);
    if (foreign != NULL && strcmp(foreign, "held") == 0) { /* the lock itself is ours, and stays so */
        (void)hfi_script_error_key(&lock->keys, foreign, &inquiry->why);
        return HFI_FOUND_ERROR;
    }
    if (strcmp(word, "REVOKED") == 0 && hfi_token_is_left_of(&lock->client->identity, reply->element[2]->str, reply->element[2]->len,
                                                             inquiry->token.grant, &inquiry->there))
        return HFI_FOUND_REVOKED;
    return strcmp(word, "SHARED") == 0 ? HFI_FOUND_SAME : strcmp(word, "GONE") == 0 ? HFI_FOUND_NOTHING : HFI_FOUND_OTHERS;
}

static const struct hfi_inquiry_kind downgrade = {"cannot downgrade the lease", question, find, hfi_entry_not_downgraded};

hf_status hf_lease_downgrade(hf_lease *lease, hf_error *error)
{
    if (lease == NULL)
        return hfi_fail(error, HF_INVALID, "pass the lease that hf_lock_acquire gave", "lease is NULL");
    enum hfi_use use = lease->lock->keys.use;
    if (lease->parts != NULL || use == HFI_FETCH || use == HFI_SEMAPHORE || use == HFI_DIALECT)
        return hfi_fail(error, HF_INVALID, "downgrade a lease of hf_lock_acquire", "%s cannot be shared",
                        lease->parts != NULL ? "a lease of several locks"
                        : use == HFI_FETCH   ? "the lease of a load"
                        : use == HFI_DIALECT ? "a lease of a dialect"
                                             : "a lease on permits");
    hf_client *client = lease->client;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    if (lease->lock->keys.use == HFI_MUTEX)
        status = hfi_inquire(lease, &downgrade, error);
    else if (!hf_lease_is_valid(lease))
        status = hfi_handle_lost(lease, error);
    hfi_client_leave(client);
    return status;
}
