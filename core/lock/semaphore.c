/* SPDX-License-Identifier: MIT */
/* semaphore.c - hf_semaphore_acquire. grants.c says which of a semaphore's grants serves whom. */
#include "core/lock/semaphore.h"
#include "core/lock/acquire.h"
#include "core/lock/event_sink.h"

#include <holdfast/semaphore.h>

static hf_status check(int limit, int permits, const hf_lock_options *options, hf_error *error)
{
    const char *hint = "leave it out: it is for locks";
    if (limit < 1 || limit > HF_LIMIT_MAX)
        return hfi_fail(error, HF_INVALID, "all programs that use a semaphore pass its limit", "limit is %d; it must be 1 .. %d", limit,
                        HF_LIMIT_MAX);
    if (permits < 1 || permits > HF_PERMITS_MAX || permits > limit)
        return hfi_fail(error, HF_INVALID, "", "permits is %d; it must be 1 .. %d", permits,
                        limit < HF_PERMITS_MAX ? limit : HF_PERMITS_MAX);
    if (options->shared)
        return hfi_fail(error, HF_INVALID, hint, "permits cannot be .shared");
    if (options->reentrant)
        return hfi_fail(error, HF_INVALID, hint, "permits cannot be .reentrant");
    if (options->max_hold_ms > 0)
        return hfi_fail(error, HF_INVALID, hint, "permits have no max_hold_ms: several threads may have one lease together");
    if (options->order_class != NULL)
        return hfi_fail(error, HF_INVALID, hint, "permits have no order_class");
    return HF_OK;
}

hf_status hfi_semaphore_prepare(hf_client *client, const char *text, int limit, int permits, const hf_lock_options *given,
                                hf_lock_options *options, struct hfi_name *name, hf_error *error)
{
    hf_status status = hfi_acquire_options(client, given, options, error);
    if (status == HF_OK)
        status = check(limit, permits, options, error);
    if (status == HF_OK)
        status = hfi_name_take(HFI_SEMAPHORE, text, options->name_size, name, error);
    if (status == HF_OK)
        status = hfi_acquire_speak(client, options, "semaphores", name, error);
    return status;
}

hf_status hf_semaphore_acquire(hf_client *client, const char *text, int limit, int permits, const hf_lock_options *given,
                               hf_lease **lease, hf_error *error)
{
    hf_lock_options options;
    struct hfi_name name;
    if (lease == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the lease is NULL");
    *lease = NULL;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_semaphore_prepare(client, text, limit, permits, given, &options, &name, error);
    if (status == HF_OK) {
        status = hfi_permits_take(client, &name, permits, limit, &options, lease, error);
        hfi_acquire_count_refusal(client, status);
    }
    if (status == HF_OK)
        hfi_handle_hand_out(*lease);
    hfi_client_leave(client);
    return status;
}
