/* SPDX-License-Identifier: MIT */
/* probe.h - a probe for deadlocks, the messages D and E. Pure. What is parsed is untrusted.
 *
 *   D token wait.nonce hops      first walk: is the owner that holds `token` waiting, for what?
 *   E token wait.nonce n hops    second walk: is hop number n, whose token this is, still as it was?
 *
 * `wait` is the wait that asks: start.client.number. Hops are parted by '/', each is `token,fence,wait,name`: the owner that
 * holds `token` with that fence waits, with the wait of that number; `name` is what the token locks, for people. */
#ifndef HFI_PROBE_H
#define HFI_PROBE_H

#include "core/protocol/token.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_HOPS_MOST     16
#define HFI_HOP_NAME      64
#define HFI_PROBE_CAPACITY (HFI_TOKEN_CAPACITY + 160 + HFI_HOPS_MOST * (HFI_TOKEN_CAPACITY + 44 + HFI_HOP_NAME))

struct hfi_wait_id { /* of all clients' waits; one that is over never comes again */
    int64_t  start_us; /* estimated server time of its begin, fixed once */
    char     client[33];
    uint64_t number;
};

struct hfi_hop {
    char     token[HFI_TOKEN_CAPACITY];
    int64_t  fence; /* of the hold: local passes of one token have a fence each */
    uint64_t wait;     /* 0: not known yet */
    char     name[HFI_HOP_NAME + 1];
};

struct hfi_probe {
    struct hfi_wait_id wait;
    uint64_t nonce;
    int      count;
    struct hfi_hop hops[HFI_HOPS_MOST];
};

/* A total order: in each ring exactly one wait is younger than all others. */
bool hfi_wait_is_younger(const struct hfi_wait_id *one, const struct hfi_wait_id *other);

/* Bytes of a name that a hop cannot have become '_'; a long one is cut. */
void hfi_hop_set_name(struct hfi_hop *hop, const char *name, size_t size);

void hfi_probe_print(const struct hfi_probe *probe, const char *token, char out[HFI_PROBE_CAPACITY]);               /* D */
void hfi_probe_print_check(const struct hfi_probe *probe, int index, char out[HFI_PROBE_CAPACITY]); /* E, to hop `index` */
/* `text` is what follows letter and token. *index: that of E, -1 for D. False: malformed. */
bool hfi_probe_parse(const char *text, size_t size, bool is_check, struct hfi_probe *probe, int *index);

#endif
