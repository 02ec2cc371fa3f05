/* SPDX-License-Identifier: MIT */
/* inquiry.h - a question to the server about a lease that is held: the thread that asks waits for the answer, and no longer
 * than the lease lasts. */
#ifndef HFI_INQUIRY_H
#define HFI_INQUIRY_H

#include "core/lock/handle.h"
#include "core/lock/lock.h"

enum hfi_finding {
    HFI_FOUND_SAME,    /* it is ours */
    HFI_FOUND_NOTHING, /* no key */
    HFI_FOUND_OTHERS,
    HFI_FOUND_REVOKED, /* a break has left `there` */
    HFI_FOUND_ERROR    /* an answer that says nothing about the lease: `why` */
};

struct hfi_inquiry {
    struct hfi_token token; /* the lease's */
    struct hfi_token there;
    hf_error why;
};

struct hfi_inquiry_kind {
    const char *failed; /* the words of an error reply: "cannot verify the lease" */
    /* The command; NULL: no memory. */
    struct hfi_command *(*question)(struct hfi_lock *lock, int64_t now);
    /* What an answer that is no error says. */
    enum hfi_finding (*find)(struct hfi_lock *lock, const struct redisReply *reply, struct hfi_inquiry *inquiry);
    /* Of a question that changes something: the answer shows that it has not. NULL: it changes nothing. */
    void (*undone)(struct hfi_entry *entry);
};
/* All are called with the lock's mutex held. */

/* HF_OK: it was ours while this ran. A lease that is not is told so (LOST). No mutex held. */
hf_status hfi_inquire(hf_lease *lease, const struct hfi_inquiry_kind *kind, hf_error *error);

#endif
