/* SPDX-License-Identifier: MIT */
/* lane.c - group commit: commands are listed without a lock, and the thread that finds the write role free sends them
 * all. Also the only place that hands out outcomes. */
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "pool/dial.h"
#include "pool/lane_private.h"
#include "pool/listener.h"
#include "pool/times.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOCK_REPLY_MOST 65536
#define SENDS_TIMED     16    /* each so many-th send is, */
#define TIMED_MOST      4096  /* unless it is of more bytes: to copy a long value is no wait */

void hfi_lane_lock(struct hfi_lane *lane)
{
    hfi_mutex_lock(&lane->mutex);
}

void hfi_lane_unlock(struct hfi_lane *lane)
{
    hfi_lane_check_locked(lane);
    hfi_mutex_unlock(&lane->mutex);
}

HFI_RARE struct hfi_lane *hfi_lane_new(struct hfi_peer *peer, struct hfi_listener *listener, enum hfi_lane_kind kind, int index)
{
    struct hfi_deployment *deployment = peer->deployment;
    struct hfi_lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return NULL;
    lane->peer = peer;
    lane->deployment = deployment;
    lane->listener = listener;
    lane->kind = kind;
    lane->index = index;
    bool sifted = hfi_lane_is_sifted(lane);
    lane->reply_most = sifted ? deployment->settings.max_value_bytes + LOCK_REPLY_MOST : LOCK_REPLY_MOST;
    lane->in_capacity = HFI_RECV_WHOLE;
    lane->in = malloc(lane->in_capacity);
    lane->connection = HFI_NO_CONNECTION;
    lane->nearest_ns = HFI_NEVER;
    hfi_inbox_init(&lane->inbox);
    hfi_list_init(&lane->queue);
    hfi_list_init(&lane->in_flight);
    hfi_list_init(&lane->held);
    hfi_list_init(&lane->completed);
    hfi_list_init(&lane->waiters);
    hfi_mutex_init(&lane->mutex, HFI_RANK_LEAF);
    (void)pthread_cond_init(&lane->quiet, NULL);
    hfi_backoff_init(&lane->backoff, (uint64_t)hfi_now(deployment->clock) ^ ((uint64_t)index << 56));
    lane->wake_fd = hfi_descriptor_event();
    if (lane->in == NULL || lane->wake_fd < 0) {
        hfi_lane_free(lane);
        return NULL;
    }
    return lane;
}

HFI_RARE void hfi_lane_free(struct hfi_lane *lane)
{
    if (lane == NULL)
        return;
    hfi_dial_end(&lane->dial);
    lane->connection.transport->close(&lane->connection);
    if (lane->wake_fd >= 0)
        (void)close(lane->wake_fd);
    if (lane->parser != NULL)
        redisReaderFree(lane->parser);
    hfi_buffer_done(&lane->out);
    free(lane->in);
    free(lane->needed);
    (void)pthread_cond_destroy(&lane->quiet);
    hfi_mutex_destroy(&lane->mutex);
    free(lane);
}

/* ---- outcomes ---- */

void hfi_lane_complete_locked(struct hfi_lane *lane, struct hfi_command *command, enum hfi_outcome outcome)
{
    hfi_list_remove(&command->link);
    command->outcome = outcome;
    if (outcome != HFI_ANSWERED && command->reply != NULL) {
        freeReplyObject(command->reply); /* the first error of a pipeline that was cut short */
        command->reply = NULL;
    }
    hfi_list_append(&lane->completed, &command->link);
    struct hfi_deployment *deployment = lane->deployment;
    bool closing = atomic_load(&deployment->closing_until_ns) != 0 || atomic_load(&deployment->hurry_ns) != HFI_NEVER;
    if (outcome != HFI_ANSWERED && closing && !command->too_long && !command->optional)
        atomic_store(&deployment->closed_short, true);
}

void hfi_lane_run_completions(struct hfi_lane *lane)
{
    hfi_lane_lock(lane);
    if (lane->completing) {
        hfi_lane_unlock(lane);
        return; /* we may be inside a `done`; the completing thread comes back for the rest */
    }
    lane->completing = true;
    while (!hfi_list_is_empty(&lane->completed)) {
        struct hfi_list batch;
        hfi_list_init(&batch);
        while (!hfi_list_is_empty(&lane->completed)) {
            struct hfi_list *first = lane->completed.next;
            hfi_list_remove(first);
            hfi_list_append(&batch, first);
        }
        hfi_lane_unlock(lane);
        hfi_park_hold();
        while (!hfi_list_is_empty(&batch)) {
            struct hfi_command *command = hfi_list_first(&batch, struct hfi_command, link);
            hfi_list_remove(&command->link);
            HFI_PERTURB("outcome-to-done");
            command->done(command);
            hfi_command_unref(command);
        }
        hfi_park_let_go();
        hfi_lane_lock(lane);
    }
    lane->completing = false;
    (void)pthread_cond_signal(&lane->quiet);
    bool broken = atomic_load(&lane->state) == HFI_LANE_BROKEN;
    hfi_lane_unlock(lane);
    if (broken)
        hfi_listener_kick(lane->listener);
}

