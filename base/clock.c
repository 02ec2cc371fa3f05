/* SPDX-License-Identifier: MIT */
/* clock.c - CLOCK_BOOTTIME behind a function pointer, so that tests control the time. */
#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static int64_t boottime_ns(void *self)
{
    (void)self;
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

const struct hfi_clock hfi_boottime = {boottime_ns, NULL};

int64_t hfi_after_ms(int64_t now_ns, int64_t ms)
{
    if (ms < 0 || ms > (HFI_NEVER - now_ns) / HFI_MS)
        return HFI_NEVER;
    return now_ns + ms * HFI_MS;
}
