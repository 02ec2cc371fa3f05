/* SPDX-License-Identifier: MIT */
/* cancel.h - a thread that waits with an hf_cancel can be woken by it. */
#ifndef HFI_CANCEL_H
#define HFI_CANCEL_H

#include "base/list.h"
#include "base/park.h"
#include "core/context/context.h"

struct hfi_canceled { /* on the waiter's stack */
    struct hfi_list  link;
    struct hfi_park *park;
    hf_cancel       *cancel;
};

/* Between the two the park is woken when the cancel fires; look at hfi_cancel_is_fired after every wake. NULL is fine. */
void hfi_cancel_enter(hf_cancel *cancel, struct hfi_canceled *place, struct hfi_park *park);
void hfi_cancel_leave(struct hfi_canceled *place);
bool hfi_cancel_is_fired(const hf_cancel *cancel);
/* ops->kicked: wakes all that wait with a fired one. */
void hfi_cancel_kicked(void *self);

#endif
