/* SPDX-License-Identifier: MIT */
/*
 * cancel.c - see cancel.h. hf_cancel_fire may run in a signal handler, where no list may be walked: it sets a flag and
 * kicks the listener, which wakes the waiters.
 */
#include "core/context/cancel.h"
#include "base/perturb.h"

#include <stdlib.h>

struct hf_cancel {
    hf_client *client;       /* a reference */
    struct hfi_list link;    /* in client->cancels; client->cancel_mutex guards both lists */
    struct hfi_list waiting; /* struct hfi_canceled */
    _Atomic(bool) fired;
};

hf_status hf_cancel_open(hf_client *client, hf_cancel **cancel_out, hf_error *error)
{
    if (cancel_out == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the cancel is NULL");
    *cancel_out = NULL;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    hf_cancel *cancel = calloc(1, sizeof *cancel);
    if (cancel == NULL) {
        hfi_client_leave(client);
        return hfi_fail(error, HF_NOMEM, "", "no memory for a cancel");
    }
    hfi_client_ref(client);
    cancel->client = client;
    hfi_list_init(&cancel->waiting);
    hfi_list_init(&cancel->link);
    hfi_mutex_lock(&client->cancel_mutex);
    hfi_list_append(&client->cancels, &cancel->link);
    hfi_mutex_unlock(&client->cancel_mutex);
    hfi_client_leave(client);
    *cancel_out = cancel;
    return HF_OK;
}

void hf_cancel_fire(hf_cancel *cancel)
{
    if (cancel == NULL || hfi_client_is_forked(cancel->client))
        return;
    atomic_store(&cancel->fired, true);
    HFI_PERTURB("fired-to-kick");
    hfi_pool_kick(cancel->client->pool);
}

void hf_cancel_reset(hf_cancel *cancel)
{
    if (cancel != NULL)
        atomic_store(&cancel->fired, false);
}

void hf_cancel_close(hf_cancel *cancel)
{
    if (cancel == NULL)
        return;
    hf_client *client = cancel->client;
    if (!hfi_client_is_forked(client)) {
        hfi_mutex_lock(&client->cancel_mutex);
        hfi_list_remove(&cancel->link);
        hfi_mutex_unlock(&client->cancel_mutex);
    }
    free(cancel);
    hfi_client_unref(client);
}

void hfi_cancel_enter(hf_cancel *cancel, struct hfi_canceled *place, struct hfi_park *park)
{
    place->cancel = cancel;
    place->park = park;
    if (cancel == NULL)
        return;
    hfi_list_init(&place->link);
    hfi_mutex_lock(&cancel->client->cancel_mutex);
    hfi_list_append(&cancel->waiting, &place->link);
    hfi_mutex_unlock(&cancel->client->cancel_mutex);
}

void hfi_cancel_leave(struct hfi_canceled *place)
{
    if (place->cancel == NULL)
        return;
    hfi_mutex_lock(&place->cancel->client->cancel_mutex);
    hfi_list_remove(&place->link);
    hfi_mutex_unlock(&place->cancel->client->cancel_mutex);
}

bool hfi_cancel_is_fired(const hf_cancel *cancel)
{
    return cancel != NULL && atomic_load(&cancel->fired);
}

void hfi_cancel_kicked(hf_client *client)
{
    HFI_PERTURB("kicked-to-cancels");
    hfi_mutex_lock(&client->cancel_mutex);
    for (struct hfi_list *at = client->cancels.next; at != &client->cancels; at = at->next) {
        hf_cancel *cancel = hfi_container_of(at, hf_cancel, link);
        if (!atomic_load(&cancel->fired))
            continue;
        for (struct hfi_list *one = cancel->waiting.next; one != &cancel->waiting; one = one->next)
            hfi_park_wake(hfi_container_of(one, struct hfi_canceled, link)->park);
    }
    hfi_mutex_unlock(&client->cancel_mutex);
}
