/* SPDX-License-Identifier: MIT */
/* load_queue.c - see load_queue.h. */
#include "core/policy/load_queue.h"
#include "base/clock.h"

enum hfi_load_place hfi_load_queue_place(const struct hfi_load_queue *queue, enum hfi_load_kind kind, bool has_job,
                                         int64_t not_before_ns, int64_t now_ns)
{
    if (queue->closed)
        return HFI_LOAD_CLOSED;
    if (has_job)
        return HFI_LOAD_JOINED;
    if (kind == HFI_REFRESH && now_ns < not_before_ns)
        return HFI_LOAD_PAUSED;
    return queue->queued >= (size_t)queue->loaders * HFI_LOADS_QUEUED ? HFI_LOAD_FULL : HFI_LOAD_NEW;
}

bool hfi_load_queue_needs_thread(const struct hfi_load_queue *queue)
{
    return queue->queued > 0 && queue->idle == 0 && queue->threads < queue->loaders;
}

enum hfi_load_kind hfi_load_queue_next(bool has_loads)
{
    return has_loads ? HFI_LOAD : HFI_REFRESH;
}

int64_t hfi_load_queue_not_before(hf_status status, int64_t retry_ms, int64_t now_ns)
{
    switch ((int)status) {
    case HF_OK:
    case HF_BUSY:     /* somebody else loads */
    case HF_TIMEOUT:
    case HF_CANCELED: /* nobody waited for it any more */
    case HF_CLOSED:
        return 0;
    default:
        return retry_ms == HF_OFF ? 0 : hfi_after_ms(now_ns, retry_ms);
    }
}
