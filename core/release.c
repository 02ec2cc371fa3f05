/* SPDX-License-Identifier: MIT */
/* release.c - hf_lease_release, hf_lease_post_release, hf_lease_verify. */
#include "core/closing.h"
#include "core/lock.h"
#include "core/table.h"
#include "core/wire.h"
#include "pool/replies.h"
#include "base/perturb.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

static hf_status lost(const hf_lease *lease, hf_error *error)
{
    char name[160];
    (void)hfi_quote(name, sizeof name, lease->lock->keys.name, lease->lock->keys.name_size);
    if (hf_lease_reason(lease) == HF_REASON_CLOSED)
        return hfi_fail(error, HF_CLOSED, "", "lock %s was given back when the client was closed", name);
    return hfi_fail(error, HF_LOST, "somebody else may have been in: roll back, or let the fence decide",
                    "the lease on lock %s was lost: %s", name, hf_reason_text(hf_lease_reason(lease)));
}

/* Out of the lock, if it is in it; then its reference to the handle is the caller's, besides the owner's: *references
 * counts. True: it was valid, and the server will be told by what `giving` learns, or another thread has the lease now
 * (giving->done, HF_OK). Mutex held. */
static bool leave(struct hfi_lock *lock, hf_lease *lease, struct hfi_giving *giving, int *references)
{
    hf_client *client = lock->client;
    struct hfi_actions actions;
    int64_t now = hfi_now(client->clock);
    if (lock->holder != lease)
        return false;
    hfi_actions_init(&actions);
    bool was_valid = now < atomic_load(lease->end);
    /* P3: V is withdrawn before anything is listed, and before another thread may have the lease. */
    hfi_handle_withdraw(lease);
    HFI_PERTURB("withdrawn-to-released");
    lock->holder = NULL;
    ++*references;
    hfi_handle_end(lease);
    if (was_valid && hfi_entry_release(&lock->entry, now, atomic_load(&client->closing), &actions)) {
        bool goes_back = false;
        for (int i = 0; i < actions.count; i++)
            goes_back = goes_back || actions.at[i].kind == HFI_GIVE_BACK;
        if (giving != NULL && !goes_back) {
            giving->done = true;
            giving->status = HF_OK;
        }
    } else {
        was_valid = false;
        hf_reason reason = hfi_lease_over(lease->hold_end, now);
        atomic_store(&lease->reason, (uint8_t)reason);
        atomic_store(&lease->condition, HF_LEASE_LOST);
        hfi_count(client, lost);
        hfi_entry_lost(&lock->entry, reason, now, &actions);
    }
    hfi_lock_perform(lock, &actions, now, was_valid ? giving : NULL); /* after a loss nobody waits for an answer */
    return was_valid;
}

static hf_status answer(const hf_lease *lease, const struct hfi_giving *giving, hf_error *error)
{
    char name[160];
    if (giving->status == HF_OK)
        return HF_OK;
    (void)hfi_quote(name, sizeof name, lease->lock->keys.name, lease->lock->keys.name_size);
    if (giving->status == HF_LOST)
        return hfi_fail(error, HF_LOST, "roll back, or let the fence decide; look at eviction and failover of the server",
                        "lock %s was no longer ours at the server: %s", name, hf_reason_text(HF_REASON_GONE));
    if (giving->why->status != HF_OK)
        hfi_fail(error, HF_UNKNOWN, giving->why->hint, "lock %s stays until its lease ends or the server lets it go: %s",
                 name, giving->why->message);
    else
        hfi_fail(error, HF_UNKNOWN, "nothing to do: it is released when the server answers again, or ends by itself",
                 "the server did not confirm the release of lock %s", name);
    hfi_fail_server(error, hfi_pool_server_name(lease->client->pool));
    return HF_UNKNOWN;
}

/* *references: those that are the caller's to drop; none, if an owner has it still that had acquired it again. */
static hf_status give_back(hf_lease *lease, bool wait, int *references, hf_error *error)
{
    struct hfi_lock *lock = lease->lock;
    hf_error why;
    struct hfi_giving giving = {.done = false, .status = HF_OK, .why = &why};
    hf_status status = HF_OK;
    why.status = HF_OK;
    hfi_park_init(&giving.park);
    (void)pthread_mutex_lock(&lock->mutex);
    if (lease->depth > 0) {
        lease->depth--;
        *references = 0;
        status = hf_lease_is_valid(lease) ? HF_OK : lost(lease, error); /* once unlocked, another thread may free it */
        (void)pthread_mutex_unlock(&lock->mutex);
        return status;
    }
    hfi_park_hold();
    bool wanted = lock->entry.wanted; /* somebody waits elsewhere: it goes now */
    bool was_valid = leave(lock, lease, wait ? &giving : NULL, references);
    while (was_valid && wait && !giving.done) {
        uint32_t ticket = hfi_park_ticket(&giving.park);
        (void)pthread_mutex_unlock(&lock->mutex);
        HFI_PERTURB("release-to-wait");
        hfi_park_let_go();
        hfi_lane_flush(lock->lane);
        (void)hfi_lane_wait(lock->lane, &giving.park, ticket, HFI_NEVER);
        (void)pthread_mutex_lock(&lock->mutex);
        hfi_park_hold();
    }
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_park_let_go();
    if (wait || wanted)
        hfi_lane_flush(lock->lane);
    else
        hfi_lane_flush_soon(lock->lane);
    if (!was_valid)
        status = lost(lease, error);
    else if (wait)
        status = answer(lease, &giving, error);
    return status;
}

