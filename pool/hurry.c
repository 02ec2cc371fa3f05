/* SPDX-License-Identifier: MIT */
/* hurry.c - see hurry.h, and hfi_pool_hurry. */
#include "pool/hurry.h"
#include "base/poll.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/topology.h"

#include <sys/eventfd.h>

void hfi_pool_hurry(struct hfi_pool *pool, int64_t until_ns)
{
    if (atomic_load(&pool->hurry_ns) == HFI_NEVER) {
        atomic_store(&pool->hurry_ns, until_ns);
        (void)eventfd_write(pool->hurry_fd, 1); /* never read, so later waiters see it too */
        hfi_topology_hurry(pool->topology);
    }
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_hurry(pool->lanes[i], until_ns);
    hfi_listener_kick(pool->listener);
}

int64_t hfi_hurry_until(const struct hfi_pool *pool, int64_t until_ns)
{
    int64_t hurry_ns = atomic_load(&pool->hurry_ns);
    return hurry_ns < until_ns ? hurry_ns : until_ns;
}

bool hfi_hurry_poll(struct hfi_pool *pool, int fd, short events, int64_t until_ns)
{
    bool hurried = atomic_load(&pool->hurry_ns) != HFI_NEVER;
    struct pollfd ready[] = {{fd, events, 0}, {pool->hurry_fd, POLLIN, 0}};
    until_ns = hfi_hurry_until(pool, until_ns);
    return until_ns > hfi_now(pool->clock) &&
           hfi_poll_until(ready, hurried ? 1 : 2, pool->clock, until_ns) != 0;
}
