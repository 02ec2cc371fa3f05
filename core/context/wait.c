/* SPDX-License-Identifier: MIT */
/* wait.c - see wait.h. */
#include "core/context/wait.h"
#include "base/mutex.h"
#include "base/perturb.h"

void hfi_wait_begin(struct hfi_wait *wait, hf_client *client, hf_cancel *cancel, struct hfi_park *park, int64_t until_ns)
{
    *wait = (struct hfi_wait){.client = client, .cancel = cancel, .until_ns = until_ns, .park = park};
    hfi_cancel_enter(cancel, &wait->place, park);
}

void hfi_wait_end(struct hfi_wait *wait)
{
    hfi_cancel_leave(&wait->place);
}

hf_status hfi_wait_is_over(const struct hfi_wait *wait, int64_t now)
{
    if (hfi_cancel_is_fired(wait->cancel))
        return HF_CANCELED;
    if (!wait->is_hurried && atomic_load(&wait->client->closing))
        return HF_CLOSED;
    return now >= wait->until_ns ? HF_TIMEOUT : HF_OK;
}

void hfi_wait_sleep(const struct hfi_wait *wait, uint32_t epoch, struct hfi_lane *lane)
{
    HFI_PERTURB("wait-to-sleep");
    if (lane != NULL)
        (void)hfi_lane_wait(lane, wait->park, epoch, wait->until_ns);
    else
        (void)hfi_park_wait(wait->park, epoch, wait->until_ns);
}

hf_status hfi_wait_for(const struct hfi_wait *wait, const bool *done, struct hfi_mutex *mutex, struct hfi_lane *lane)
{
    hf_status over = HF_OK;
    while (!*done && over == HF_OK) {
        uint32_t epoch = hfi_park_epoch(wait->park);
        over = hfi_wait_is_over(wait, wait->until_ns != HFI_NEVER ? hfi_now(wait->client->clock) : 0);
        if (over != HF_OK)
            break;
        hfi_mutex_unlock(mutex);
        hfi_wait_sleep(wait, epoch, lane);
        hfi_mutex_lock(mutex);
    }
    return *done ? HF_OK : over;
}
