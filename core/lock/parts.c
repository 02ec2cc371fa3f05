/* SPDX-License-Identifier: MIT */
/* parts.c - see parts.h. */
#include "core/lock/parts.h"
#include "core/lock/event_sink.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"

#include <stdlib.h>

hf_lease *hfi_parts_join(hf_lease *const *leases, int count, const hf_lock_options *options, uint64_t owner,
                         uint64_t thread, int tid)
{
    struct hfi_parts *parts = calloc(1, sizeof *parts + (size_t)count * sizeof parts->at[0]);
    hf_lease *whole = parts != NULL ? hfi_handle_new(leases[0]->lock, options, owner) : NULL;
    if (whole == NULL) {
        free(parts);
        return NULL;
    }
    hfi_mutex_init(&parts->mutex, HFI_RANK_MIDDLE);
    parts->lost = -1;
    parts->count = count;
    for (int i = 0; i < count; i++)
        parts->at[i].lease = leases[i];
    whole->parts = parts;
    hfi_handle_unref(whole); /* no lock has it as its holder */
    if (!hfi_event_sink_attach(whole, options, thread, tid)) {
        hfi_handle_drop(whole, 1);
        return NULL;
    }
    hfi_table_ref(whole->lock);
    hfi_handle_begin(whole, INT64_MAX, 0, HFI_NEVER, hfi_now(whole->client->clock));
    return whole;
}

static int index_of(const struct hfi_parts *parts, const hf_lease *part)
{
    int i = 0;
    while (parts->at[i].lease != part)
        i++;
    return i;
}

static bool any_at_risk(const struct hfi_parts *parts)
{
    bool any = false;
    for (int i = 0; i < parts->count; i++)
        any = any || parts->at[i].at_risk;
    return any;
}

/* The whole is at risk as long as a part is. It is told so again only for another reason, as a lock's lease is. */
void hfi_parts_told(hf_lease *part, hf_event_kind kind, hf_reason reason)
{
    hf_lease *whole = part->whole;
    struct hfi_parts *parts = whole->parts;
    hfi_mutex_lock(&parts->mutex);
    int i = index_of(parts, part);
    parts->at[i].at_risk = kind == HF_EVENT_AT_RISK;
    if (parts->lost >= 0) {
        /* its last event was told */
    } else if (kind == HF_EVENT_LOST) {
        parts->lost = i;
        hfi_handle_become(whole, kind, reason);
    } else if (kind == HF_EVENT_AT_RISK && parts->told != reason) {
        parts->told = reason;
        hfi_handle_become(whole, kind, reason);
    } else if (kind == HF_EVENT_SAFE_AGAIN && !any_at_risk(parts)) {
        parts->told = HF_REASON_NONE;
        hfi_handle_become(whole, kind, reason);
    }
    hfi_mutex_unlock(&parts->mutex);
}
