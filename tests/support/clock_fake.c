/* SPDX-License-Identifier: MIT */
/* clock_fake.c - see clock_fake.h. */
#include "tests/support/clock_fake.h"

static int64_t fake_now_ns(void *self)
{
    struct hft_clock *fake = self;
    return atomic_load(&fake->now_ns);
}

void hft_clock_init(struct hft_clock *fake, int64_t now_ns)
{
    atomic_init(&fake->now_ns, now_ns);
    fake->clock = (struct hfi_clock){fake_now_ns, fake};
}

void hft_clock_move_ns(struct hft_clock *fake, int64_t ns)
{
    (void)atomic_fetch_add(&fake->now_ns, ns);
}

void hft_clock_move_ms(struct hft_clock *fake, int64_t ms)
{
    hft_clock_move_ns(fake, ms * HFI_MS);
}
