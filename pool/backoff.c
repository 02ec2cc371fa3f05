/* SPDX-License-Identifier: MIT */
/* backoff.c - see backoff.h. */
#include "pool/backoff.h"
#include "base/clock.h"
#include "base/random.h"

#define FIRST_MS  50
#define MOST_MS   1000
#define JITTER    0.2
#define LASTED_NS (1000 * HFI_MS)

void hfi_backoff_init(struct hfi_backoff *backoff, uint64_t seed)
{
    *backoff = (struct hfi_backoff){.dice = seed};
}

int64_t hfi_backoff_next_ns(struct hfi_backoff *backoff, int64_t now_ns)
{
    if (backoff->up_ns != 0 && now_ns - backoff->up_ns >= LASTED_NS)
        backoff->tries = 0;
    backoff->up_ns = 0;
    int64_t wait_ms = 0;
    if (backoff->tries > 0) {
        wait_ms = FIRST_MS;
        for (int i = 1; i < backoff->tries && wait_ms < MOST_MS; i++)
            wait_ms *= 2;
        if (wait_ms > MOST_MS)
            wait_ms = MOST_MS;
    }
    if (backoff->tries < INT16_MAX)
        backoff->tries++;
    return now_ns + hfi_jitter(&backoff->dice, wait_ms * HFI_MS, JITTER);
}

void hfi_backoff_up(struct hfi_backoff *backoff, int64_t now_ns)
{
    backoff->up_ns = now_ns;
}

void hfi_backoff_served(struct hfi_backoff *backoff)
{
    if (backoff->tries > 1)
        backoff->tries = 1;
}
