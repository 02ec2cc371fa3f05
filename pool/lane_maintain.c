/* SPDX-License-Identifier: MIT */
/* lane_maintain.c - the listener's part of a lane: read replies that no thread waits for, deadlines, close. */
#include "base/perturb.h"
#include "base/descriptor.h"
#include "base/poll.h"
#include "pool/dial.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/times.h"

#include <errno.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

void hfi_lane_flush_again(struct hfi_lane *lane)
{
    atomic_store(&lane->again, true);
    hfi_lane_flush_now(lane);
    hfi_lane_run_completions(lane);
}

/* ---- deadlines ---- */

static bool sweep_list_locked(struct hfi_lane *lane, struct hfi_list *list, bool drop, int64_t now_ns)
{
    bool expired = false;
    for (struct hfi_list *at = list->next, *next; at != list; at = next) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        next = at->next;
        if (drop && command->until_ns <= now_ns && hfi_lane_is_confirmation(command)) /* it goes with what waits for it */
            command->until_ns = hfi_after_ms(now_ns, lane->deployment->settings.command_ms);
        bool is_over = command->until_ns <= now_ns;
        expired = expired || is_over;
        if (is_over && drop)
            hfi_lane_complete_locked(lane, command, HFI_UNSENT);
        else if (!is_over && command->until_ns < lane->nearest_ns)
            lane->nearest_ns = command->until_ns;
    }
    return expired;
}

void hfi_lane_sweep_locked(struct hfi_lane *lane, int64_t now_ns)
{
    if (lane->nearest_ns > now_ns)
        return;
    lane->nearest_ns = HFI_NEVER;
    (void)sweep_list_locked(lane, &lane->queue, true, now_ns);
    if (sweep_list_locked(lane, &lane->in_flight, false, now_ns))
        hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, ETIMEDOUT, "a command got no answer in time");
}

static void hurry_list_locked(struct hfi_list *list, int64_t until_ns)
{
    for (struct hfi_list *at = list->next; at != list; at = at->next) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        if (command->until_ns > until_ns)
            command->until_ns = until_ns;
    }
}

void hfi_lane_hurry(struct hfi_lane *lane, int64_t until_ns)
{
    hfi_lane_lock(lane);
    hfi_lane_take_locked(lane);
    hurry_list_locked(&lane->queue, until_ns);
    hurry_list_locked(&lane->in_flight, until_ns);
    if (until_ns < lane->nearest_ns)
        lane->nearest_ns = until_ns;
    hfi_lane_unlock(lane);
    hfi_lane_flush_again(lane); /* the listers of what was taken find the inbox empty, and send nothing */
}

static const struct hfi_command *head_locked(const struct hfi_lane *lane)
{
    return hfi_list_is_empty(&lane->in_flight) ? NULL
                                               : hfi_list_first(&lane->in_flight, struct hfi_command, link);
}

/* ---- up ---- */

bool hfi_lane_waits_for_room(const struct hfi_lane *lane)
{
    return atomic_load(&lane->blocked) && !(atomic_load(&lane->again) && atomic_load(&lane->writing));
}

static void ready(void *self, short events, int64_t now_ns)
{
    struct hfi_lane *lane = self;
    (void)now_ns;
    if (events & POLLOUT)
        hfi_lane_flush_again(lane);
    if (events & (POLLIN | POLLRDHUP | POLLHUP | POLLERR)) {
        lane->hung_up = (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
        hfi_lane_read_some(lane);
    }
}

/* Returns the events to poll the socket for. Sets `watch`, and in `set` when to look again. */
static short watch_events_locked(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    short events = POLLRDHUP;
    const struct hfi_command *head = head_locked(lane);
    bool at_once = lane->kind == HFI_RESERVED_LANE || lane->prompt > 0 ||
                   atomic_load(&lane->deployment->closing_until_ns) != 0;
    enum hfi_lane_watch watch = HFI_LOOKS_SOON;
    int64_t grace_ns = hfi_costs_grace_ns(&lane->deployment->costs);
    if (head != NULL && !lane->reading) {
        if (at_once || head->sent_ns + grace_ns <= now_ns) {
            watch = HFI_POLLS_REPLIES;
            events |= POLLIN;
        } else {
            hfi_poll_set_again(set, head->sent_ns + grace_ns);
        }
    } else if (lane->staged != lane->staged_seen && grace_ns > 0) { /* busy: timed looks instead of a kick for every command */
        hfi_poll_set_again(set, now_ns + grace_ns);
    } else {
        watch = HFI_UNWATCHED;
    }
    lane->staged_seen = lane->staged;
    atomic_store(&lane->watch, watch);
    if (watch != HFI_LOOKS_SOON && !atomic_load(&lane->writing) && !hfi_inbox_is_empty(&lane->inbox)) /* see hfi_lane_flush_soon */
        hfi_poll_set_again(set, now_ns);
    if (hfi_lane_waits_for_room(lane) && !lane->reading)
        events |= POLLOUT;
    hfi_poll_set_again(set, lane->nearest_ns);
    return events;
}

static void maintain_up(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    short events = 0;
    hfi_lane_flush_now(lane); /* what hfi_lane_flush_soon left to us */
    HFI_PERTURB("flushed-to-tend");
    hfi_lane_lock(lane);
    hfi_lane_sweep_locked(lane, now_ns);
    int64_t silent_ns = atomic_exchange(&lane->silent_ns, 0);
    const struct hfi_command *head = head_locked(lane);
    if (silent_ns != 0 && head != NULL && head->sent && head->sent_ns <= silent_ns)
        hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, ETIMEDOUT, "the server is silent");
    if (atomic_load(&lane->state) == HFI_LANE_UP)
        events = watch_events_locked(lane, now_ns, set);
    bool reader_sees = lane->reading && lane->hung_up;
    const struct hfi_polled polled = {lane->connection.fd, lane->connection.number, events};
    bool finish = !hfi_list_is_empty(&lane->completed) || atomic_load(&lane->state) == HFI_LANE_BROKEN;
    hfi_lane_unlock(lane);
    if (finish)
        hfi_lane_run_completions(lane);
    if (events != 0 && !reader_sees)
        hfi_poll_set_add(set, polled, ready, lane);
    else if (events != 0)
        hfi_poll_set_again(set, now_ns + HFI_HANG_UP_NS);
}