/* The last `left` bytes in flight are still in `out`: a command that lies wholly within them has not left. */
static HFI_RARE void unmark_unsent_locked(struct hfi_lane *lane, size_t left)
{
    for (struct hfi_list *at = lane->in_flight.prev; at != &lane->in_flight; at = at->prev) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        if (command->size > left)
            break;
        left -= command->size;
        command->sent = false;
    }
}

/* Called before a send: from now on everything in `out` may have left. */
static void mark_sent_locked(struct hfi_lane *lane, int64_t now_ns)
{
    for (struct hfi_list *at = lane->in_flight.prev; at != &lane->in_flight; at = at->prev) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        if (command->sent)
            break;
        command->sent = true;
        command->sent_ns = now_ns;
    }
}

HFI_RARE void hfi_lane_give_up_locked(struct hfi_lane *lane, hf_status status, int os_errno, const char *why)
{
    if (atomic_load(&lane->state) != HFI_LANE_UP)
        return;
    hfi_lane_set_state_locked(lane, HFI_LANE_BROKEN);
    (void)shutdown(lane->connection.fd, SHUT_RDWR); /* wakes a reader that sleeps on it */
    (void)hfi_fail(&lane->why, status, "check the server and the network between",
                   "the connection to %s is given up: %s", lane->peer->name, why);
    hfi_fail_server(&lane->why, lane->peer->name);
    hfi_fail_errno(&lane->why, os_errno);
    hfi_fail_retry(&lane->why, -1);
    (void)atomic_fetch_add(&lane->cuts, os_errno != ETIMEDOUT);
    lane->drop_after = lane->role_check_due = false;
    lane->in_flight_count = lane->threadless = lane->prompt = 0;
    while (!hfi_list_is_empty(&lane->in_flight)) {
        struct hfi_command *last = hfi_list_last(&lane->in_flight, struct hfi_command, link);
        if (last->sent)
            break;
        hfi_list_remove(&last->link);
        hfi_list_prepend(&lane->queue, &last->link); /* it was listed before those in the queue */
    }
    hfi_lane_drop_held_locked(lane); /* before those that were sent later */
    while (!hfi_list_is_empty(&lane->in_flight))
        hfi_lane_complete_locked(lane, hfi_list_first(&lane->in_flight, struct hfi_command, link), HFI_UNANSWERED);
}

/* ---- rule P10: a connection can survive a demotion ---- */

static HFI_RARE void role_checked(struct hfi_command *command)
{
    (void)command;
}

bool hfi_lane_is_role_check(const struct hfi_command *command)
{
    return command->done == role_checked;
}

static HFI_RARE void check_role_locked(struct hfi_lane *lane, int64_t now_ns)
{
    const char *const words[] = {"ROLE"};
    struct hfi_command *check = hfi_command_new(1, words, NULL);
    if (check == NULL) {
        hfi_lane_give_up_locked(lane, HF_NOMEM, 0, "no memory to ask for its role");
        return;
    }
    check->done = role_checked;
    check->optional = true;
    check->until_ns = hfi_after_ms(now_ns, lane->deployment->settings.command_ms);
    if (check->until_ns < lane->nearest_ns)
        lane->nearest_ns = check->until_ns;
    hfi_list_prepend(&lane->queue, &check->link);
}

/* ---- writing ---- */

void hfi_lane_list(struct hfi_lane *lane, struct hfi_command *command)
{
    hfi_command_ref(command);
    (void)atomic_fetch_add_explicit(&lane->listed, 1, memory_order_relaxed);
    hfi_inbox_put(&lane->inbox, &command->listed);
    if (command->awaited != HFI_AWAITED_BY_THREAD)
        atomic_store(&lane->unattended, true);
    HFI_PERTURB("listed-to-flush");
}

