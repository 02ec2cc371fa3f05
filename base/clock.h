/* SPDX-License-Identifier: MIT */
/* clock.h - the only source of time. Points in it are nanoseconds of CLOCK_BOOTTIME: it includes the time for which a
 * machine was suspended, and it cannot be set. */
#ifndef HFI_CLOCK_H
#define HFI_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HFI_NEVER  INT64_MAX
#define HFI_MS     INT64_C(1000000) /* nanoseconds */
#define HFI_SECOND (1000 * HFI_MS)

struct hfi_clock {
    int64_t (*now_ns)(void *self);
    void *self;
};

extern const struct hfi_clock hfi_boottime;

static inline int64_t hfi_now(const struct hfi_clock *clock)
{
    return clock->now_ns(clock->self);
}

/* CPU time that the calling thread has used: no point in time, only differences mean something. */
int64_t hfi_cpu_ns(void);

/* Nanoseconds from and to the form that system calls take. */
static inline int64_t hfi_timespec_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * HFI_SECOND + time->tv_nsec;
}
struct timespec hfi_timespec(int64_t ns);

/* `now_ns` plus `ms`; HFI_NEVER if that overflows or ms is negative (HF_FOREVER). */
int64_t hfi_after_ms(int64_t now_ns, int64_t ms);

#endif
