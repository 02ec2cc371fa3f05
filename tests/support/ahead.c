/* SPDX-License-Identifier: MIT */
/* ahead.c - preloaded into a redis-server: its clock of the day is HFT_AHEAD_MS ahead (server.h). */
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

static long long ahead_us(void)
{
    const char *ms = getenv("HFT_AHEAD_MS");
    return ms != NULL ? 1000 * strtoll(ms, NULL, 10) : 0;
}

SEEN int clock_gettime(clockid_t clock, struct timespec *time)
{
    int result = (int)syscall(SYS_clock_gettime, clock, time);
    long long us = clock == CLOCK_REALTIME ? time->tv_nsec / 1000 + ahead_us() : 0;
    if (us == 0)
        return result;
    time->tv_sec += (time_t)(us / 1000000);
    time->tv_nsec = (long)(us % 1000000 * 1000 + time->tv_nsec % 1000);
    return result;
}

SEEN int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    *time = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return result;
}
