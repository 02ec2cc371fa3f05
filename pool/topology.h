/* SPDX-License-Identifier: MIT */
/* topology.h - where the primary is. One server today; asking a sentinel or a cluster would belong here. */
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
    bool (*in_background)(void *self, void (*run)(void *arg), void *arg); /* NULL: names cannot be looked up */
    void (*found)(void *self); /* a lookup has ended; called by the thread that may block */
    void *self;
};

struct hfi_topology;

/* Resolves paths and numeric addresses; a name is not looked up before it is asked for. INVALID, NOMEM. */
hf_status hfi_topology_new(const struct hfi_endpoint *endpoint, const struct hfi_clock *clock,
                           const struct hfi_topology_ops *ops, struct hfi_topology **topology,
                           hf_error *error);
/* No op is called after this. A lookup that still runs frees the memory when it ends. NULL is a no-op. */
void hfi_topology_free(struct hfi_topology *topology);
/* Never blocks. Returns the last good addresses, while newer ones are looked up in the background. NOT_FOUND: *error
 * says why. */
enum hfi_where hfi_topology_primary(struct hfi_topology *topology, struct hfi_addresses *addresses,
                                    hf_error *error);
/* Moves this address to the front of the list, or to its end if it was not good. Addresses that a later lookup finds
 * again keep their order; new ones come after them. */
void hfi_topology_rate(struct hfi_topology *topology, const struct hfi_address *address, bool good);
/* As hfi_topology_primary, but waits for the first lookup until until_ns, or until it is hurried. */
enum hfi_where hfi_topology_wait(struct hfi_topology *topology, int64_t until_ns,
                                 struct hfi_addresses *addresses, hf_error *error);

void hfi_topology_hurry(struct hfi_topology *topology); /* ends present and future waits */

#endif
