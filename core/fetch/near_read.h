/* SPDX-License-Identifier: MIT */
/* near_read.h - one read at a time of a value that is to be near: who comes while it is under way waits for it, and takes what it
 * found. */
#ifndef HFI_NEAR_READ_H
#define HFI_NEAR_READ_H

#include "base/list.h"
#include "core/context/wait.h"
#include "core/fetch/value.h"
#include "core/protocol/name.h"

bool hfi_near_reads_open(hf_client *client); /* false: no memory */
void hfi_near_reads_free(hf_client *client);

struct hfi_near_found {
    bool is_good;          /* else nobody but the reader may use it */
    struct hfi_body *body; /* a reference; NULL: there is nothing */
    int64_t left_ms;       /* at its arrival, to the key's end; -1: never */
    int64_t stamp_ns;      /* the clock before the read was listed, */
    uint64_t changes;      /* and how often the key had changed then (local.h) */
};

struct hfi_near_read {     /* on the stack of the thread that reads, or of one that waits for it */
    struct hfi_list link;  /* of the client's reads, or of the reader's `others` */
    struct hfi_list others;
    const struct hfi_name *key;
    struct hfi_park park;
    bool done;
    struct hfi_near_found found;
};

/* True: this thread is to read, and to call hfi_near_read_end. False: another does, so wait. */
bool hfi_near_read_begin(hf_client *client, const struct hfi_name *key, struct hfi_near_read *read);
/* Gives what was found to the others, who each get a reference of their own. */
void hfi_near_read_end(hf_client *client, struct hfi_near_read *read, const struct hfi_near_found *found);
/* HF_OK: read->found is there, its body this caller's. CANCELED; TIMEOUT: the reader is stuck. */
hf_status hfi_near_read_wait(hf_client *client, struct hfi_near_read *read, hf_cancel *cancel, int64_t until_ns);

#endif
