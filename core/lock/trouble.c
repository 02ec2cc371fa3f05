/* SPDX-License-Identifier: MIT */
/* trouble.c - see trouble.h. */
#include "core/lock/trouble.h"
#include "core/lock/quarantine.h"
#include "core/protocol/script_error.h"
#include "core/protocol/wire.h"
#include "base/random.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void keep_trouble(struct hfi_lock *lock, const hf_error *error)
{
    lock->refused = false;
    if (lock->trouble == NULL)
        lock->trouble = malloc(sizeof *lock->trouble);
    if (lock->trouble != NULL)
        *lock->trouble = *error;
}

void hfi_lock_note_late_grant(struct hfi_lock *lock)
{
    hf_error error;
    (void)hfi_fail(&error, HF_UNAVAILABLE, "is the server or this process starved, or lease_ms too short for the way there?",
                   "the server's answer came when the lease was over, or nearly: it was given back");
    hfi_fail_server(&error, hfi_pool_server_name(lock->client->pool));
    hfi_fail_retry(&error, -1);
    keep_trouble(lock, &error);
}

void hfi_lock_note_quarantine(struct hfi_lock *lock, int64_t left_ns)
{
    hf_error error;
    int64_t left_ms = left_ns / HFI_MS + 1;
    (void)hfi_fail(&error, HF_UNAVAILABLE, "wait as long: what another server has granted before may be held until then",
                   "the server is new, and grants nothing for %" PRId64 " ms (quarantine_ms)", left_ms);
    hfi_fail_server(&error, hfi_pool_server_name(lock->client->pool));
    hfi_fail_retry(&error, left_ms);
    keep_trouble(lock, &error);
}

void hfi_lock_note_no_random(struct hfi_lock *lock)
{
    hf_error error;
    (void)hfi_random_fail(&error, "its token");
    keep_trouble(lock, &error);
}

void hfi_lock_note_silence(struct hfi_lock *lock)
{
    hf_error error;
    (void)hfi_fail(&error, HF_UNAVAILABLE, "is the server overloaded, stopped, or cut off?",
                   "the server did not answer in time");
    hfi_fail_server(&error, hfi_pool_server_name(lock->client->pool));
    hfi_fail_retry(&error, 1000);
    keep_trouble(lock, &error);
}

void hfi_lock_note_trouble(struct hfi_lock *lock, const struct hfi_command *command, enum hfi_answer_kind kind)
{
    hf_error error = {.status = HF_OK};
    bool is_short = command->replicas_missing > 0 && kind == HFI_NO_ANSWER;
    const char *foreign = hfi_wire_foreign(command->reply);
    if (foreign != NULL) {
        (void)hfi_script_error_key(&lock->keys, foreign, &error);
    } else if (command->outcome == HFI_ANSWERED && command->reply->type == REDIS_REPLY_ERROR) {
        (void)hfi_reply_fail(command->reply, "the server refuses to lock", hfi_pool_server_name(lock->client->pool),
                             &error);
        if (command->script != NULL)
            hfi_script_error_annotate(command->reply->str, command->script, &error);
    } else if (is_short && command->replicas_wanted == 0) {
        (void)hfi_fail(&error, HF_UNAVAILABLE, HFI_NOBODY_CONFIRMS_HINT, HFI_NOBODY_CONFIRMS);
        hfi_fail_server(&error, hfi_pool_server_name(lock->client->pool));
        hfi_fail_retry(&error, 1000);
    } else if (is_short) {
        (void)hfi_fail(&error, HF_UNAVAILABLE, "are the replicas there, and near? most sentinels? or allow replicas_ms more",
                       "%d of %d replicas confirmed the lease", command->replicas_wanted - command->replicas_missing,
                       command->replicas_wanted);
        hfi_fail_server(&error, hfi_pool_server_name(lock->client->pool));
        hfi_fail_retry(&error, 200);
    } else if (command->outcome == HFI_ANSWERED && kind == HFI_NO_ANSWER) { /* a grant that quarantine mistrusts */
        hfi_lock_note_quarantine(lock, hfi_quarantine_left_ns(lock, command->answered_ns));
    } else if (kind == HFI_LATE) {
        (void)hfi_fail(&error, HF_UNAVAILABLE, "is the server's clock being stepped? let NTP slew it",
                       "by the server's clock our questions come too late, again and again");
        hfi_fail_server(&error, hfi_pool_server_name(lock->client->pool));
    } else if (command->outcome == HFI_UNSENT) {
        (void)hfi_pool_why_down(lock->client->pool, &error);
    } else if (command->too_long) {
        (void)hfi_fail(&error, HF_LIMIT, "raise max_value_bytes", "the value is longer than max_value_bytes (%zu)",
                       lock->client->max_value_bytes);
    } else if (command->outcome == HFI_UNANSWERED) {
        hfi_lock_note_silence(lock);
    }
    if (error.status == HF_OK)
        return;
    keep_trouble(lock, &error);
    lock->refused = command->outcome == HFI_ANSWERED && !is_short;
}

hf_status hfi_lock_explain(const struct hfi_lock *lock, hf_status status, hf_error *error)
{
    char what[HFI_TITLE];
    hfi_keys_title(&lock->keys, what);
    bool counts = lock->keys.use == HFI_SEMAPHORE;
    switch ((int)status) {
    case HF_BUSY:
        hfi_fail(error, status, "wait with wait_ms, or come back later",
                 counts ? "%s has too few permits left" : "%s is held by somebody else", what);
        hfi_fail_retry(error, -1);
        return status;
    case HF_TIMEOUT:
        hfi_fail(error, status, "allow a longer wait_ms, or look who holds it with `holdfast show`",
                 counts ? "%s had too few permits left for wait_ms" : "%s was not free within wait_ms", what);
        hfi_fail_retry(error, -1);
        return status;
    case HF_CANCELED:
        return hfi_fail(error, status, "", "waiting for %s was canceled", what);
    case HF_CLOSED:
        return hfi_fail(error, status, "", "the client was closed while waiting for %s", what);
    case HF_NOMEM:
        return hfi_fail(error, status, "", "no memory for a lease on %s", what);
    }
    if (lock->trouble == NULL || lock->trouble->status != status) {
        hfi_fail(error, status, "look at the server with `holdfast doctor`", "%s: %s", what, hf_status_text(status));
        hfi_fail_server(error, hfi_pool_server_name(lock->client->pool));
        return status;
    }
    const hf_error *why = lock->trouble;
    hfi_fail(error, status, why->hint, "cannot get %s: %s", what, why->message);
    hfi_fail_server(error, why->server);
    hfi_fail_errno(error, why->os_errno);
    hfi_fail_retry(error, why->retry_ms);
    return status;
}