void hfi_lane_maintain(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    if (atomic_load(&lane->state) == HFI_LANE_BROKEN)
        hfi_lane_tear_down(lane, now_ns);
    if (atomic_load(&lane->state) == HFI_LANE_DIALING)
        hfi_lane_maintain_dialing(lane, now_ns, set);
    if (atomic_load(&lane->state) == HFI_LANE_UP)
        maintain_up(lane, now_ns, set);
}

void hfi_lane_redirect(struct hfi_lane *lane, const char *why)
{
    hfi_lane_lock(lane);
    hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, 0, why);
    hfi_lane_unlock(lane);
    hfi_lane_run_completions(lane);
    lane->redirected = atomic_load(&lane->state) == HFI_LANE_BROKEN;
    if (atomic_load(&lane->state) != HFI_LANE_DIALING)
        return;
    if (lane->dial != NULL && lane->kind != HFI_RESERVED_LANE)
        hfi_turns_end(&lane->peer->turns, false, lane->dialled_ns, hfi_now(lane->deployment->clock));
    hfi_dial_end(&lane->dial);
    lane->dial_due_ns = 0;
}

/* ---- the end ---- */

bool hfi_lane_is_drained(struct hfi_lane *lane)
{
    hfi_lane_lock(lane);
    bool settled = hfi_inbox_is_empty(&lane->inbox) && hfi_list_is_empty(&lane->queue) &&
                   hfi_list_is_empty(&lane->in_flight) && hfi_list_is_empty(&lane->held) &&
                   hfi_list_is_empty(&lane->completed) && !lane->completing;
    hfi_lane_unlock(lane);
    return settled;
}

void hfi_lane_half_close(struct hfi_lane *lane)
{
    hfi_lane_lock(lane);
    hfi_lane_take_locked(lane);
    if (!hfi_list_is_empty(&lane->in_flight))
        hfi_lane_give_up_locked(lane, HF_CLOSED, 0, "the client closes");
    hfi_lane_drop_held_locked(lane);
    while (!hfi_list_is_empty(&lane->queue))
        hfi_lane_complete_locked(lane, hfi_list_first(&lane->queue, struct hfi_command, link), HFI_UNSENT);
    hfi_lane_set_state_locked(lane, HFI_LANE_CLOSED);
    hfi_lane_unlock(lane);
    bool sends = !atomic_exchange(&lane->writing, true);
    if (lane->connection.fd >= 0 && sends)
        lane->connection.transport->finish(&lane->connection);
    else if (lane->connection.fd >= 0) /* another thread sends */
        (void)shutdown(lane->connection.fd, SHUT_WR);
    if (sends)
        atomic_store(&lane->writing, false); /* what was listed meanwhile is flushed by hfi_pool_close */
    HFI_PERTURB("lane-closed-to-told");
    hfi_event_set(lane->wake_fd); /* a sleeping reader gives the role back */
    hfi_lane_run_completions(lane);
}

void hfi_lane_drain(struct hfi_lane *lane, int64_t until_ns)
{
    while (atomic_exchange(&lane->writing, true))
        (void)sched_yield();
    hfi_lane_lock(lane);
    while (lane->reading || lane->completing)
        hfi_mutex_wait(&lane->mutex, &lane->quiet);
    hfi_lane_unlock(lane);
    /* close() with bytes unread sends a reset, and the server may then drop what it has not executed yet (P11). */
    while (lane->connection.fd >= 0) {
        const struct hfi_clock *clock = lane->deployment->clock;
        struct pollfd end = {lane->connection.fd, POLLIN, 0};
        if (hfi_now(clock) >= until_ns || hfi_poll_until(&end, 1, clock, until_ns) <= 0)
            break;
        ssize_t got = lane->connection.transport->recv(&lane->connection, lane->in, lane->in_capacity);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            break;
    }
    lane->connection.transport->close(&lane->connection);
    hfi_dial_end(&lane->dial);
    atomic_store(&lane->writing, false);
}

void hfi_lane_forked(struct hfi_lane *lane)
{
    if (lane->connection.fd >= 0)
        (void)close(lane->connection.fd);
    hfi_dial_forked(lane->dial);
    if (lane->wake_fd >= 0)
        (void)close(lane->wake_fd);
}
