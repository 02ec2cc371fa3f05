/* SPDX-License-Identifier: MIT */
/* poll.h - poll() until a point in time of our clock. */
#ifndef HFI_POLL_H
#define HFI_POLL_H

#include "base/clock.h"

#include <poll.h>

/* As poll(), but returns at until_ns at the latest; at once if that is past, and never for HFI_NEVER. A signal does not end it. */
int hfi_poll_until(struct pollfd *fds, nfds_t count, const struct hfi_clock *clock, int64_t until_ns);

#endif
