/* SPDX-License-Identifier: MIT */
/*
 * node.h - one server with all shared connections to it: lock, value and user lanes, the reserved lane, subscribers. A
 * pool has one for each server of its deployment. The listener's part is maintain, half_close and drain.
 */
#ifndef HFI_NODE_H
#define HFI_NODE_H

#include "pool/lane.h"
#include "pool/peer.h"

struct hfi_listener;
struct hfi_poll_set;
struct hfi_replicas;
struct hfi_subscribers;

struct hfi_node {
    struct hfi_peer peer;
    struct hfi_listener *listener;
    struct hfi_lane **lanes; /* lock, value and user lanes, the reserved lane */
    int lane_count;
    struct hfi_subscribers *subscribers;
};

/* How many descriptors its connections have the listener wait for. */
int hfi_node_descriptors(const struct hfi_pool_settings *settings);
/* NULL: no memory or descriptor. */
struct hfi_node *hfi_node_new(struct hfi_deployment *deployment, struct hfi_listener *listener);
void hfi_node_free(struct hfi_node *node); /* after drain, or never used; NULL is a no-op */
void hfi_node_forked(struct hfi_node *node);

void hfi_node_maintain(struct hfi_node *node, int64_t now_ns, struct hfi_poll_set *set); /* before every poll() */
void hfi_node_flush(struct hfi_node *node);
void hfi_node_hurry(struct hfi_node *node, int64_t until_ns); /* as hfi_pool_hurry */
bool hfi_node_is_drained(const struct hfi_node *node);
/* The listener: all its connections, because another server is meant now. What is in flight is UNANSWERED. */
void hfi_node_give_up(struct hfi_node *node, const char *why);
/* The listener: these have to confirm, from now on. False: no memory for all lanes to know. */
bool hfi_node_need(struct hfi_node *node, const struct hfi_replicas *needed);
void hfi_node_half_close(struct hfi_node *node);
void hfi_node_drain(struct hfi_node *node, int64_t until_ns);

/* As the calls of pool.h with these names. */
struct hfi_lane *hfi_node_lane(struct hfi_node *node, enum hfi_lane_kind kind, uint64_t hash);
struct hfi_lane *hfi_node_choose_lane(struct hfi_node *node);
struct hfi_lane *hfi_node_read_lane(struct hfi_node *node, uint64_t hash);
struct hfi_lane *hfi_node_answering(struct hfi_node *node, int64_t now_ns, int64_t patience_ns);
bool hfi_node_is_lock_lane(const struct hfi_node *node, int index);
void hfi_node_count(const struct hfi_node *node, struct hfi_pool_counts *counts); /* adds */

#endif
