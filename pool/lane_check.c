/* SPDX-License-Identifier: MIT */
/* lane_check.c - what holds of a lane whenever its mutex is given back; builds for development stop where it does not. */
#include "pool/lane_private.h"

#ifdef HFI_CHECKED
#define COUNTED_MOST 64 /* a longer list is not counted: every unlock would take as long as the list */

#define TO(state) (1U << (state))

/* The states that may follow each one. */
static const unsigned next_states[] = {
    [HFI_LANE_COLD] = TO(HFI_LANE_DIALING) | TO(HFI_LANE_CLOSED),
    [HFI_LANE_DIALING] = TO(HFI_LANE_UP) | TO(HFI_LANE_CLOSED),
    [HFI_LANE_UP] = TO(HFI_LANE_BROKEN) | TO(HFI_LANE_CLOSED),
    [HFI_LANE_BROKEN] = TO(HFI_LANE_DIALING) | TO(HFI_LANE_CLOSED),
    [HFI_LANE_CLOSED] = 0,
};

void hfi_lane_check_step_locked(const struct hfi_lane *lane, enum hfi_lane_state state)
{
    HFI_ASSERT_HELD(&lane->mutex);
    int before = atomic_load(&lane->state);
    HFI_CHECK(next_states[before] & TO(state));
}

static void check_in_flight(const struct hfi_lane *lane)
{
    int count = 0, threadless = 0, prompt = 0, in_flight_count = atomic_load(&lane->in_flight_count);
    bool sent = true;
    for (const struct hfi_list *at = lane->in_flight.next; at != &lane->in_flight; at = at->next) {
        const struct hfi_command *command = hfi_container_of(at, const struct hfi_command, link);
        HFI_CHECK(sent || !command->sent); /* hfi_lane_give_up_locked takes those that have not left from the end */
        sent = command->sent;
        HFI_CHECK(command->until_ns >= lane->nearest_ns);
        count++;
        threadless += command->awaited != HFI_AWAITED_BY_THREAD;
        prompt += command->awaited == HFI_AWAITED_PROMPTLY;
    }
    HFI_CHECK(count == in_flight_count);
    HFI_CHECK(threadless == lane->threadless);
    HFI_CHECK(prompt == lane->prompt);
}

void hfi_lane_check_locked(const struct hfi_lane *lane)
{
    int state = atomic_load(&lane->state), waiting = atomic_load(&lane->waiting);
    HFI_CHECK(state == HFI_LANE_UP || (hfi_list_is_empty(&lane->in_flight) && hfi_list_is_empty(&lane->held)));
    HFI_CHECK(state != HFI_LANE_UP || lane->connection.fd >= 0);
    HFI_CHECK(state != HFI_LANE_CLOSED || hfi_list_is_empty(&lane->queue));
    if (atomic_load(&lane->in_flight_count) <= COUNTED_MOST)
        check_in_flight(lane);
    if (waiting <= COUNTED_MOST)
        HFI_CHECK(hfi_list_length(&lane->waiters) == waiting);
}
#endif
