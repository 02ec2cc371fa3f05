/* SPDX-License-Identifier: MIT */
/* doubt.c - see doubt.h. */
#include "core/doubt.h"

bool hfi_doubt_is_over(const struct hfi_doubt *doubt, int64_t server_us, int64_t now_ns)
{
    return !doubt->unclear || (server_us > doubt->last_chance_us && now_ns > doubt->last_chance_ns);
}

int64_t hfi_doubt_again_ns(const struct hfi_doubt *doubt, int64_t server_us, int64_t now_ns)
{
    if (server_us == 0)
        return now_ns + HFI_DOUBT_RETRY_NS;
    if (doubt->last_chance_us >= server_us)
        return now_ns + (doubt->last_chance_us - server_us) * 1000 + HFI_MS;
    return doubt->last_chance_ns + HFI_MS;
}
