/* SPDX-License-Identifier: MIT */
/* topology.c - what all kinds of topology have in common. */
#include "pool/topology.h"

void hfi_topology_init(struct hfi_topology *topology, const struct hfi_topology_kind *kind)
{
    topology->kind = kind;
    hfi_park_init(&topology->looked);
}

void hfi_topology_free(struct hfi_topology *topology)
{
    if (topology != NULL)
        topology->kind->free(topology);
}

enum hfi_where hfi_topology_primary(struct hfi_topology *topology, struct hfi_addresses *addresses, hf_error *error)
{
    return topology->kind->primary(topology, addresses, error);
}

void hfi_topology_rate(struct hfi_topology *topology, const struct hfi_address *address, bool good)
{
    topology->kind->rate(topology, address, good);
}

enum hfi_where hfi_topology_wait(struct hfi_topology *topology, int64_t until_ns, struct hfi_addresses *addresses,
                                 hf_error *error)
{
    for (;;) {
        uint32_t epoch = hfi_park_epoch(&topology->looked);
        enum hfi_where where = hfi_topology_primary(topology, addresses, error);
        if (where != HFI_LOOKING || atomic_load(&topology->hurried) ||
            !hfi_park_wait(&topology->looked, epoch, until_ns))
            return where;
    }
}

void hfi_topology_hurry(struct hfi_topology *topology)
{
    atomic_store(&topology->hurried, true);
    hfi_park_wake(&topology->looked);
}

bool hfi_topology_report(struct hfi_topology *topology, bool asks_clocks, struct hfi_topology_report *report)
{
    return topology->kind->report != NULL && topology->kind->report(topology, asks_clocks, report);
}

void hfi_topology_wait_for_replicas(struct hfi_topology *topology, int64_t until_ns)
{
    struct hfi_topology_report report;
    uint32_t epoch;
    do
        epoch = hfi_park_epoch(&topology->looked);
    while (hfi_topology_report(topology, false, &report) && !report.knows_replicas && !atomic_load(&topology->hurried) &&
           hfi_park_wait(&topology->looked, epoch, until_ns));
}

void hfi_topology_maintain(struct hfi_topology *topology, int64_t now_ns, struct hfi_poll_set *set)
{
    if (topology->kind->maintain != NULL)
        topology->kind->maintain(topology, now_ns, set);
}

void hfi_topology_end(struct hfi_topology *topology)
{
    if (topology->kind->end != NULL)
        topology->kind->end(topology);
}

void hfi_topology_forked(struct hfi_topology *topology)
{
    if (topology->kind->forked != NULL)
        topology->kind->forked(topology);
}
