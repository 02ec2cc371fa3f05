/* SPDX-License-Identifier: MIT */
/* loss_log.h - lines of the log for lost leases. They are written where callbacks run, one by one, each behind the callbacks
 * that wait then: a log function may be slow. */
#ifndef HFI_LOSS_LOG_H
#define HFI_LOSS_LOG_H

#include "base/list.h"
#include "watchdog/dispatcher.h"

#include <holdfast/lease.h>
#include <pthread.h>

struct hf_client;

struct hfi_loss_log { /* of one client */
    pthread_mutex_t mutex; /* for what follows */
    struct hfi_list lines; /* not written yet, oldest first */
    int  count;
    long left_out;         /* more than there is room or memory for */
    bool posted;
    struct hfi_job job;
};

void hfi_loss_log_init(struct hfi_loss_log *log);
void hfi_loss_log_free(struct hfi_loss_log *log);
/* The mutex of the lock of that name held. */
void hfi_loss_log_note(struct hf_client *client, const char *name, size_t size, int64_t fence, hf_reason reason);

#endif
