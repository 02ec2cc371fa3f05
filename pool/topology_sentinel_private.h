/* SPDX-License-Identifier: MIT */
/* topology_sentinel_private.h - the sentinels of a deployment: shared by the files that ask them (sentinel_ask.c) and that
 * answer the pool (topology_sentinel.c). */
#ifndef HFI_TOPOLOGY_SENTINEL_PRIVATE_H
#define HFI_TOPOLOGY_SENTINEL_PRIVATE_H

#include "base/mutex.h"
#include "pool/clocks.h"
#include "pool/deployment.h"
#include "pool/peer.h"
#include "pool/promotable.h"
#include "pool/topology.h"

struct sentinel {
    struct by_sentinels *all;
    int index;
    struct hfi_endpoint endpoint;
    struct hfi_topology *topology; /* its own addresses */
    struct hfi_peer peer;
    struct hfi_lane *lane;
    struct hfi_subscribers *subscribers;
    bool has_told;    /* its id, or that it has none for us */
    int listed;        /* so many were there when it was asked for the others; 0: it was not */
    int64_t listed_ns; /* and when */
    bool is_asked;    /* an answer is owed */
    int64_t asked_ns; /* when it was asked last; 0: never, or it is to be asked now */
    struct hfi_said_replicas *said;
    bool is_refused; /* SENTINEL REPLICAS, when it was asked last */
};

struct by_sentinels {
    struct hfi_topology topology;
    struct hfi_deployment deployment; /* of the sentinels */
    struct hfi_topology_ops ops;
    struct hfi_deployment *served; /* of the servers */
    struct hfi_listener *listener;
    char *service;
    struct hfi_endpoint endpoint; /* of each sentinel, but for the host */
    struct sentinel list[HFI_SENTINELS_MOST];
    _Atomic(int) count; /* grown by the listener */

    struct hfi_council council; /* used by the listener only, like the next four */
    struct hfi_promotable promotable;
    bool is_untold; /* not all lanes know what is needed */
    int64_t moved_ns;         /* when another primary was named; 0: never */
    enum hfi_verdict verdict;   /* the last one */
    int64_t judge_ns;           /* when to judge again though nobody has said anything */
    _Atomic(bool) doubts;       /* ask all of them now */
    struct hfi_clocks clocks;   /* of the servers; the listener's */
    struct hfi_clock_report clocks_said; /* by the last round */
    int64_t clocks_ns;          /* when the next round is due */
    _Atomic(bool) wants_clocks; /* now */

    struct hfi_mutex mutex;       /* guards all below */
    struct hfi_topology *primary; /* NULL: none was named yet */
    bool has_failed;              /* all have been heard, and none named one */
    hf_error why;
    struct hfi_topology_report report;
};
_Static_assert(HFI_HOSTS_MOST <= HFI_SENTINELS_MOST, "the URI's have room");

/* topology_sentinel.c: what the topologies of single hosts ask of theirs. */
struct hfi_topology_ops hfi_by_sentinels_ops(struct by_sentinels *all);
bool hfi_by_sentinels_all_confirm(const struct by_sentinels *all); /* replicas=all */
/* One more, with the rights of the others, in the place of a spare one where there are enough. Returns its index; -1: no memory
 * or descriptor, or none is spare. */
int hfi_by_sentinels_add(struct by_sentinels *all, const char *host, int port);

/* sentinel_ask.c: the listener's part, before every poll(). */
void hfi_by_sentinels_ask(struct by_sentinels *all, int64_t now_ns, struct hfi_poll_set *set);
void hfi_by_sentinels_report(struct by_sentinels *all); /* the listener: makes anew what people are told */
/* sentinel_clocks.c: the same of the clocks. */
void hfi_by_sentinels_watch_clocks(struct by_sentinels *all, int64_t now_ns, struct hfi_poll_set *set);
void hfi_by_sentinels_doubt(struct by_sentinels *all); /* any thread: all are to be asked, now */

#endif
