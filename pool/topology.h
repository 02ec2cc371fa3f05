/* SPDX-License-Identifier: MIT */
/* topology.h - where the primary is. One server today; a sentinel's or a cluster's answer would come in here.
 */
#ifndef HFI_TOPOLOGY_H
#define HFI_TOPOLOGY_H

#include "base/clock.h"
#include "base/error.h"
#include "pool/race.h"
#include "pool/uri.h"

#include <stdbool.h>
#include <sys/socket.h>

#define HFI_ADDRESSES_MOST HFI_RACERS_MOST

struct hfi_addresses {
    struct hfi_address {
        struct sockaddr_storage at;
        socklen_t size;
    } list[HFI_ADDRESSES_MOST];
    int count;
};

enum hfi_where { HFI_FOUND, HFI_LOOKING, HFI_NOT_FOUND };

/* What a topology asks of its owner. */
struct hfi_topology_ops {
    bool (*in_background)(void *self, void (*run)(void *arg), void *arg); /* NULL: no name can be looked up */
    void (*found)(void *self); /* a lookup has ended; from the thread that may block */
    void *self;
};

struct hfi_topology;

/* Paths and numeric addresses are settled here; a name is not looked up before it is asked for. INVALID,
 * NOMEM. */
hf_status hfi_topology_new(const struct hfi_endpoint *endpoint, const struct hfi_clock *clock,
                           const struct hfi_topology_ops *ops, struct hfi_topology **topology,
                           hf_error *error);
/* The owner is told nothing any more; a lookup that still runs frees the rest when it ends. NULL is a no-op.
 */
void hfi_topology_free(struct hfi_topology *topology);
/* Never blocks. The last good addresses, while newer ones are being looked up aside. NOT_FOUND: *error says
 * why. */
enum hfi_where hfi_topology_primary(struct hfi_topology *topology, struct hfi_addresses *addresses,
                                    hf_error *error);
/* The list begins with this address from now on, or ends with it if it was not good. What a later lookup finds again keeps
 * its order, and what is new comes behind. */
void hfi_topology_rate(struct hfi_topology *topology, const struct hfi_address *address, bool good);
/* As hfi_topology_primary, but waits until_ns for the first lookup, unless it is hurried. */
enum hfi_where hfi_topology_wait(struct hfi_topology *topology, int64_t until_ns,
                                 struct hfi_addresses *addresses, hf_error *error);

void hfi_topology_hurry(struct hfi_topology *topology); /* who waits, and will, waits no longer */

#endif
