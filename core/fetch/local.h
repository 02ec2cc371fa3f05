/* SPDX-License-Identifier: MIT */
/* local.h - the values that hf_fetch last saw in this process, and which of them are near: at most local_bytes together.
 * What was not asked for again goes first (SIEVE: Zhang and others, NSDI 2024). */
#ifndef HFI_LOCAL_H
#define HFI_LOCAL_H

#include "core/context/context.h"
#include "core/fetch/value.h"
#include "core/policy/near_proof.h"
#include "core/protocol/name.h"

bool hfi_local_open(hf_client *client); /* false: no memory */
void hfi_local_free(hf_client *client);

struct hfi_seen {
    struct hfi_body *body; /* a reference; NULL: nothing seen */
    int64_t end_ns;        /* when the key ends at the server, on our clock; HFI_NEVER: never; 0: not known */
    int64_t asked_ns;      /* when the server was last asked for the end; end_ns may be an earlier answer, if that was sooner */
    int64_t load_ms;       /* how long a load took; 0: not known */
    bool    stored;        /* the server had the value when it was seen */
    uint64_t forgets;      /* the key's count of forgets at the look-up, before the value was read or loaded */
    struct hfi_near_mark near; /* epoch 0: it is not near */
};

/* Fills *seen with what is remembered of the key; seen->body is the caller's to unref. */
void hfi_local_look(hf_client *client, const struct hfi_name *key, struct hfi_seen *seen);
/* Remembers *saw, unless the key was forgotten since saw->forgets was read. If the remembered body has the same bytes,
 * it replaces saw->body, and the caller's reference moves to it. end_ns 0, load_ms 0: keep what is known. Near, if saw->near
 * says so, unless the key may have changed since its `changes` were counted (N2). True: it is near now. saw->near.read_ns not 0:
 * end_ns and asked_ns are counted from before it was read, so they are good for what is near, too. */
bool hfi_local_observe(hf_client *client, const struct hfi_name *key, struct hfi_seen *saw, uint64_t changes);
void hfi_local_forget(hf_client *client, const struct hfi_name *key);
/* Forgets the values that may be over at the server or were not stored there, or `all`; and what is read or loaded at this
 * moment, whatever its key, will not be remembered. */
void hfi_local_forget_over(hf_client *client, bool all);

/* How often a key that shares this one's counter has changed, as far as this process was told, or did it itself. */
uint64_t hfi_local_changes(hf_client *client, const struct hfi_name *key);
/* It has changed, or is about to: it is near no more, and what is being read now will not be. */
void hfi_local_changed(hf_client *client, const struct hfi_name *key);

struct hfi_local_amount {
    uint64_t near_values, near_bytes; /* with those that are void, until they are asked for, or make room */
};
void hfi_local_count(const hf_client *client, struct hfi_local_amount *amount);

#endif
