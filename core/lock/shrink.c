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

/* A later release may be carried out before an earlier one, whose script was not known and which was sent again: the earlier one
 * finds nothing then, and nothing is lost. The later one has ended before, with an answer or without. */
static hf_status judge(const struct hfi_shrinking *shrinking, bool is_known, bool is_gone, bool is_revoked)
{
    bool finds_nothing = is_gone || is_revoked;
    if (!is_known || (finds_nothing && shrinking->overtaken == HFI_MAYBE_OVERTAKEN))
        return HF_UNKNOWN;
    return finds_nothing && shrinking->overtaken != HFI_OVERTAKEN ? HF_LOST : HF_OK;
}

/* Mostly the first one. */
static void unlist(struct hfi_lock *lock, const struct hfi_shrinking *shrinking)
{
    struct hfi_shrinking **place = &lock->grant->shrinkings;
    while (*place != shrinking)
        place = &(*place)->next;
    *place = shrinking->next;
    if (lock->grant->last_shrinking == &shrinking->next)
        lock->grant->last_shrinking = place;
}

static void tell_locked(struct hfi_releaser *releaser, hf_status status)
{
    if (releaser == NULL)
        return;
    releaser->status = status;
    releaser->done = true;
    hfi_park_wake(&releaser->park);
}

static void tell_entry(struct hfi_lock *lock, uint64_t grant, hf_status status, int64_t now)
{
    if (lock->token.grant != grant)
        return;
    hfi_entry_shrunk(&lock->entry, status, now);
    hfi_lock_set_timer(lock);
}

static HFI_RARE void shrunk(struct hfi_command *command)
{
    struct hfi_lock *lock = command->self;
    struct hfi_shrinking *shrinking = hfi_command_context(command, struct hfi_shrinking);
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
    bool is_known = said.word[0] != 0;
    bool is_gone = strcmp(said.word, "GONE") == 0, is_revoked = strcmp(said.word, "REVOKED") == 0;
    if (!is_gone && !is_revoked && command->outcome != HFI_UNSENT)
        hfi_lock_overtake(lock, shrinking, shrinking->grant, shrinking->keep, is_known ? HFI_OVERTAKEN : HFI_MAYBE_OVERTAKEN);
    unlist(lock, shrinking);
    if (releaser != NULL) /* why they are gone, if they are: a message alone may be made up */
        releaser->revoked = is_revoked || (lock->token.grant == shrinking->grant && lock->revoked != 0);
    hf_status status = judge(shrinking, is_known, is_gone, is_revoked);
    tell_entry(lock, shrinking->grant, is_revoked ? HF_LOST : status, now); /* what was overtaken tells of the break all the same */
    tell_locked(releaser, status);
    hfi_mutex_unlock(lock->mutex);
    hfi_table_unref(lock);
}

HFI_RARE void hfi_lock_shrink(struct hfi_lock *lock, int32_t keep, struct hfi_releaser *releaser, int64_t now)
{
    HFI_ASSERT_HELD(lock->mutex);
    struct hfi_command *command = hfi_wire_shrink(&lock->client->identity, &lock->keys, lock->token, keep);
    if (command == NULL) {
        tell_entry(lock, lock->token.grant, HF_UNKNOWN, now);
        tell_locked(releaser, HF_UNKNOWN);
        return;
    }
    struct hfi_shrinking *shrinking = hfi_command_context(command, struct hfi_shrinking);
    *shrinking = (struct hfi_shrinking){.releaser = releaser, .grant = lock->token.grant, .keep = keep};
    *lock->grant->last_shrinking = shrinking;
    lock->grant->last_shrinking = &shrinking->next;
    hfi_table_ref(lock);
    hfi_call_list(lock->client, lock->lane, command, shrunk, lock, now);
}
