/* SPDX-License-Identifier: MIT */
/* hurry.h - the end that close sets, by hfi_pool_hurry, to the waits of other threads for the server: they wait no
 * longer than close does. */
#ifndef HFI_HURRY_H
#define HFI_HURRY_H

#include <stdbool.h>
#include <stdint.h>

struct hfi_deployment;

/* Returns until_ns, or the end that close has set if that is sooner. */
int64_t hfi_hurry_until(const struct hfi_deployment *deployment, int64_t until_ns);
/* For a user's thread: sleeps until the descriptor is ready, a signal or close comes, or the time is over (until_ns, or
 * the end that close has set). False: the time is over. */
bool hfi_hurry_poll(struct hfi_deployment *deployment, int fd, short events, int64_t until_ns);

#endif
