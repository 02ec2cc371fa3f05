/* SPDX-License-Identifier: MIT */
/* loss_log.h - queued log lines about lost leases. The dispatcher writes them one at a time, each after the callbacks
 * that are queued then, because a log function may be slow. */
#ifndef HFI_LOSS_LOG_H
#define HFI_LOSS_LOG_H

#include "base/list.h"
#include "base/mutex.h"
#include "watchdog/dispatcher.h"

#include <holdfast/lease.h>
#include <pthread.h>

struct hf_client;

struct hfi_loss_log { /* of one client */
    struct hfi_mutex mutex; /* guards what follows */
    struct hfi_list lines; /* not written yet, oldest first */
    int  count;
    long left_out;         /* losses beyond the queue's capacity, or without memory for a line */
    bool posted;
    struct hfi_job job;
};

void hfi_loss_log_init(struct hfi_loss_log *log);
void hfi_loss_log_free(struct hfi_loss_log *log);
/* Queues a line. The mutex of that name's lock is held. */
void hfi_loss_log_note(struct hf_client *client, const char *name, size_t size, int64_t fence, hf_reason reason);

#endif
