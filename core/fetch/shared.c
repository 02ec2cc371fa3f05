/* SPDX-License-Identifier: MIT */
/* shared.c - see shared.h. */
#include "core/fetch/shared.h"
#include "core/protocol/wire.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct hfi_shared *hfi_shared_of(struct hfi_lock *lock)
{
    if (lock->shared == NULL) {
        lock->shared = calloc(1, sizeof *lock->shared);
        if (lock->shared != NULL)
            hfi_list_init(&lock->shared->parked);
    }
    return lock->shared;
}

static void free_shared(struct hfi_shared *shared)
{
    hfi_body_unref(shared->body);
    free(shared);
}

void hfi_shared_put(struct hfi_shared *shared, struct hfi_body *body, int64_t now, int64_t left_ms, int64_t ttl_ms, bool stored)
{
    if (body != NULL)
        hfi_body_ref(body);
    hfi_body_unref(shared->body);
    shared->body = body;
    shared->came_ns = now;
    shared->left_ms = left_ms;
    shared->ttl_ms = ttl_ms;
    shared->stored = stored;
}

static void look(struct hfi_lock *lock)
{
    bool was_asking = lock->shared->asking;
    lock->shared->asking = lock->entry.remote == HFI_ASKING;
    if (!was_asking || lock->shared->asking)
        return;
    for (struct hfi_list *at = lock->entry.waiters.next; at != &lock->entry.waiters; at = at->next)
        hfi_park_wake(&hfi_container_of(hfi_container_of(at, struct hfi_waiter, link), struct hfi_acquirer, waiter)->park);
}

static void take(struct hfi_lock *lock, struct redisReply *reply)
{
    bool absent = strcmp(hfi_wire_script_reply(reply).word, "ABSENT") == 0;
    struct hfi_body *body = NULL;
    if (absent)
        body = hfi_body_absent();
    else if (reply->elements >= 4 && reply->element[2]->type == REDIS_REPLY_STRING)
        body = hfi_body_take(&reply->element[2]);
    int64_t left_ms = hfi_wire_number(reply, absent ? 2 : 3, -1);
    hfi_shared_put(lock->shared, body, hfi_now(lock->client->clock), left_ms, 0, true);
    lock->shared->loaded_here = false;
    hfi_body_unref(body);
}

static int64_t enough_ms(const struct hfi_shared *shared)
{
    return shared->enough_ms;
}

const struct hfi_fetch_ops hfi_shared_ops = {take, look, enough_ms, free_shared};

void hfi_shared_end_load(struct hfi_shared *shared, hf_status status, struct hfi_body *body, int64_t fresh_ms,
                         const hf_error *failure)
{
    shared->loading = false;
    while (!hfi_list_is_empty(&shared->parked)) {
        struct hfi_guest *guest = hfi_container_of(shared->parked.next, struct hfi_guest, link);
        hfi_list_remove(&guest->link);
        guest->status = status;
        guest->fresh_ms = fresh_ms;
        if (status == HF_OK)
            hfi_body_ref(guest->body = body);
        else
            guest->failure = *failure;
        guest->done = true;
        hfi_park_wake(&guest->park);
    }
}

void hfi_shared_wake(struct hfi_shared *shared)
{
    for (struct hfi_list *at = shared->parked.next; at != &shared->parked; at = at->next)
        hfi_park_wake(&hfi_container_of(at, struct hfi_guest, link)->park);
}
