/* SPDX-License-Identifier: MIT */
/* lane_confirm.c - confirmations by replicas: the writer ends a batch that grants something with one WAIT, and the replies
 * before it are held until its own. */
#include "pool/lane_private.h"

#include <hiredis/hiredis.h>
#include <stdio.h>

static void confirmed(struct hfi_command *command)
{
    (void)command;
}

bool hfi_lane_is_confirmation(const struct hfi_command *command)
{
    return command->done == confirmed;
}

bool hfi_lane_needs_confirmation(const struct hfi_lane *lane, const struct hfi_command *command)
{
    return command->confirmed && lane->deployment->settings.replicas > 0;
}

bool hfi_lane_ask_for_confirmation_locked(struct hfi_lane *lane, int64_t now_ns)
{
    const struct hfi_pool_settings *settings = &lane->deployment->settings;
    char replicas[16], patience[24];
    (void)snprintf(replicas, sizeof replicas, "%d", settings->replicas);
    (void)snprintf(patience, sizeof patience, "%lld", (long long)settings->replicas_ms);
    const char *const words[] = {"WAIT", replicas, patience};
    struct hfi_command *wait = hfi_command_new(3, words, NULL);
    if (wait == NULL) {
        hfi_lane_give_up_locked(lane, HF_NOMEM, 0, "no memory to ask for a confirmation");
        return false;
    }
    wait->done = confirmed;
    wait->optional = true;
    wait->until_ns = hfi_after_ms(now_ns, settings->command_ms + settings->replicas_ms);
    if (wait->until_ns < lane->nearest_ns)
        lane->nearest_ns = wait->until_ns;
    hfi_list_append(&lane->queue, &wait->link);
    return true;
}

void hfi_lane_drop_held_locked(struct hfi_lane *lane)
{
    while (!hfi_list_is_empty(&lane->held))
        hfi_lane_complete_locked(lane, hfi_list_first(&lane->held, struct hfi_command, link), HFI_UNANSWERED);
}

/* WAIT counts what was sent on its own connection, so it confirms all that was answered before it. */
static void release_held_locked(struct hfi_lane *lane, const struct redisReply *reply)
{
    bool holds = reply->type == REDIS_REPLY_INTEGER && reply->integer >= lane->deployment->settings.replicas;
    while (!hfi_list_is_empty(&lane->held)) {
        struct hfi_command *held = hfi_list_first(&lane->held, struct hfi_command, link);
        held->is_short = held->confirmed && !holds;
        hfi_lane_complete_locked(lane, held, HFI_ANSWERED);
    }
}

void hfi_lane_settle_locked(struct hfi_lane *lane, struct hfi_command *command)
{
    if (hfi_lane_is_confirmation(command))
        release_held_locked(lane, command->reply);
    if (hfi_lane_needs_confirmation(lane, command) || !hfi_list_is_empty(&lane->held)) {
        hfi_list_remove(&command->link);
        hfi_list_append(&lane->held, &command->link);
    } else {
        hfi_lane_complete_locked(lane, command, HFI_ANSWERED);
    }
}
