/* SPDX-License-Identifier: MIT */
/* loss_log.c - see loss_log.h. */
#include "core/context/loss_log.h"
#include "base/error.h"
#include "base/perturb.h"
#include "core/context/context.h"

#include <inttypes.h>
#include <stdlib.h>

#define LINES_MOST 100 /* a log function that hangs, or jobs that are not dispatched, must not fill the memory */

struct line {
    struct hfi_list link;
    int64_t   fence;
    hf_reason reason;
    char      name[160]; /* quoted */
};

static void write_one(struct hfi_job *job)
{
    hf_client *client = hfi_container_of(job, hf_client, loss_log.job);
    struct hfi_loss_log *log = &client->loss_log;
    hfi_mutex_lock(&log->mutex);
    struct line *line = hfi_container_of(log->lines.next, struct line, link);
    hfi_list_remove(&line->link);
    log->count--;
    long left_out = log->count == 0 ? log->left_out : 0;
    log->left_out -= left_out;
    hfi_mutex_unlock(&log->mutex);
    HFI_PERTURB("loss-to-log");
    hfi_log(&client->log, HF_LOG_WARNING, "the lease on %s with fence %" PRId64 " was lost: %s", line->name, line->fence,
            hf_reason_text(line->reason));
    if (left_out > 0)
        hfi_log(&client->log, HF_LOG_WARNING, "%ld more leases were lost", left_out);
    free(line);
    hfi_mutex_lock(&log->mutex);
    bool more = log->posted = log->count > 0;
    hfi_mutex_unlock(&log->mutex);
    if (more)
        hfi_dispatcher_post(client->dispatcher, job);
}

void hfi_loss_log_init(struct hfi_loss_log *log)
{
    hfi_mutex_init(&log->mutex, HFI_RANK_INNER);
    hfi_list_init(&log->lines);
    hfi_list_init(&log->job.link);
    log->job.run = write_one;
}

void hfi_loss_log_free(struct hfi_loss_log *log)
{
    while (!hfi_list_is_empty(&log->lines)) {
        struct line *line = hfi_container_of(log->lines.next, struct line, link);
        hfi_list_remove(&line->link);
        free(line);
    }
    hfi_mutex_destroy(&log->mutex);
}

void hfi_loss_log_note(hf_client *client, const char *name, size_t size, int64_t fence, hf_reason reason)
{
    struct hfi_loss_log *log = &client->loss_log;
    if (client->log.write == NULL || reason == HF_REASON_CLOSED)
        return;
    struct line *line = malloc(sizeof *line);
    if (line != NULL) {
        hfi_list_init(&line->link);
        line->fence = fence;
        line->reason = reason;
        (void)hfi_quote(line->name, sizeof line->name, name, size);
    }
    hfi_mutex_lock(&log->mutex);
    bool fits = line != NULL && log->count < LINES_MOST;
    bool post = fits && !log->posted;
    if (fits) {
        hfi_list_append(&log->lines, &line->link);
        log->count++;
        log->posted = true;
    } else if (log->count > 0) {
        log->left_out++; /* reported after the last of the queued lines */
    }
    hfi_mutex_unlock(&log->mutex);
    if (post)
        hfi_dispatcher_post(client->dispatcher, &log->job);
    if (!fits)
        free(line);
}
