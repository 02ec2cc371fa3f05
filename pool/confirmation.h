/* SPDX-License-Identifier: MIT */
/* confirmation.h - whether replicas have what was written: what WAIT and ROLE say of it. Pure. */
#ifndef HFI_CONFIRMATION_H
#define HFI_CONFIRMATION_H

#include <stdint.h>

#define HFI_REPLICAS_MOST 16

struct redisReply;

struct hfi_named_host {
    char host[256]; /* an address; a name where servers are told to announce names */
    int  port;
};

struct hfi_replicas { /* by the names under which the primary, and the sentinels, know them */
    int count;
    int64_t until_ns; /* when it is too old to tell; HFI_NEVER: it is not */
    struct hfi_named_host list[HFI_REPLICAS_MOST];
};

/* How many of `wanted` do not confirm, by the answer to WAIT. */
int hfi_confirmation_lacks(const struct redisReply *wait, int wanted);
/* How many WAIT is to wait for: as many as are needed. Behind a WAIT that others have ended, as it counts whoever comes first,
 * and one that is needed was missing: all that were `connected` then, by ROLE; 0: there was none. */
int hfi_confirmation_count(const struct hfi_replicas *needed, int connected);
int hfi_confirmation_connected(const struct redisReply *role);
/* How far the primary has written, by its answer to ROLE; -1: it does not say, or is none. */
int64_t hfi_confirmation_offset(const struct redisReply *role);
/* How many of `replicas` the primary does not know to have come as far as `offset`. */
int hfi_confirmation_missing(const struct redisReply *role, int64_t offset, const struct hfi_replicas *replicas);

/* When a confirmation has to be there of which the first command waits until first_ns: a call that waits for its command and for
 * replicas waits no longer than for the one, and for the other three times. */
int64_t hfi_confirmation_until_ns(int64_t now_ns, int64_t first_ns, int64_t command_ms, int64_t replicas_ms);

#endif