void hfi_lane_take_locked(struct hfi_lane *lane)
{
    atomic_store(&lane->unattended, false); /* first: what is listed later may be left behind */
    struct hfi_inbox_node *node = hfi_inbox_take(&lane->inbox);
    int taken = 0;
    while (node != NULL) {
        struct hfi_inbox_node *next = hfi_inbox_next(node);
        struct hfi_command *command = hfi_container_of(node, struct hfi_command, listed);
        hfi_list_append(&lane->queue, &command->link);
        if (command->until_ns < lane->nearest_ns)
            lane->nearest_ns = command->until_ns;
        node = next;
        taken++;
    }
    (void)atomic_fetch_sub_explicit(&lane->listed, taken, memory_order_relaxed);
}

static void stage_locked(struct hfi_lane *lane, int64_t now_ns)
{
    bool asks_role = lane->kind != HFI_RESERVED_LANE && lane->kind != HFI_SENTINEL_LANE;
    bool idled = lane->in_flight_count == 0 && now_ns - lane->answered_ns > HFI_FIT_NS, grants = false;
    unsigned primaries = hfi_peer_primaries(lane->peer); /* another number: another lane has met another server since */
    bool is_doubtful = asks_role && (idled || lane->primaries != primaries);
    if ((is_doubtful || lane->role_check_due) && !hfi_list_is_empty(&lane->queue)) {
        lane->role_check_due = false;
        lane->primaries = primaries;
        check_role_locked(lane, now_ns);
    }
    while (atomic_load(&lane->state) == HFI_LANE_UP) {
        if (hfi_list_is_empty(&lane->queue) && !(grants && hfi_lane_ask_for_confirmation_locked(lane, now_ns)))
            break;
        struct hfi_command *command = hfi_list_first(&lane->queue, struct hfi_command, link);
        grants = !hfi_lane_is_confirmation(command) && (grants || hfi_lane_needs_confirmation(lane, command));
        hfi_list_remove(&command->link);
        hfi_command_use_clock(command, hfi_lane_clock_by_key(lane)); /* now it is known which server it goes to */
        if (!hfi_buffer_append(&lane->out, command->bytes, command->size)) {
            hfi_lane_lack_memory_locked(lane, command);
            continue;
        }
        hfi_list_append(&lane->in_flight, &command->link);
        lane->in_flight_count++;
        lane->threadless += command->awaited != HFI_AWAITED_BY_THREAD;
        lane->prompt += command->awaited == HFI_AWAITED_PROMPTLY;
        lane->staged++;
    }
    mark_sent_locked(lane, now_ns);
}

static void send_out(struct hfi_lane *lane)
{
    int failed = 0;
    bool timed = lane->sends % SENDS_TIMED == 1 && hfi_buffer_size(&lane->out) <= TIMED_MOST;
    int64_t begun_ns = timed ? hfi_now(lane->deployment->clock) : 0;
    while (hfi_buffer_size(&lane->out) > 0 && failed == 0) {
        ssize_t sent = lane->connection.transport->send(&lane->connection, hfi_buffer_data(&lane->out),
                                                        hfi_buffer_size(&lane->out));
        if (sent >= 0)
            hfi_buffer_eat(&lane->out, (size_t)sent);
        else
            failed = errno;
    }
    if (timed && failed == 0)
        hfi_costs_note_send(&lane->deployment->costs, hfi_now(lane->deployment->clock) - begun_ns);
    if (failed == 0) {
        atomic_store(&lane->blocked, false);
        return;
    }
    hfi_lane_lock(lane);
    unmark_unsent_locked(lane, hfi_buffer_size(&lane->out));
    if (failed == EAGAIN || failed == ENOBUFS)
        atomic_store(&lane->blocked, true);
    else
        hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, failed, "sending failed");
    bool reader = lane->reading;
    hfi_lane_unlock(lane);
    if (reader)
        hfi_event_set(lane->wake_fd); /* the reader polls for POLLOUT too from now on */
    else
        hfi_listener_kick(lane->listener);
}

static HFI_RARE void send_back_locked(struct hfi_lane *lane, bool but_patient)
{
    for (struct hfi_list *at = lane->queue.next, *next; at != &lane->queue; at = next) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        next = at->next;
        if (!but_patient || !command->patient)
            hfi_lane_complete_locked(lane, command, HFI_UNSENT);
    }
}

