/* SPDX-License-Identifier: MIT */
/* shrink.c - see shrink.h. */
#include "core/lock/shrink.h"
#include "core/context/call.h"
#include "core/lock/retirement.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/lock/timer.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "base/rare.h"

#include <hiredis/hiredis.h>
#include <string.h>

struct shrinking { /* context of the command */
    struct hfi_releaser *releaser;
    uint64_t grant;
    int32_t keep;
};

/* A later release may be carried out before an earlier one, whose script was not known and which was sent again: the earlier one
 * finds nothing then, and nothing is lost. The later one has had its answer before. If that was lost with its connection, the
 * earlier one counts as a loss: nobody knows better. */
static bool is_overtaken(const struct hfi_lock *lock, const struct shrinking *shrinking)
{
    return lock->given_grant == shrinking->grant && lock->given_keep <= shrinking->keep;
}

static void end_locked(struct hfi_lock *lock, struct hfi_releaser *releaser, uint64_t grant, hf_status status, int64_t now)
{
    if (lock->token.grant == grant) {
        hfi_entry_shrunk(&lock->entry, status, now);
        hfi_lock_set_timer(lock);
    }
    if (releaser == NULL)
        return;
    releaser->status = status;
    releaser->done = true;
    hfi_park_wake(&releaser->park);
}

static HFI_RARE void shrunk(struct hfi_command *command)
{
    struct hfi_lock *lock = command->self;
    const struct shrinking *shrinking = hfi_command_context(command, struct shrinking);
    struct hfi_releaser *releaser = shrinking->releaser;
    struct hfi_script_reply said = {"", 0, 0};
    if (command->outcome == HFI_ANSWERED) {
        said = hfi_wire_script_reply(command->reply);
        hfi_server_time_observe(lock->client, hfi_lane_index(lock->lane), said.now_us, command->stamp_ns, command->answered_ns);
    }
    HFI_PERTURB("shrunk-to-tell");
    int64_t now = hfi_lock_enter(lock);
    if (strcmp(said.word, "HANDED") == 0)
        hfi_count(lock->client, hand_offs_given);
    if (releaser != NULL && command->outcome == HFI_ANSWERED && command->reply->type == REDIS_REPLY_ERROR)
        hfi_retirement_note_refusal(lock, command, releaser);
    bool is_gone = strcmp(said.word, "GONE") == 0, is_revoked = strcmp(said.word, "REVOKED") == 0;
    bool is_lost = (is_gone || is_revoked) && !is_overtaken(lock, shrinking);
    if (said.word[0] != 0 && !is_gone && !is_revoked)
        hfi_lock_note_given(lock, shrinking->grant, shrinking->keep);
    if (releaser != NULL) /* why they are gone, if they are: a message alone may be made up */
        releaser->revoked = is_revoked || (lock->token.grant == shrinking->grant && lock->revoked.grant != 0);
    end_locked(lock, releaser, shrinking->grant, said.word[0] == 0 ? HF_UNKNOWN : is_lost ? HF_LOST : HF_OK, now);
    hfi_mutex_unlock(lock->mutex);
    hfi_table_unref(lock);
}

HFI_RARE void hfi_lock_shrink(struct hfi_lock *lock, int32_t keep, struct hfi_releaser *releaser, int64_t now)
{
    HFI_ASSERT_HELD(lock->mutex);
    struct hfi_command *command = hfi_wire_shrink(&lock->client->identity, &lock->keys, lock->token, keep);
    if (command == NULL) {
        end_locked(lock, releaser, lock->token.grant, HF_UNKNOWN, now);
        return;
    }
    *hfi_command_context(command, struct shrinking) = (struct shrinking){releaser, lock->token.grant, keep};
    hfi_table_ref(lock);
    hfi_call_list(lock->client, lock->lane, command, shrunk, lock, now);
}
