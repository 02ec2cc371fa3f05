/* SPDX-License-Identifier: MIT */
/* poll.c - see poll.h. */
#include "base/poll.h"

#include <errno.h>
#include <stddef.h>
#include <time.h>

int hfi_poll_until(struct pollfd *fds, nfds_t count, const struct hfi_clock *clock, int64_t until_ns)
{
    int ready;
    do {
        int64_t left = until_ns - hfi_now(clock);
        struct timespec length = hfi_timespec(left > 0 ? left : 0);
        ready = ppoll(fds, count, until_ns != HFI_NEVER ? &length : NULL, NULL);
    } while (ready < 0 && errno == EINTR);
    return ready;
}
