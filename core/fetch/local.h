/* SPDX-License-Identifier: MIT */
/* local.h - the values of hf_fetch that this process saw last, at most local_bytes of them, longest unused out first. */
#ifndef HFI_LOCAL_H
#define HFI_LOCAL_H

#include "core/context/context.h"
#include "core/fetch/value.h"

bool hfi_local_open(hf_client *client); /* false: no memory */
void hfi_local_free(hf_client *client);

struct hfi_seen {
    struct hfi_body *body; /* a reference; NULL: nothing seen */
    int64_t end_ns;        /* when the key ends at the server, our clock; HFI_NEVER: never; 0: not known */
    int64_t asked_ns;      /* when that was asked */
    int64_t load_ms;       /* how long a load took; 0: not known */
    bool    stored;        /* at the server, when it was seen */
    uint64_t forgets;      /* how many there had been when it was looked for, before it was read or loaded */
};

/* What is remembered of the key; seen->body is the caller's to unref. */
void hfi_local_look(hf_client *client, const char *key, size_t size, struct hfi_seen *seen);
/* Remembers, unless the key was forgotten since saw->forgets was read. A body of the same bytes as before gives way to the
 * one remembered: the caller's reference moves to it. end_ns 0, load_ms 0: keep what is known. */
void hfi_local_observe(hf_client *client, const char *key, size_t size, struct hfi_seen *saw);
void hfi_local_forget(hf_client *client, const char *key, size_t size);

#endif
