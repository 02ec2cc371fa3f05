/* SPDX-License-Identifier: MIT */
/* clock.c - CLOCK_BOOTTIME, behind a function pointer, so that tests control the time; and the CPU time of a thread. */
#include "base/clock.h"

#include <stddef.h>

static int64_t boottime_ns(void *self)
{
    (void)self;
    struct timespec now;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return hfi_timespec_ns(&now);
}

const struct hfi_clock hfi_boottime = {boottime_ns, NULL};

int64_t hfi_cpu_ns(void)
{
    struct timespec used = {0}; /* not every kernel has this clock: then all is free */
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return hfi_timespec_ns(&used);
}

struct timespec hfi_timespec(int64_t ns)
{
    return (struct timespec){(time_t)(ns / HFI_SECOND), (long)(ns % HFI_SECOND)};
}

int64_t hfi_after_ms(int64_t now_ns, int64_t ms)
{
    if (ms < 0 || ms > (HFI_NEVER - now_ns) / HFI_MS)
        return HFI_NEVER;
    return now_ns + ms * HFI_MS;
}