/* Needs the write role. Returns true if hfi_lane_run_completions is due. */
static bool write_listed(struct hfi_lane *lane)
{
    int64_t now_ns = hfi_now(lane->deployment->clock);
    bool kick = false;
    HFI_PERTURB("clock-to-board");
    hfi_lane_lock(lane);
    atomic_store(&lane->again, false);
    hfi_lane_take_locked(lane);
    int state = atomic_load(&lane->state);
    if (state == HFI_LANE_UP) {
        stage_locked(lane, now_ns);
        kick = lane->in_flight_count > 0 && !lane->reading && hfi_lane_is_overlooked_locked(lane) && !hfi_lane_is_read_next(lane);
        if (kick)
            atomic_store(&lane->watch, HFI_LOOKS_SOON);
    } else if (hfi_lane_is_down(lane)) {
        send_back_locked(lane, !hfi_lane_is_unreachable(lane));
    }
    int64_t nearest_ns = lane->nearest_ns;
    bool send = atomic_load(&lane->state) == HFI_LANE_UP && hfi_buffer_size(&lane->out) > 0;
    if (send)
        lane->sends++;
    bool finished = !hfi_list_is_empty(&lane->completed);
    hfi_lane_unlock(lane);
    HFI_PERTURB("boarded-to-sent");
    if (send)
        send_out(lane);
    HFI_PERTURB("sent-to-kick");
    if (kick)
        hfi_listener_kick(lane->listener);
    else
        hfi_listener_kick_before(lane->listener, nearest_ns);
    return finished || atomic_load(&lane->state) == HFI_LANE_BROKEN;
}

enum leaving { NO, YES, OR_GATHERS }; /* what is listed, to a thread that sends soon; and this one may be that thread */

static void flush(struct hfi_lane *lane, enum leaving leaving)
{
    bool finish = false;
    for (bool sent = false; !hfi_inbox_is_empty(&lane->inbox) || atomic_load(&lane->again); sent = true) {
        if (leaving != NO && hfi_lane_is_left(lane))
            break;
        if (!sent && (leaving == OR_GATHERS ? hfi_lane_gather(lane) : leaving == YES && hfi_lane_is_gathered(lane)))
            break; /* else others have left it to this thread meanwhile, as to the holder of the write role */
        if (atomic_exchange(&lane->writing, true))
            break; /* the thread that has the write role looks again after giving it back */
        finish |= write_listed(lane);
        HFI_PERTURB("written-to-role-back");
        atomic_store(&lane->writing, false);
        if (atomic_load(&lane->state) == HFI_LANE_BROKEN)
            hfi_listener_kick(lane->listener); /* tear_down() may have found the role taken */
    }
    if (finish)
        hfi_lane_run_completions(lane);
}

void hfi_lane_flush(struct hfi_lane *lane)
{
    flush(lane, YES);
}

void hfi_lane_flush_to_wait(struct hfi_lane *lane)
{
    flush(lane, OR_GATHERS);
}

void hfi_lane_flush_now(struct hfi_lane *lane)
{
    flush(lane, NO);
}

/* Store-load pairing with watch_events_locked(): our caller lists the command, then we read `watch`; the listener
 * changes `watch`, then tests the inbox. One of us sees the other. */
void hfi_lane_flush_soon(struct hfi_lane *lane)
{
    if (atomic_load(&lane->watch) == HFI_LOOKS_SOON && hfi_lane_is_near(lane) && hfi_lane_is_up(lane))
        return;
    hfi_lane_flush_posted(lane);
}

void hfi_lane_flush_posted(struct hfi_lane *lane)
{
    atomic_store(&lane->unattended, true);
    hfi_lane_flush(lane);
}

/* ---- state ---- */

bool hfi_lane_is_up(const struct hfi_lane *lane)
{
    return atomic_load(&lane->state) == HFI_LANE_UP;
}

unsigned hfi_lane_cuts(const struct hfi_lane *lane)
{
    return atomic_load(&lane->cuts);
}

bool hfi_lane_clock_by_key(const struct hfi_lane *lane)
{
    return atomic_load(&lane->clock_by_key);
}

int hfi_lane_index(const struct hfi_lane *lane)
{
    return lane->index;
}

int64_t hfi_lane_rtt_ns(const struct hfi_lane *lane)
{
    return atomic_load(&lane->rtt_ns);
}

int64_t hfi_lane_waits_since_ns(const struct hfi_lane *lane)
{
    struct hfi_lane *locked = (struct hfi_lane *)(uintptr_t)lane;
    int64_t since_ns = HFI_NEVER;
    hfi_lane_lock(locked);
    if (!hfi_list_is_empty(&lane->in_flight)) {
        const struct hfi_command *head = hfi_list_first(&lane->in_flight, struct hfi_command, link);
        since_ns = head->sent ? head->sent_ns : HFI_NEVER;
    }
    hfi_lane_unlock(locked);
    return since_ns;
}
