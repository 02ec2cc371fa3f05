/* SPDX-License-Identifier: MIT */
/* topology_sentinel.h - the primary that sentinels name. Each sentinel is asked again and again over a lane of its own, and
 * a subscriber of its own hears of failovers; the listener does both. Those that they list are asked too. */
#ifndef HFI_TOPOLOGY_SENTINEL_H
#define HFI_TOPOLOGY_SENTINEL_H

#include "pool/sentinel.h"
#include "pool/topology.h"

#define HFI_SENTINEL_DESCRIPTORS (2 * HFI_SENTINELS_MOST + 1) /* that the listener waits for: two of each, a clock's */

struct hfi_deployment;
struct hfi_listener;
struct hfi_pool_settings;

/* `deployment` is the one whose primary is looked for: its clock, log, time limits and TLS are used. NOMEM. */
hf_status hfi_topology_sentinel_new(struct hfi_deployment *deployment, struct hfi_listener *listener,
                                    const struct hfi_pool_settings *settings, const struct hfi_topology_ops *ops,
                                    struct hfi_topology **topology, hf_error *error);

#endif
