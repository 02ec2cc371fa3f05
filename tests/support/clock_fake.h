/* SPDX-License-Identifier: MIT */
/* clock_fake.h - a clock that stands still until the test moves it. Any thread may read and move it. */
#ifndef HFT_CLOCK_FAKE_H
#define HFT_CLOCK_FAKE_H

#include "base/clock.h"

#include <stdatomic.h>

struct hft_clock {
    struct hfi_clock clock; /* what the code under test is given */
    _Atomic(int64_t) now_ns;
};

void hft_clock_init(struct hft_clock *fake, int64_t now_ns);
void hft_clock_move_ns(struct hft_clock *fake, int64_t ns); /* backwards too */
void hft_clock_move_ms(struct hft_clock *fake, int64_t ms);

#endif
