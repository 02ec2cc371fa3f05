/* SPDX-License-Identifier: MIT */
/* lane_confirm.c - confirmations by replicas (confirmation.h): the writer ends a batch that grants something with one, and
 * the replies before it are held until its own. So many replicas: it is one WAIT. All that could be promoted: ROLE, WAIT,
 * ROLE, and each of them has to stand in the second as far as the first says that was written; whoever is connected may
 * be counted by WAIT, and another one be promoted. */
#include "pool/lane_private.h"
#include "pool/confirmation.h"
#include "pool/listener.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

static void written(struct hfi_command *command) /* ROLE: how far */
{
    (void)command;
}

static void waited(struct hfi_command *command) /* WAIT */
{
    (void)command;
}

static void confirmed(struct hfi_command *command) /* ROLE: who has come as far */
{
    (void)command;
}

bool hfi_lane_is_confirmation(const struct hfi_command *command)
{
    return command->done == written || command->done == waited || command->done == confirmed;
}

bool hfi_lane_needs_confirmation(const struct hfi_lane *lane, const struct hfi_command *command)
{
    return command->confirmed && lane->deployment->settings.replicas != 0;
}

bool hfi_lane_need(struct hfi_lane *lane, const struct hfi_replicas *needed)
{
    hfi_lane_lock(lane);
    if (lane->needed == NULL)
        lane->needed = malloc(sizeof *lane->needed);
    if (lane->needed != NULL)
        *lane->needed = *needed;
    bool good = lane->needed != NULL;
    hfi_lane_unlock(lane);
    return good;
}

/* ---- asking ---- */

void hfi_lane_lack_memory_locked(struct hfi_lane *lane, struct hfi_command *command)
{
    bool is_confirmation = hfi_lane_is_confirmation(command);
    hfi_lane_complete_locked(lane, command, HFI_UNSENT);
    if (is_confirmation) /* what waits for it would wait for ever */
        hfi_lane_give_up_locked(lane, HF_NOMEM, 0, "no memory to ask for a confirmation");
}

static bool ask_locked(struct hfi_lane *lane, hfi_command_done *done, int count, const char *const *words, int64_t until_ns)
{
    struct hfi_command *command = hfi_command_new(count, words, NULL);
    if (command == NULL) {
        hfi_lane_give_up_locked(lane, HF_NOMEM, 0, "no memory to ask for a confirmation");
        return false;
    }
    command->done = done;
    command->optional = true;
    command->until_ns = until_ns;
    if (until_ns < lane->nearest_ns)
        lane->nearest_ns = until_ns;
    hfi_list_append(&lane->queue, &command->link);
    return true;
}

bool hfi_lane_ask_for_confirmation_locked(struct hfi_lane *lane, int64_t now_ns)
{
    const struct hfi_pool_settings *settings = &lane->deployment->settings;
    bool all = settings->replicas == HF_ALL;
    bool again = !hfi_list_is_empty(&lane->held);
    int number = all ? hfi_confirmation_count(lane->needed, again ? lane->connected : 0) : settings->replicas;
    int64_t first_ns = hfi_command_earliest_ns(&lane->held, hfi_command_earliest_ns(&lane->in_flight, HFI_NEVER));
    int64_t until_ns = hfi_confirmation_until_ns(now_ns, first_ns, settings->command_ms, settings->replicas_ms);
    char replicas[16], patience[24];
    (void)snprintf(replicas, sizeof replicas, "%d", number);
    (void)snprintf(patience, sizeof patience, "%lld", (long long)settings->replicas_ms);
    const char *const role[] = {"ROLE"}, *const wait[] = {"WAIT", replicas, patience};
    if (lane->confirming) { /* they would wait one after the other */
        lane->confirms_again = true;
        return false;
    }
    lane->confirming = true;
    return (!all || ask_locked(lane, written, 1, role, until_ns)) && ask_locked(lane, waited, 3, wait, until_ns) &&
           (!all || ask_locked(lane, confirmed, 1, role, until_ns));
}

