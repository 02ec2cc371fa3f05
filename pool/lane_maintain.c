/* SPDX-License-Identifier: MIT */
/* lane_maintain.c - the listener's part of a lane: dial, read replies that no thread waits for, deadlines, tear down, close. */
#include "base/perturb.h"
#include "base/poll.h"
#include "pool/dial.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/parser.h"
#include "pool/secure.h"
#include "pool/times.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

static void flush_again(struct hfi_lane *lane)
{
    atomic_store(&lane->again, true);
    hfi_lane_flush(lane);
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

static void sweep_locked(struct hfi_lane *lane, int64_t now_ns)
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
    flush_again(lane); /* the listers of what was taken find the inbox empty, and send nothing */
}

static const struct hfi_command *head_locked(const struct hfi_lane *lane)
{
    return hfi_list_is_empty(&lane->in_flight) ? NULL
                                               : hfi_list_first(&lane->in_flight, struct hfi_command, link);
}

/* ---- up ---- */

static void ready(void *self, short events, int64_t now_ns)
{
    struct hfi_lane *lane = self;
    (void)now_ns;
    if (events & POLLOUT)
        flush_again(lane);
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
    if (watch != HFI_LOOKS_SOON && !hfi_inbox_is_empty(&lane->inbox)) /* see hfi_lane_flush_soon */
        hfi_poll_set_again(set, now_ns);
    if (atomic_load(&lane->blocked) && !lane->reading)
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
    sweep_locked(lane, now_ns);
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

/* ---- down ---- */

/* Over a slow link the reserved lane (renewals) is dialled first, and alone: bytes of other lanes would queue up in
 * front of its own. The others take turns then (turns.h). Returns how long another lost lane waits to see whether the
 * reserved lane is lost too; 0 if the link is fast or `lane` is the reserved one. */
static int64_t road_ns(const struct hfi_lane *lane)
{
    int64_t rtt_ns = hfi_lane_rtt_ns(lane->renewals);
    bool waits = lane->kind != HFI_RESERVED_LANE && lane->kind != HFI_SENTINEL_LANE;
    return waits && rtt_ns > HFI_SLOW_NS ? rtt_ns : 0;
}

/* A server that comes back to a thousand clients of six connections has as many handshakes of TLS to do, milliseconds
 * each: renewals first, then locks, then what can wait. */
static int64_t spread_ns(struct hfi_lane *lane)
{
    if (lane->deployment->secure == NULL || lane->kind == HFI_RESERVED_LANE)
        return 0;
    return hfi_backoff_spread_ns(&lane->backoff, &lane->peer->losses,
                                 lane->kind == HFI_LOCK_LANE ? HFI_SPREAD_LOCKS_NS : HFI_SPREAD_NS);
}

static void fail(struct hfi_lane *lane, const hf_error *error, int64_t now_ns)
{
    bool news = atomic_exchange(&lane->trouble, HFI_UNREACHABLE) == HFI_NO_TROUBLE;
    lane->dial_due_ns = hfi_backoff_next_ns(&lane->backoff, now_ns);
    hfi_peer_note_failure(lane->peer, error);
    if (lane->index == 0)
        hfi_peer_note_verdict(lane->peer);
    if (news)
        hfi_log(&lane->deployment->log, HF_LOG_WARNING, "%s; dialling again", error->message);
    flush_again(lane); /* the commands that waited for this dial come back UNSENT */
}

static void fail_memory(struct hfi_lane *lane, int64_t now_ns)
{
    hf_error error;
    (void)hfi_fail(&error, HF_NOMEM, NULL, "no memory to connect to %s", lane->peer->name);
    hfi_fail_server(&error, lane->peer->name);
    fail(lane, &error, now_ns);
}

static void come_up(struct hfi_lane *lane, int64_t now_ns)
{
    struct hfi_deployment *deployment = lane->deployment;
    struct redisReader *parser = hfi_parser_create(lane->reply_most);
    if (parser == NULL) {
        fail_memory(lane, now_ns);
        return;
    }
    bool is_another = hfi_peer_note_server(lane->peer, hfi_dial_server(lane->dial));
    hfi_backoff_up(&lane->backoff, now_ns);
    lane->hung_up = false;
    hfi_lane_lock(lane);
    lane->connection = hfi_dial_take(lane->dial);
    lane->parser = parser;
    lane->unparsed = 0;
    lane->frame = (struct hfi_frame){0};
    lane->skips = false;
    atomic_store(&lane->clock_by_key, hfi_dial_server(lane->dial)->clock_by_key);
    lane->answered_ns = lane->up_ns = now_ns;
    atomic_store(&lane->nearest_rtt_ns, 0); /* it may be another server, further away */
    (void)atomic_fetch_add(&lane->times_up, 1);
    lane->primaries = hfi_peer_primaries(lane->peer) - is_another; /* so that it is asked for its role: it may be the former one */
    atomic_store(&lane->run, hfi_server_run(hfi_dial_server(lane->dial)->run_id));
    hfi_lane_set_state_locked(lane, HFI_LANE_UP);
    hfi_lane_unlock(lane);
    HFI_PERTURB("lane-up-to-told");
    bool news = atomic_exchange(&lane->trouble, HFI_NO_TROUBLE) != HFI_NO_TROUBLE || atomic_load(&lane->times_up) > 1;
    if (lane->index == 0)
        hfi_peer_note_verdict(lane->peer);
    if (news)
        hfi_log(&deployment->log, HF_LOG_INFO, "connected to %s", lane->peer->name);
    if (deployment->ops.lane_up != NULL)
        deployment->ops.lane_up(deployment->self, lane->index);
    if (is_another && lane->peer->endpoint->scheme == HFI_SENTINEL && deployment->ops.another_server != NULL)
        deployment->ops.another_server(deployment->self);
    flush_again(lane); /* sends the commands that waited for the dial */
}

/* Must the reserved lane (renewals) be dialled before this one? */
static bool yields_to_renewals(const struct hfi_lane *lane)
{
    const struct hfi_lane *renewals = lane->renewals;
    int state = atomic_load(&renewals->state);
    bool comes = state == HFI_LANE_BROKEN ||
                 (state == HFI_LANE_DIALING && atomic_load(&renewals->trouble) == HFI_NO_TROUBLE);
    return comes && road_ns(lane) != 0;
}

/* When this lane may dial as far as others are concerned. HFI_NEVER: when the reserved lane's dial has ended. Lanes that were
 * lost take turns, while the server can be reached; a new lane takes none, for it comes alone. */
static int64_t turn_ns(const struct hfi_lane *lane, int64_t now_ns)
{
    int64_t road = road_ns(lane);
    if (road == 0 || atomic_load(&lane->deployment->closing_until_ns) != 0)
        return now_ns;
    if (yields_to_renewals(lane))
        return HFI_NEVER;
    if (atomic_load(&lane->times_up) == 0 || atomic_load(&lane->renewals->trouble) == HFI_UNREACHABLE)
        return now_ns;
    return hfi_turns_next_ns(&lane->peer->turns, road, now_ns);
}

static void begin_dial(struct hfi_lane *lane, int64_t now_ns)
{
    bool has_scripts = lane->kind != HFI_USER_LANE && lane->kind != HFI_SENTINEL_LANE;
    lane->dial = hfi_dial_begin(lane->peer, has_scripts ? HFI_DIAL_LANE : HFI_DIAL_USER_LANE, lane->index,
                                hfi_after_ms(now_ns, lane->deployment->settings.connect_ms));
    lane->dialled_ns = now_ns;
    if (lane->dial == NULL) {
        fail_memory(lane, now_ns);
    } else if (lane->kind != HFI_RESERVED_LANE) {
        hfi_turns_begin(&lane->peer->turns, now_ns);
        lane->peer->dialled_last = lane->index;
    }
}

static void end_dial(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    bool whole = atomic_load(&lane->state) == HFI_LANE_UP && lane->kind != HFI_USER_LANE; /* whose handshake is shorter */
    if (lane->kind != HFI_RESERVED_LANE)
        hfi_turns_end(&lane->peer->turns, whole, lane->dialled_ns, now_ns);
    hfi_dial_end(&lane->dial);
    hfi_poll_set_again(set, now_ns); /* it may be another lane's turn */
}

static void maintain_dialing(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    enum hfi_dial_state state = HFI_DIAL_GOING;
    if (lane->dial == NULL && now_ns >= lane->dial_due_ns && now_ns >= turn_ns(lane, now_ns))
        begin_dial(lane, now_ns);
    if (lane->dial != NULL)
        state = hfi_dial_step(lane->dial, now_ns);
    if (state == HFI_DIAL_UP)
        come_up(lane, now_ns);
    else if (state == HFI_DIAL_FAILED)
        fail(lane, hfi_dial_error(lane->dial), now_ns);
    if (state != HFI_DIAL_GOING)
        end_dial(lane, now_ns, set);
    if (lane->dial != NULL) {
        hfi_poll_set_add(set, hfi_dial_polled(lane->dial), NULL, NULL);
        hfi_poll_set_again(set, hfi_dial_again_ns(lane->dial));
    } else if (atomic_load(&lane->state) == HFI_LANE_DIALING) {
        int64_t turn = turn_ns(lane, now_ns);
        hfi_poll_set_again(set, turn > lane->dial_due_ns ? turn : lane->dial_due_ns);
    }
    hfi_lane_lock(lane); /* leave the inbox alone: a lister flushes only what it finds there */
    sweep_locked(lane, now_ns);
    hfi_poll_set_again(set, lane->nearest_ns);
    bool finish = !hfi_list_is_empty(&lane->completed);
    hfi_lane_unlock(lane);
    if (finish)
        hfi_lane_run_completions(lane);
}

/* Closes the connection if both roles are free. Otherwise the thread that has a role kicks the listener when it gives
 * the role back. */
static void tear_down(struct hfi_lane *lane, int64_t now_ns)
{
    hfi_lane_lock(lane);
    bool owed = !hfi_list_is_empty(&lane->completed);
    hfi_lane_unlock(lane);
    if (owed)
        hfi_lane_run_completions(lane);
    if (atomic_exchange(&lane->writing, true))
        return;
    hf_error why;
    HFI_PERTURB("lane-to-tear-down");
    hfi_lane_lock(lane);
    bool idle = !lane->reading && !lane->completing && hfi_list_is_empty(&lane->completed);
    if (idle) {
        lane->connection.transport->close(&lane->connection);
        redisReaderFree(lane->parser);
        lane->parser = NULL;
        hfi_buffer_eat(&lane->out, hfi_buffer_size(&lane->out));
        atomic_store(&lane->blocked, false);
        atomic_store(&lane->watch, HFI_UNWATCHED);
        /* If the lane has answered since it came up, the connection broke, not the server. The reserved lane cannot
         * wait for this proof: it may have been given up because of its first command. */
        enum hfi_lost lost = lane->kind == HFI_RESERVED_LANE   ? HFI_LOST_URGENT
                             : lane->answered_ns > lane->up_ns ? HFI_LOST_SERVED
                                                               : HFI_LOST_UNUSED;
        lane->dial_due_ns = hfi_backoff_lost_ns(&lane->backoff, &lane->peer->losses, lost, now_ns) + road_ns(lane) + spread_ns(lane);
        if (lane->redirected)
            lane->dial_due_ns = now_ns + spread_ns(lane);
        lane->redirected = false;
        why = lane->why;
        /* A silent server counts as away until it answers a dial, so that no other caller has to wait to find out. */
        if (why.os_errno == ETIMEDOUT) {
            atomic_store(&lane->trouble, HFI_SILENT);
            atomic_store(&lane->again, true); /* commands that are listed already come back too */
        }
        hfi_lane_set_state_locked(lane, HFI_LANE_DIALING);
    }
    hfi_lane_unlock(lane);
    atomic_store(&lane->writing, false);
    hfi_lane_flush(lane); /* commands listed while we had the write role */
    if (idle) {
        hfi_peer_note_failure(lane->peer, &why);
        hfi_log(&lane->deployment->log, HF_LOG_WARNING, "%s", why.message);
    }
}

void hfi_lane_maintain(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    if (atomic_load(&lane->state) == HFI_LANE_BROKEN)
        tear_down(lane, now_ns);
    if (atomic_load(&lane->state) == HFI_LANE_DIALING)
        maintain_dialing(lane, now_ns, set);
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
    (void)eventfd_write(lane->wake_fd, 1); /* a sleeping reader gives the role back */
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
