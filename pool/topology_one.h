/* SPDX-License-Identifier: MIT */
/* topology_one.h - one server, by its path, address or name. A name is looked up in a thread that may block. */
#ifndef HFI_TOPOLOGY_ONE_H
#define HFI_TOPOLOGY_ONE_H

#include "pool/topology.h"
#include "pool/uri.h"

/* Resolves paths and numeric addresses; a name is not looked up before it is asked for. A lookup that still runs when it
 * is freed frees the memory when it ends. Addresses that a later lookup finds again keep their order (hfi_topology_rate);
 * new ones come after them. INVALID, NOMEM. */
hf_status hfi_topology_one_new(const struct hfi_endpoint *endpoint, const struct hfi_clock *clock,
                               const struct hfi_topology_ops *ops, struct hfi_topology **topology, hf_error *error);

#endif
