/* SPDX-License-Identifier: MIT */
/* topology.h - where the server is that a node needs now. What knows it is of a kind: one server (topology_one.h), the
 * primary that sentinels name (topology_sentinel.h). */
#ifndef HFI_TOPOLOGY_H
#define HFI_TOPOLOGY_H

#include "base/clock.h"
#include "base/error.h"
#include "base/park.h"
#include "pool/confirmation.h"
#include "pool/race.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#define HFI_ADDRESSES_MOST HFI_RACERS_MOST

struct hfi_addresses {
    struct hfi_address {
        struct sockaddr_storage at;
        socklen_t size;
    } list[HFI_ADDRESSES_MOST];
    int count;
    char host[256]; /* whose they are, as it was written: for certificates and messages */
};

enum hfi_where { HFI_FOUND, HFI_LOOKING, HFI_NOT_FOUND };

struct hfi_poll_set;
struct hfi_replicas;
struct hfi_topology;

/* What a topology asks of its owner. */
struct hfi_topology_ops {
    bool (*in_background)(void *self, void (*run)(void *arg), void *arg); /* NULL: names cannot be looked up */
    void (*found)(void *self); /* a lookup has ended; any thread. It only kicks */
    /* These replicas could be promoted; others than before. For settings that ask for all of them to confirm. */
    bool (*needed)(void *self, const struct hfi_replicas *replicas); /* false: no memory, it is to be told again */
    void (*moved)(void *self); /* another server is meant than before: what is connected to that one is to be given up */
    void *self;
};

#define HFI_CLOCKS_APART "the clock of %s:%d is %" PRId64 " ms ahead of that of %s:%d"

struct hfi_topology_report { /* of sentinels, for people */
    int sentinels, answering;
    int replicas; /* that have to confirm; -1: not asked for */
    bool knows_replicas; /* who they are, or it is not asked for */
    uint64_t epoch;
    int64_t down_after_ms; /* 0: not told */
    struct hfi_named_host primary; /* "": none is named */
    struct hfi_clock_report {
        int round; /* 0: there was none yet */
        int servers, answered;
        int64_t apart_ms;                    /* two of them at least; 0: all agree, as far as can be told, */
        struct hfi_named_host ahead, behind; /* else these */
    } clocks;
};

struct hfi_topology_kind {
    void (*free)(struct hfi_topology *topology);
    enum hfi_where (*primary)(struct hfi_topology *topology, struct hfi_addresses *addresses, hf_error *error);
    void (*rate)(struct hfi_topology *topology, const struct hfi_address *address, bool good);
    bool (*report)(struct hfi_topology *topology, bool asks_clocks, struct hfi_topology_report *report); /* NULL: nothing to tell */
    /* The listener's part, before every poll(), and in the listener's last moments. NULL: it has none. */
    void (*maintain)(struct hfi_topology *topology, int64_t now_ns, struct hfi_poll_set *set);
    void (*end)(struct hfi_topology *topology);
    void (*forked)(struct hfi_topology *topology); /* in a fork child: closes descriptors, touches nothing else */
};

struct hfi_topology { /* the first member of each kind's own */
    const struct hfi_topology_kind *kind;
    struct hfi_park looked; /* woken when `primary` or `report` may have another answer */
    _Atomic(bool) hurried;
};

void hfi_topology_init(struct hfi_topology *topology, const struct hfi_topology_kind *kind);
/* No op is called after this. NULL is a no-op. */
void hfi_topology_free(struct hfi_topology *topology);
/* Never blocks. Any thread. Returns the last good addresses, while newer ones are looked for. NOT_FOUND: *error says
 * why. */
enum hfi_where hfi_topology_primary(struct hfi_topology *topology, struct hfi_addresses *addresses, hf_error *error);
/* Moves this address to the front of the list, or to its end if it was not good. */
void hfi_topology_rate(struct hfi_topology *topology, const struct hfi_address *address, bool good);
/* As hfi_topology_primary, but waits for the first answer until until_ns, or until it is hurried. */
enum hfi_where hfi_topology_wait(struct hfi_topology *topology, int64_t until_ns, struct hfi_addresses *addresses,
                                 hf_error *error);
/* False: one server, always the same. asks_clocks: a round is due now; a later report tells when it is over. */
bool hfi_topology_report(struct hfi_topology *topology, bool asks_clocks, struct hfi_topology_report *report);
/* Waits until it is known who has to confirm, or that nobody could, until until_ns, or until it is hurried. */
void hfi_topology_wait_for_replicas(struct hfi_topology *topology, int64_t until_ns);
void hfi_topology_hurry(struct hfi_topology *topology); /* ends present and future waits */
void hfi_topology_maintain(struct hfi_topology *topology, int64_t now_ns, struct hfi_poll_set *set);
void hfi_topology_end(struct hfi_topology *topology);
void hfi_topology_forked(struct hfi_topology *topology);

#endif
