/* SPDX-License-Identifier: MIT */
/* wait.h - how a call waits. Whatever ends a wait besides what it waits for (its time, its cancel, its client's close) is
 * looked at before every sleep, the first one too: all of it may have been there before the wait began. */
#ifndef HFI_WAIT_H
#define HFI_WAIT_H

#include "core/context/cancel.h"
#include "pool/lane.h"

struct hfi_wait { /* on the waiting thread's stack */
    hf_client *client;
    hf_cancel *cancel;     /* NULL: none */
    int64_t until_ns;      /* HFI_NEVER: no end */
    struct hfi_park *park; /* woken for what is waited for, by a cancel, and by close */
    bool is_hurried;       /* for an answer of the server's: close gives that less time, and does not end the wait */
    struct hfi_canceled place;
};

/* From begin to end the cancel wakes the park. With no mutex held that stands below the cancels' own (architecture.md). */
void hfi_wait_begin(struct hfi_wait *wait, hf_client *client, hf_cancel *cancel, struct hfi_park *park, int64_t until_ns);
void hfi_wait_end(struct hfi_wait *wait);

/* HF_OK: nothing ends it. Else CANCELED, CLOSED or TIMEOUT. */
hf_status hfi_wait_is_over(const struct hfi_wait *wait, int64_t now);
/* One sleep; the epoch was taken before anything was looked at. Meanwhile reads the lane's replies; NULL: there are none. */
void hfi_wait_sleep(const struct hfi_wait *wait, uint32_t epoch, struct hfi_lane *lane);
/* Until *done, which is set and woken for under the mutex, held on entry and on return: HF_OK. Or why it ended before. */
hf_status hfi_wait_for(const struct hfi_wait *wait, const bool *done, pthread_mutex_t *mutex, struct hfi_lane *lane);

#endif