/* ---- the answer ---- */

void hfi_lane_drop_held_locked(struct hfi_lane *lane)
{
    while (!hfi_list_is_empty(&lane->held)) {
        struct hfi_command *held = hfi_list_first(&lane->held, struct hfi_command, link);
        hfi_lane_complete_locked(lane, held, held->reply->type == REDIS_REPLY_ERROR ? HFI_ANSWERED : HFI_UNANSWERED);
    }
    for (struct hfi_list *at = lane->queue.next, *next; at != &lane->queue; at = next) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        next = at->next;
        if (hfi_lane_is_confirmation(command))
            hfi_lane_complete_locked(lane, command, HFI_UNSENT);
    }
    lane->confirming = lane->confirms_again = false;
}

static void release_held_locked(struct hfi_lane *lane, int missing, int wanted, bool decides, int64_t now_ns)
{
    while (!hfi_list_is_empty(&lane->held)) {
        struct hfi_command *held = hfi_list_first(&lane->held, struct hfi_command, link);
        if (held->confirmed && missing > 0) {
            if (!decides && !held->doubted)
                break;
            held->replicas_missing = missing;
            held->replicas_wanted = wanted;
            lane->acks_short++;
            atomic_store(&lane->deployment->short_ns, now_ns);
            hfi_listener_kick_before(lane->listener, now_ns); /* who asks the sentinels is to ask more often */
        }
        hfi_lane_complete_locked(lane, held, HFI_ANSWERED);
    }
    /* Others write too, and the first ROLE counts what they wrote since: it is asked once more, and nothing written again. */
    bool asks = !hfi_list_is_empty(&lane->held) || lane->confirms_again;
    lane->confirming = lane->confirms_again = false;
    for (struct hfi_list *at = lane->held.next; at != &lane->held; at = at->next)
        hfi_container_of(at, struct hfi_command, link)->doubted = true;
    if (asks && hfi_lane_ask_for_confirmation_locked(lane, now_ns))
        atomic_store(&lane->again, true);
}

static void judge_all_locked(struct hfi_lane *lane, const struct hfi_command *answer)
{
    const struct hfi_replicas *needed = lane->needed;
    int64_t now_ns = answer->answered_ns;
    lane->connected = hfi_confirmation_connected(answer->reply);
    if (needed == NULL || needed->count == 0) /* a primary alone could vanish with all that it has granted */
        release_held_locked(lane, 1, 0, true, now_ns);
    else if (now_ns >= needed->until_ns) /* whom it leaves out may be back */
        release_held_locked(lane, 1, needed->count + 1, false, now_ns);
    else
        release_held_locked(lane, hfi_confirmation_missing(answer->reply, lane->written, needed), needed->count, false, now_ns);
}

static void judge_locked(struct hfi_lane *lane, const struct hfi_command *answer)
{
    int number = lane->deployment->settings.replicas;
    if (answer->done == written)
        lane->written = hfi_confirmation_offset(answer->reply);
    else if (answer->done == confirmed)
        judge_all_locked(lane, answer);
    else if (number != HF_ALL)
        release_held_locked(lane, hfi_confirmation_lacks(answer->reply, number), number, true, answer->answered_ns);
}

void hfi_lane_settle_locked(struct hfi_lane *lane, struct hfi_command *command)
{
    bool is_confirmation = hfi_lane_is_confirmation(command);
    if (is_confirmation)
        judge_locked(lane, command);
    if (!is_confirmation && (hfi_lane_needs_confirmation(lane, command) || !hfi_list_is_empty(&lane->held))) {
        hfi_list_remove(&command->link);
        hfi_list_append(&lane->held, &command->link);
    } else {
        hfi_lane_complete_locked(lane, command, HFI_ANSWERED);
    }
}
