/* SPDX-License-Identifier: MIT */
/* quarantine.c - see quarantine.h. */
#include "core/lock/quarantine.h"

#include <inttypes.h>

void hfi_quarantine_note(hf_client *client, int lane, int64_t since_us, int64_t now_us)
{
    int64_t passed_ns = since_us <= now_us ? (now_us - since_us) * 1000 : 0;
    int64_t left_ns = client->quarantine_ms * HFI_MS - passed_ns, now_ns = hfi_now(client->clock);
    if (client->quarantine_ms == 0)
        return;
    left_ns += left_ns / 100; /* our clocks may run at different rates */
    int64_t before_ns = atomic_exchange(&client->free_ns[lane], left_ns > 0 ? now_ns + left_ns : 0);
    if (left_ns > 0 && lane == 0 && before_ns <= now_ns)
        hfi_log(&client->log, HF_LOG_WARNING, "%s is new: nothing is granted for %" PRId64 " ms (quarantine_ms)",
                hfi_pool_server_name(client->pool), left_ns / HFI_MS);
}

int64_t hfi_quarantine_of_lane_ns(const hf_client *client, int lane, int64_t now)
{
    int64_t left_ns = client->quarantine_ms != 0 ? atomic_load(&client->free_ns[lane]) - now : 0;
    return left_ns > 0 ? left_ns : 0;
}

int64_t hfi_quarantine_left_ns(const struct hfi_lock *lock, int64_t now)
{
    return lock->keys.use == HFI_FETCH ? 0 : hfi_quarantine_of_lane_ns(lock->client, hfi_lane_index(lock->lane), now);
}
