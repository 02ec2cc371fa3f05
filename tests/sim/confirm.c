/* SPDX-License-Identifier: MIT */
/* confirm.c - what pool/lane_confirm.c does for a virtual lane; pool/confirmation.c decides. */
#include "pool/confirmation.h"
#include "tests/sim/pool_inside.h"

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

bool sim_lane_is_confirmation(const struct hfi_command *command)
{
    return command->done == written || command->done == waited || command->done == confirmed;
}

bool sim_lane_needs_confirmation(const struct hfi_lane *lane, const struct hfi_command *command)
{
    return command->confirmed && lane->pool->settings.replicas != 0;
}

static void ask(struct hfi_lane *lane, hfi_command_done *done, int count, const char *const *words, int64_t until_ns)
{
    struct hfi_command *command = hfi_command_new(count, words, NULL);
    if (command == NULL)
        abort();
    command->done = done;
    command->until_ns = until_ns;
    hfi_list_append(&lane->queue, &command->link);
}

bool sim_lane_ask_for_confirmation(struct hfi_lane *lane, int64_t now_ns)
{
    const struct hfi_pool *pool = lane->pool;
    const struct hfi_pool_settings *settings = &pool->settings;
    bool all = settings->replicas == HF_ALL;
    bool again = !hfi_list_is_empty(&lane->held);
    int number = all ? hfi_confirmation_count(pool->knows_needed ? &pool->needed : NULL, again ? lane->connected : 0) : settings->replicas;
    int64_t first_ns = hfi_command_earliest_ns(&lane->held, hfi_command_earliest_ns(&lane->flight, HFI_NEVER));
    int64_t until_ns = hfi_confirmation_until_ns(now_ns, first_ns, settings->command_ms, settings->replicas_ms);
    char replicas[16], patience[24];
    (void)snprintf(replicas, sizeof replicas, "%d", number);
    (void)snprintf(patience, sizeof patience, "%lld", (long long)settings->replicas_ms);
    const char *const role[] = {"ROLE"}, *const wait[] = {"WAIT", replicas, patience};
    if (lane->confirming) {
        lane->confirms_again = true;
        return false;
    }
    lane->confirming = true;
    if (all)
        ask(lane, written, 1, role, until_ns);
    ask(lane, waited, 3, wait, until_ns);
    if (all)
        ask(lane, confirmed, 1, role, until_ns);
    return true;
}

void sim_lane_drop_held(struct hfi_lane *lane)
{
    while (!hfi_list_is_empty(&lane->held)) {
        struct hfi_command *held = hfi_container_of(lane->held.next, struct hfi_command, link);
        sim_lane_settle(lane, held, held->reply->type == REDIS_REPLY_ERROR ? HFI_ANSWERED : HFI_UNANSWERED);
    }
    for (struct hfi_list *at = lane->queue.next, *next; at != &lane->queue; at = next) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        next = at->next;
        if (sim_lane_is_confirmation(command))
            sim_lane_settle(lane, command, HFI_UNSENT);
    }
    lane->confirming = lane->confirms_again = false;
}

static void release_held(struct hfi_lane *lane, int missing, int wanted, bool decides, int64_t now_ns)
{
    while (!hfi_list_is_empty(&lane->held)) {
        struct hfi_command *held = hfi_container_of(lane->held.next, struct hfi_command, link);
        if (held->confirmed && missing > 0) {
            if (!decides && !held->doubted)
                break;
            held->replicas_missing = missing;
            held->replicas_wanted = wanted;
            sim_say("short: %d of %d replicas are missing", missing, wanted);
            if (lane->pool->topology != NULL)
                sim_topology_was_short(lane->pool->topology);
        }
        sim_lane_settle(lane, held, HFI_ANSWERED);
    }
    bool asks = !hfi_list_is_empty(&lane->held) || lane->confirms_again;
    lane->confirming = lane->confirms_again = false;
    for (struct hfi_list *at = lane->held.next; at != &lane->held; at = at->next)
        hfi_container_of(at, struct hfi_command, link)->doubted = true;
    if (asks && sim_lane_ask_for_confirmation(lane, now_ns))
        lane->again = true;
}

static void judge_all(struct hfi_lane *lane, const struct hfi_command *answer)
{
    const struct hfi_replicas *needed = &lane->pool->needed;
    int64_t now_ns = answer->answered_ns;
    lane->connected = hfi_confirmation_connected(answer->reply);
    if (!lane->pool->knows_needed || needed->count == 0)
        release_held(lane, 1, 0, true, now_ns);
    else if (now_ns >= needed->until_ns)
        release_held(lane, 1, needed->count + 1, false, now_ns);
    else
        release_held(lane, hfi_confirmation_missing(answer->reply, lane->written, needed), needed->count, false, now_ns);
}

/* A command has all its replies. */
void sim_lane_take_answer(struct hfi_lane *lane, struct hfi_command *command)
{
    int number = lane->pool->settings.replicas;
    bool is_confirmation = sim_lane_is_confirmation(command);
    if (command->done == written)
        lane->written = hfi_confirmation_offset(command->reply);
    else if (command->done == confirmed)
        judge_all(lane, command);
    else if (is_confirmation && number != HF_ALL)
        release_held(lane, hfi_confirmation_lacks(command->reply, number), number, true, command->answered_ns);
    if (!is_confirmation && (sim_lane_needs_confirmation(lane, command) || !hfi_list_is_empty(&lane->held))) {
        hfi_list_remove(&command->link);
        hfi_list_append(&lane->held, &command->link);
    } else {
        sim_lane_settle(lane, command, HFI_ANSWERED);
    }
}
