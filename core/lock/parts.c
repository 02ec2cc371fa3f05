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
    hf_lease *whole = parts != NULL ? hfi_handle_new(leases[0]->client, options, owner) : NULL;
    if (whole == NULL) {
        free(parts);
        return NULL;
    }
    hfi_mutex_init(&parts->mutex, HFI_RANK_MIDDLE);
    parts->count = count;
    for (int i = 0; i < count; i++)
        parts->at[i].lease = leases[i];
    whole->lock = leases[0]->lock;
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

/* Of the parts that are at risk. The numbers of hf_reason rise from UNCONFIRMED to ENDING to MAX_HOLD. */
static hf_reason gravest(const struct hfi_parts *parts)
{
    hf_reason reason = HF_REASON_NONE;
    for (int i = 0; i < parts->count; i++)
        reason = parts->at[i].at_risk > reason ? parts->at[i].at_risk : reason;
    return reason;
}

/* The whole is at risk as long as any part is, and its reason is the gravest of the parts'. The owner is told when that
 * reason becomes graver, and when no part is at risk any more. */
void hfi_parts_told(hf_lease *part, hf_event_kind kind, hf_reason reason)
{
    hf_lease *whole = part->whole;
    struct hfi_parts *parts = whole->parts;
    hfi_mutex_lock(&parts->mutex);
    parts->at[index_of(parts, part)].at_risk = kind == HF_EVENT_AT_RISK ? reason : HF_REASON_NONE;
    hf_reason now = gravest(parts), before = parts->told;
    if (parts->over) {
        /* its last event was told */
    } else if (kind == HF_EVENT_LOST) {
        parts->over = true;
        hfi_handle_become(whole, kind, reason);
    } else {
        parts->told = now;
        if (now > before)
            hfi_handle_become(whole, HF_EVENT_AT_RISK, now);
        else if (now == HF_REASON_NONE && before != HF_REASON_NONE)
            hfi_handle_become(whole, HF_EVENT_SAFE_AGAIN, now);
        else
            atomic_store(&whole->reason, (uint8_t)now);
    }
    hfi_mutex_unlock(&parts->mutex);
}
