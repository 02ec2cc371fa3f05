/* SPDX-License-Identifier: MIT */
/* shrink.c - see shrink.h. */
#include "core/lock/shrink.h"
#include "core/context/call.h"
#include "core/lock/retirement.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "base/rare.h"

#include <hiredis/hiredis.h>
#include <string.h>

struct shrinking { /* context of the command */
    struct hfi_releaser *releaser;
};

static void tell_locked(struct hfi_releaser *releaser, hf_status status)
{
    if (releaser == NULL)
        return;
    releaser->status = status;
    releaser->done = true;
    hfi_park_wake(&releaser->park);
}

static HFI_RARE void shrunk(struct hfi_command *command)
{
    struct hfi_lock *lock = command->self;
    struct hfi_releaser *releaser = hfi_command_context(command, struct shrinking)->releaser;
    struct hfi_script_reply said = {"", 0, 0};
    if (command->outcome == HFI_ANSWERED) {
        said = hfi_wire_script_reply(command->reply);
        hfi_server_time_observe(lock->client, hfi_lane_index(lock->lane), said.now_us, command->stamp_ns, command->answered_ns);
    }
    HFI_PERTURB("shrunk-to-tell");
    hfi_mutex_lock(lock->mutex);
    if (strcmp(said.word, "HANDED") == 0)
        hfi_count(lock->client, hand_offs_given);
    if (releaser != NULL && command->outcome == HFI_ANSWERED && command->reply->type == REDIS_REPLY_ERROR)
        hfi_retirement_note_refusal(lock, command, releaser);
    tell_locked(releaser, said.word[0] == 0 ? HF_UNKNOWN : strcmp(said.word, "GONE") == 0 ? HF_LOST : HF_OK);
    hfi_mutex_unlock(lock->mutex);
    hfi_table_unref(lock);
}

HFI_RARE void hfi_lock_shrink(struct hfi_lock *lock, int32_t keep, struct hfi_releaser *releaser, int64_t now)
{
    HFI_ASSERT_HELD(lock->mutex);
    struct hfi_command *command = hfi_wire_shrink(&lock->client->identity, &lock->keys, lock->token, keep);
    if (command == NULL) {
        tell_locked(releaser, HF_UNKNOWN);
        return;
    }
    hfi_command_context(command, struct shrinking)->releaser = releaser;
    hfi_table_ref(lock);
    hfi_call_list(lock->client, lock->lane, command, shrunk, lock, now);
}