/* The last of it, whatever became of the lease. */
static void drop(hf_lease *lease, int references)
{
    hf_client *client = lease->client;
    struct hfi_lock *lock = lease->lock;
    hfi_handle_hush(lease);
    HFI_PERTURB("release-to-drop");
    hfi_count(client, released);
    hfi_table_unref(lock);
    hfi_handle_drop(lease, references);
}

static hf_status release(hf_lease *lease, bool wait, hf_error *error)
{
    if (lease == NULL)
        return HF_OK;
    hf_client *client = lease->client;
    if (hfi_client_is_forked(client)) {
        hfi_handle_forked(lease);
        return hfi_fail(error, HF_FORKED, "the parent still holds it", "the lease belongs to the parent process");
    }
    bool entered = hfi_client_enter(client, NULL) == HF_OK;
    if (!entered)
        hfi_client_ref(client); /* the handle may hold the last one; a call that was let in is waited for */
    int references = 1;
    hf_status status = give_back(lease, wait && entered, &references, error);
    if (references > 0)
        drop(lease, references);
    if (entered)
        hfi_client_leave(client);
    else
        hfi_client_unref(client);
    return status;
}

hf_status hf_lease_release(hf_lease *lease, hf_error *error)
{
    return release(lease, true, error);
}

hf_status hf_lease_post_release(hf_lease *lease, hf_error *error)
{
    return release(lease, false, error);
}

struct inquiry { /* whose is the key? Freed by the asking thread, or by the answer if that comes too late for it */
    struct hfi_lock *lock;
    struct hfi_park park;
    bool done, abandoned;
    enum hfi_outcome outcome;
    enum { SAME, MISSING, OTHERS, REVOKED, ERROR } found;
    uint64_t revoked; /* its random digits */
    hf_error why;
    uint64_t grant;
    char token[HFI_TOKEN_ROOM];
};

static void verified(struct hfi_command *command)
{
    struct inquiry *inquiry = command->self;
    struct hfi_lock *lock = inquiry->lock;
    const redisReply *reply = command->reply;
    HFI_PERTURB("verify-answered");
    (void)pthread_mutex_lock(&lock->mutex);
    inquiry->outcome = command->outcome;
    if (command->outcome == HFI_ANSWERED && reply->type == REDIS_REPLY_ERROR) {
        inquiry->found = ERROR;
        (void)hfi_reply_fail(reply, "cannot verify the lease", hfi_pool_server_name(lock->client->pool), &inquiry->why);
        if (strncmp(reply->str, "WRONGTYPE", 9) == 0)
            inquiry->found = OTHERS;
    } else if (command->outcome == HFI_ANSWERED) {
        bool same = reply->type == REDIS_REPLY_STRING && reply->len == strlen(inquiry->token) &&
                    memcmp(reply->str, inquiry->token, reply->len) == 0;
        inquiry->found = same ? SAME : reply->type == REDIS_REPLY_NIL ? MISSING : OTHERS;
        if (inquiry->found == OTHERS && reply->type == REDIS_REPLY_STRING &&
            hfi_token_is_of_grant(&lock->client->identity, reply->str, reply->len, inquiry->grant, &inquiry->revoked))
            inquiry->found = REVOKED;
    }
    bool abandoned = inquiry->abandoned;
    inquiry->done = true;
    hfi_park_wake(&inquiry->park);
    (void)pthread_mutex_unlock(&lock->mutex);
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
    (void)pthread_mutex_lock(&lock->mutex);
    if (inquiry->found != SAME && lock->holder == lease && lock->grant == inquiry->grant) {
        struct hfi_actions actions;
        int64_t now = hfi_now(client->clock);
        hfi_actions_init(&actions);
        if (inquiry->found == REVOKED)
            hfi_closing_revoked(lock, inquiry->grant, inquiry->revoked, now);
        hfi_entry_lost(&lock->entry,
                       inquiry->found == MISSING   ? HF_REASON_GONE
                       : inquiry->found == REVOKED ? HF_REASON_REVOKED
                                                   : HF_REASON_TAKEN,
                       now, &actions);
        hfi_lock_perform(lock, &actions, now, NULL);
    }
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    return hf_lease_is_valid(lease) ? HF_OK : lost(lease, error);
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
        (void)pthread_mutex_unlock(&lock->mutex);
        hfi_command_unref(command);
        free(inquiry);
        return lost(lease, error);
    }
    inquiry->grant = lock->grant;
    (void)hfi_lock_token(lock, inquiry->token);
    command->done = verified;
    command->self = inquiry;
    command->until_ns = now + client->command_ms * HFI_MS;
    hfi_lane_list(lock->lane, command);
    hfi_command_unref(command);
    /* Not longer than the lease: then the answer frees the inquiry, whenever it comes. */
    while (!inquiry->done && !inquiry->abandoned) {
        uint32_t ticket = hfi_park_ticket(&inquiry->park);
        (void)pthread_mutex_unlock(&lock->mutex);
        hfi_lane_flush(lock->lane);
        (void)hfi_lane_wait(lock->lane, &inquiry->park, ticket, end);
        HFI_PERTURB("verify-woken");
        (void)pthread_mutex_lock(&lock->mutex);
        end = atomic_load(lease->end); /* renewed meanwhile, or withdrawn */
        inquiry->abandoned = !inquiry->done && hfi_now(client->clock) >= end;
    }
    bool abandoned = inquiry->abandoned;
    if (abandoned)
        hfi_table_ref(lock);
    (void)pthread_mutex_unlock(&lock->mutex);
    if (abandoned)
        return lost(lease, error);
    hf_status status = verdict(lock, lease, inquiry, error);
    free(inquiry);
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
    status = verify(lease, error);
    hfi_client_leave(client);
    return status;
}
