/* SPDX-License-Identifier: MIT */
/*
 * deployment.h - what a URI names, as all connections of the pool know it: the settings, the owner's ops, who finds its
 * servers, and until when they are waited for. What is known of one server is in peer.h.
 */
#ifndef HFI_DEPLOYMENT_H
#define HFI_DEPLOYMENT_H

#include "base/clock.h"
#include "base/log.h"
#include "pool/costs.h"
#include "pool/crowd.h"
#include "pool/followers.h"
#include "pool/owner.h"
#include "pool/pace.h"

#include <stdatomic.h>

struct hfi_secure;
struct hfi_topology;

struct hfi_deployment {
    struct hfi_pool_settings settings; /* endpoint and client_name are our own copies */
    struct hfi_pool_ops ops;
    void *self; /* for ops */
    const struct hfi_clock *clock;
    struct hfi_log log;
    struct hfi_topology *topology;
    struct hfi_secure *secure; /* NULL: in the clear */

    _Atomic(int64_t) closing_until_ns; /* 0: open; else close has begun and waits for the network until then */
    _Atomic(int64_t) hurry_ns;         /* until_ns of the first hfi_pool_hurry; HFI_NEVER: not called yet */
    int hurry_fd;                      /* readable once hurry_ns is set */
    _Atomic(int64_t) short_ns;         /* when a confirmation by replicas last was none; 0: never */
    _Atomic(bool) closed_short;        /* since hurry or close began, a command has ended without an answer */
    struct hfi_costs costs;
    struct hfi_followers followers;      /* threads that wait while another one reads for them */
    struct hfi_pace pace;                /* whether these look, when they are many */
    struct hfi_crowd crowds[HFI_CROWDS]; /* these four last, away from what nobody changes: each wait writes some of them */
};

/* For a zeroed deployment whose ops, self, clock and log are set. False: no memory or descriptor; done is still due. */
bool hfi_deployment_init(struct hfi_deployment *deployment, const struct hfi_pool_settings *settings);
void hfi_deployment_done(struct hfi_deployment *deployment); /* the topology is its maker's */
/* May one of so many followers look for its wake-up? */
bool hfi_deployment_follower_looks(const struct hfi_deployment *deployment, int followers);

#endif
