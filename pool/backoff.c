/* SPDX-License-Identifier: MIT */
/* backoff.c - see backoff.h. */
#include "pool/backoff.h"
#include "base/clock.h"
#include "base/random.h"
#include "pool/times.h"

#define JITTER   0.2
#define ONE_LOSS 1000 /* fixed point: a loss decays over HFI_LATELY_NS */

void hfi_backoff_init(struct hfi_backoff *backoff, uint64_t seed)
{
    *backoff = (struct hfi_backoff){.rng = seed};
}

static bool has_lasted(const struct hfi_backoff *backoff, int64_t now_ns)
{
    return backoff->up_ns != 0 && now_ns - backoff->up_ns >= HFI_LASTED_NS;
}

int64_t hfi_backoff_next_ns(struct hfi_backoff *backoff, int64_t now_ns)
{
    if (has_lasted(backoff, now_ns))
        backoff->tries = 0;
    backoff->up_ns = 0;
    int64_t wait_ms = 0;
    if (backoff->tries > 0) {
        wait_ms = HFI_DIAL_FIRST_MS;
        for (int i = 1; i < backoff->tries && wait_ms < HFI_DIAL_MOST_MS; i++)
            wait_ms *= 2;
        if (wait_ms > HFI_DIAL_MOST_MS)
            wait_ms = HFI_DIAL_MOST_MS;
    }
    if (backoff->tries < INT16_MAX)
        backoff->tries++;
    return now_ns + hfi_jitter(&backoff->rng, wait_ms * HFI_MS, JITTER);
}

void hfi_backoff_up(struct hfi_backoff *backoff, int64_t now_ns)
{
    backoff->up_ns = now_ns;
}

static int64_t one_more_ns(struct hfi_losses *losses, int64_t now_ns)
{
    int64_t before = losses->lately, since_ns = now_ns - losses->last_ns;
    before = since_ns < HFI_LATELY_NS ? before - before * (since_ns / 1000) / (HFI_LATELY_NS / 1000) : 0;
    losses->last_ns = now_ns;
    losses->lately = before + ONE_LOSS;
    int64_t pause_ns = before * before / 8 / ONE_LOSS;
    return pause_ns < HFI_DIAL_MOST_MS * HFI_MS ? pause_ns : HFI_DIAL_MOST_MS * HFI_MS;
}

int64_t hfi_backoff_lost_ns(struct hfi_backoff *backoff, struct hfi_losses *losses, enum hfi_lost lost, int64_t now_ns)
{
    int64_t pause_ns = one_more_ns(losses, now_ns);
    bool lasted = has_lasted(backoff, now_ns);
    if (lost == HFI_LOST_UNUSED && !lasted)
        return hfi_backoff_next_ns(backoff, now_ns);
    backoff->up_ns = 0;
    backoff->tries = 1;
    return now_ns + (lost == HFI_LOST_URGENT && lasted ? 0 : hfi_jitter(&backoff->rng, pause_ns, JITTER));
}

int64_t hfi_backoff_spread_ns(struct hfi_backoff *backoff, const struct hfi_losses *losses, int64_t most_ns)
{
    return losses->lately > ONE_LOSS ? hfi_jitter(&backoff->rng, most_ns / 2, 1.0) : 0;
}
