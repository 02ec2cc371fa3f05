/* SPDX-License-Identifier: MIT */
/* cancel.h - lets an hf_cancel wake the threads that wait with it. */
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

/* Between enter and leave the park is woken when the cancel fires: check hfi_cancel_is_fired after every wake. A NULL
 * cancel is valid. */
void hfi_cancel_enter(hf_cancel *cancel, struct hfi_canceled *place, struct hfi_park *park);
void hfi_cancel_leave(struct hfi_canceled *place);
bool hfi_cancel_is_fired(const hf_cancel *cancel);
/* In the listener, after hfi_pool_kick: wakes every thread that waits with a cancel that has fired. */
void hfi_cancel_kicked(hf_client *client);

#endif
