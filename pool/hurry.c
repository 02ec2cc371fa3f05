/* SPDX-License-Identifier: MIT */
/* hurry.c - see hurry.h. */
#include "pool/hurry.h"
#include "base/poll.h"
#include "pool/deployment.h"

int64_t hfi_hurry_until(const struct hfi_deployment *deployment, int64_t until_ns)
{
    int64_t hurry_ns = atomic_load(&deployment->hurry_ns);
    return hurry_ns < until_ns ? hurry_ns : until_ns;
}

bool hfi_hurry_poll(struct hfi_deployment *deployment, int fd, short events, int64_t until_ns)
{
    bool hurried = atomic_load(&deployment->hurry_ns) != HFI_NEVER;
    struct pollfd ready[] = {{fd, events, 0}, {deployment->hurry_fd, POLLIN, 0}};
    until_ns = hfi_hurry_until(deployment, until_ns);
    return until_ns > hfi_now(deployment->clock) &&
           hfi_poll_until(ready, hurried ? 1 : 2, deployment->clock, until_ns) != 0;
}
