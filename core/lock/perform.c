/* SPDX-License-Identifier: MIT */
/* perform.c - see perform.h. The entry decides (core/policy/entry.h): here its actions become commands, wake-ups and
 * notifications, and the answers to acquires become its events. */
#include "core/lock/perform.h"
#include "core/context/call.h"
#include "core/lock/announce.h"
#include "core/lock/event_sink.h"
#include "core/lock/key_events.h"
#include "core/lock/quarantine.h"
#include "core/lock/retire.h"
#include "core/lock/server_time.h"
#include "core/lock/shrink.h"
#include "core/lock/table.h"
#include "core/lock/timer.h"
#include "core/lock/tracking.h"
#include "core/lock/trouble.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "base/random.h"
#include "base/rare.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define MORE_FENCES (16 * HFI_FENCE_BLOCK)

struct question { /* context of an acquire, or of a request for more fences */
    struct hfi_token token;
    int64_t fence_seen;     /* when it was asked */
    int64_t last_chance_us; /* of the token, as in struct hfi_in_doubt */
};

void hfi_lock_mistrust(const struct hfi_lock *lock, struct hfi_answer *answer, const struct hfi_command *command)
{
    if (answer->kind == HFI_GRANTED &&
        (command->replicas_missing > 0 || hfi_quarantine_left_ns(lock, command->answered_ns) > 0)) {
        answer->kind = HFI_NO_ANSWER; /* its token asks again, and that confirms it, or is released */
        answer->there = answer->counts_not = true;
    }
}

static HFI_RARE void asked(struct hfi_command *command)
{
    struct hfi_lock *lock = command->self;
    hf_client *client = lock->client;
    const struct question *question = hfi_command_context(command, struct question);
    /* Only the native form is a pipeline. */
    struct hfi_answer answer = {.kind = HFI_NO_ANSWER, .there = true, .in_doubt = true, .native = command->replies > 1};
    struct hfi_step step;
    int64_t rtt = hfi_lane_rtt_ns(lock->lane);
    int64_t server_us = 0;
    if (command->outcome == HFI_ANSWERED) {
        answer = hfi_wire_answer(command->reply, answer.native, &server_us);
        hfi_lock_mistrust(lock, &answer, command);
        if (!answer.native) /* native answers are many, and a fence_floor has told the time lately */
            hfi_server_time_observe(client, hfi_lane_index(lock->lane), server_us, command->stamp_ns, command->answered_ns);
    } else if (command->outcome == HFI_UNSENT) {
        answer.kind = HFI_NOT_SENT;
        answer.there = answer.in_doubt = false;
        answer.status = hfi_pool_why_down(client->pool, NULL);
    } else if (command->too_long) { /* the reply was VALUE: the script was executed, and left nothing behind */
        answer.kind = HFI_CANNOT;
        answer.there = answer.in_doubt = false;
        answer.status = HF_LIMIT;
    }
    answer.sent_at = command->stamp_ns;
    if (answer.kind == HFI_GRANTED && server_us == 0) /* an untimed native one: it was granted before its answer was read */
        server_us = hfi_server_time_at_most(client, hfi_lane_index(lock->lane), command->answered_ns);
    if (answer.kind == HFI_GRANTED)
        answer.fence_is_good = hfi_fence_accept(client, answer.fence, HFI_FENCE_BLOCK, question->fence_seen, server_us,
                                                command->stamp_ns);
    HFI_PERTURB("answer-to-entry");
    int64_t now = hfi_lock_enter(lock);
    lock->questions--;
    hfi_step_init(&step, now, rtt);
    if (hfi_token_is_same(lock->token, question->token) && lock->entry.remote != HFI_NOTHING) {
        lock->there = lock->there || answer.there;
        answer.in_doubt = lock->in_doubt = lock->in_doubt || answer.in_doubt;
        hfi_lock_note_trouble(lock, command, answer.kind);
        if (answer.kind == HFI_HAS_VALUE)
            client->fetch_ops->take(lock, command->reply);
        hfi_entry_answered(&lock->entry, &answer, &step);
        hfi_lock_perform(lock, &step, NULL);
    } else if (answer.there) {
        hfi_retire_again(lock, question->token, answer.in_doubt, question->last_chance_us, now);
    }
    hfi_lock_leave(lock);
    hfi_table_unref(lock);
}

static HFI_RARE void got_fences(struct hfi_command *command)
{
    struct hfi_lock *lock = command->self;
    hf_client *client = lock->client;
    const struct question *question = hfi_command_context(command, struct question);
    struct hfi_step step;
    bool answered = command->outcome == HFI_ANSWERED && command->replicas_missing == 0;
    int64_t first = answered ? 0 : -1, granted_us = 0;
    if (answered) {
        struct hfi_script_reply said = hfi_wire_script_reply(command->reply);
        hfi_server_time_observe(client, hfi_lane_index(lock->lane), said.now_us, command->stamp_ns, command->answered_ns);
        granted_us = said.now_us;
        bool granted = strcmp(said.word, "GRANTED") == 0 && granted_us > 0;
        int64_t last = granted ? hfi_wire_number(command->reply, 2, 0) : 0;
        if (last > MORE_FENCES) /* the reply is the first fence of the last of several blocks */
            first = last - (MORE_FENCES - HFI_FENCE_BLOCK);
    }
    bool good = first > 0 && hfi_fence_accept(client, first, MORE_FENCES, question->fence_seen, granted_us,
                                              command->stamp_ns);
    HFI_PERTURB("fences-to-entry");
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, 0);
    if (hfi_token_is_same(lock->token, question->token)) {
        lock->refused = answered; /* a refusal: without a higher fence nothing is granted */
        hfi_lock_note_trouble(lock, command, answered ? HFI_GRANTED : HFI_NO_ANSWER);
        if (hfi_wire_foreign(command->reply) != NULL)
            hfi_entry_no_counter(&lock->entry, &step);
        else
            hfi_entry_fences(&lock->entry, first, MORE_FENCES, good, &step);
        hfi_lock_perform(lock, &step, NULL);
    }
    hfi_lock_leave(lock);
    hfi_table_unref(lock);
}

/* Lists the command with a reference to the lock until its outcome is known. False: `command` is NULL, no memory. */
static bool list(struct hfi_lock *lock, struct hfi_command *command, hfi_command_done *done, int64_t stamp)
{
    if (command == NULL)
        return false;
    *hfi_command_context(command, struct question) = (struct question){lock->token, hfi_fence_seen(lock->client),
                                                                      lock->last_chance_us};
    if (hfi_lock_home(lock)->pendings > 0)
        command->awaited = HFI_AWAITED_PROMPTLY;
    hfi_table_ref(lock);
    HFI_PERTURB("command-to-list");
    hfi_call_list(lock->client, lock->lane, command, done, lock, stamp);
    return true;
}

static bool fresh_token(struct hfi_lock *lock)
{
    if (!hfi_random_word(lock->client->random, &lock->token.random))
        return false;
    lock->token.random = hfi_token_granted_bits(lock->token.random);
    lock->token.grant = hfi_table_grant(lock->client, lock);
    lock->revoked = 0;
    lock->last_chance_us = lock->last_chance_ns = 0;
    lock->may_live_ms = 0;
    lock->there = lock->in_doubt = false;
    return true;
}

static HFI_RARE void not_sent(struct hfi_lock *lock, const struct hfi_action *action, hf_status status, int64_t now)
{
    struct hfi_answer none = {.kind = HFI_NOT_SENT, .status = status, .native = action->fresh, .sent_at = now};
    struct hfi_step step;
    hfi_step_init(&step, now, 0);
    hfi_entry_answered(&lock->entry, &none, &step);
    hfi_lock_perform(lock, &step, NULL);
}

/* `now` is the stamp: read before the command can leave (P1). */
static void send_acquire(struct hfi_lock *lock, const struct hfi_action *action, int64_t now)
{
    hf_client *client = lock->client;
    struct hfi_command *command;
    struct hfi_acquire_params params = hfi_entry_acquire_params(&lock->entry);
    int64_t quarantine_ns = hfi_quarantine_left_ns(lock, now);
    if (quarantine_ns > 0) {
        hfi_lock_note_quarantine(lock, quarantine_ns);
        not_sent(lock, action, HF_UNAVAILABLE, now);
        return;
    }
    if (action->fresh && !fresh_token(lock)) { /* nothing may be granted without a token */
        hfi_lock_note_no_random(lock);
        not_sent(lock, action, HF_INTERNAL, now);
        return;
    }
    HFI_PERTURB("stamp-to-command");
    hfi_lock_may_live(lock, params.ttl_ms + (action->kind == HFI_SEND_WAIT ? params.patience_ms : 0));
    bool native = action->kind == HFI_SEND_NATIVE;
    bool timed = native && !hfi_server_time_is_known(client, hfi_lane_index(lock->lane), now);
    if (native && !(timed && hfi_lane_clock_by_key(lock->lane))) {
        hfi_server_time_floor(client, lock->lane, HFI_FLOOR_NS, now);
        lock->last_chance_ns = now + params.ttl_ms * HFI_MS;
        command = hfi_wire_native(&client->identity, &lock->keys, lock->token, params.ttl_ms, timed);
    } else { /* where TIME is refused, this in place of a native acquire that asks for it */
        struct hfi_asking asking = {.once = action->kind != HFI_SEND_WAIT, .echo = now};
        asking.not_after_us = hfi_server_time_not_after(client, hfi_lane_index(lock->lane), now);
        if (asking.not_after_us > lock->last_chance_us)
            lock->last_chance_us = asking.not_after_us;
        if (lock->shared != NULL)
            asking.enough_ms = client->fetch_ops->enough_ms(lock->shared);
        command = hfi_wire_acquire(&client->identity, &lock->keys, lock->token, &params, &asking);
    }
    hfi_entry_sent(&lock->entry, &params, now);
    if (list(lock, command, asked, now))
        lock->questions++; /* the answer waits for the mutex */
    else
        not_sent(lock, action, HF_NOMEM, now);
}

bool hfi_lock_ask_together(struct hfi_lock *lock, struct hfi_step *step, int64_t not_after_us, int64_t stamp,
                           struct hfi_taking *taking)
{
    struct hfi_acquire_params params = hfi_entry_acquire_params(&lock->entry);
    const struct hfi_action native = step->at[0];
    HFI_CHECK(step->count == 1 && native.kind == HFI_SEND_NATIVE && native.fresh);
    step->count = 0;
    if (!fresh_token(lock)) {
        hfi_lock_note_no_random(lock);
        not_sent(lock, &native, HF_INTERNAL, step->now);
        return false;
    }
    hfi_lock_may_live(lock, params.ttl_ms);
    lock->last_chance_us = not_after_us;
    lock->there = lock->in_doubt = true; /* until the answer: it may ride another lane than this name's release (P4) */
    *taking = (struct hfi_taking){&lock->keys, lock->token, params.ttl_ms};
    hfi_entry_sent(&lock->entry, &params, stamp);
    hfi_lock_perform(lock, step, NULL);
    return true;
}

void hfi_lock_answered_together(struct hfi_lock *lock, const struct hfi_command *command, struct hfi_token token,
                                int64_t not_after_us, const struct hfi_answer *answer, int64_t rtt_ns)
{
    struct hfi_step step;
    int64_t now = hfi_lock_enter(lock);
    hfi_step_init(&step, now, rtt_ns);
    if (hfi_token_is_same(lock->token, token) && lock->entry.remote != HFI_NOTHING) {
        lock->there = answer->there;
        lock->in_doubt = answer->in_doubt;
        if (command != NULL)
            hfi_lock_note_trouble(lock, command, answer->kind);
        hfi_entry_answered(&lock->entry, answer, &step);
        hfi_lock_perform(lock, &step, NULL);
    } else if (answer->in_doubt) {
        hfi_retire_again(lock, token, true, not_after_us, now);
    } else {
        hfi_retire_answered_elsewhere(lock, token, answer->there, now);
    }
    hfi_lock_leave(lock);
}

static HFI_RARE void send_more(struct hfi_lock *lock, bool floor_first, int64_t now)
{
    hf_client *client = lock->client;
    int64_t ttl_ms = hfi_entry_question_ttl_ms(&lock->entry, now);
    if (floor_first)
        hfi_server_time_floor(client, lock->lane, 0, now);
    struct hfi_command *command = hfi_wire_more(&client->identity, &lock->keys, lock->token, ttl_ms, MORE_FENCES);
    if (!list(lock, command, got_fences, now)) {
        struct hfi_step step;
        hfi_step_init(&step, now, 0);
        hfi_entry_fences(&lock->entry, 0, 0, false, &step);
        hfi_lock_perform(lock, &step, NULL);
    }
}

/* False: no memory, the waiter is refused. */
static bool hand_over(struct hfi_lock *lock, struct hfi_acquirer *acquirer, int64_t now)
{
    struct hfi_waiter *waiter = &acquirer->waiter;
    hf_lease *lease = acquirer->lease;
    if (lease == NULL)
        lease = hfi_handle_new(lock->client, acquirer->options, acquirer->owner);
    if (lease != NULL && !hfi_event_sink_attach(lease, acquirer->options, acquirer->thread, acquirer->tid)) {
        hfi_handle_drop(lease, 2);
        lease = acquirer->lease = NULL;
    }
    if (lease == NULL) {
        waiter->verdict = HFI_REFUSED;
        waiter->status = HF_NOMEM;
        return false;
    }
    free(lock->trouble); /* of an earlier acquire */
    lock->trouble = NULL;
    acquirer->lease = lease;
    lease->lock = lock;
    lease->permits = (uint16_t)waiter->permits;
    hfi_handle_join(lock, lease);
    hfi_handle_begin(lease, waiter->end, waiter->fence, lock->entry.held.times.hold_end, now);
    if (lease->sink != NULL && lease->sink->label != NULL && lock->keys.use == HFI_MUTEX)
        hfi_announce_hold(lock, now);
    return true;
}

/* Releases a lease for which there was no handle. */
static HFI_RARE void take_back(struct hfi_lock *lock, int32_t permits, int64_t now)
{
    struct hfi_step step;
    hfi_step_init(&step, now, 0);
    if (!hfi_entry_release(&lock->entry, permits, true, &step))
        hfi_entry_lost(&lock->entry, HF_REASON_EXPIRED, &step);
    hfi_lock_perform(lock, &step, NULL);
}

static void wake_decided(struct hfi_lock *lock, struct hfi_step *step)
{
    int32_t without_handle = 0; /* permits, of a lock one for each waiter */
    while (!hfi_list_is_empty(&step->woken)) {
        struct hfi_waiter *waiter = hfi_container_of(step->woken.next, struct hfi_waiter, link);
        struct hfi_acquirer *acquirer = hfi_container_of(waiter, struct hfi_acquirer, waiter);
        hfi_list_remove(&waiter->link);
        if (waiter->verdict == HFI_GOT_LEASE)
            without_handle += hand_over(lock, acquirer, step->now) ? 0 : waiter->permits;
        HFI_PERTURB("lease-given-to-wake");
        if (acquirer->wake != NULL)
            acquirer->wake(acquirer);
    }
    if (without_handle > 0)
        take_back(lock, without_handle, step->now);
}

static HFI_RARE void tell_holders(struct hfi_lock *lock, const struct hfi_action *action)
{
    bool over = action->event == HF_EVENT_LOST;
    for (hf_lease *holder = lock->holder, *next; holder != NULL; holder = next) {
        hfi_handle_tell(holder, action->event, action->reason);
        if (over)
            hfi_handle_part(lock, holder);
        next = over ? lock->holder : hfi_handle_next(lock, holder);
        if (over)
            hfi_handle_unref(holder); /* never the last: its owner has not released it */
    }
}

/* False: a reader of one has found the lease over meanwhile. */
static bool move_ends(const struct hfi_lock *lock, int64_t end, int64_t now)
{
    bool moved = true;
    for (hf_lease *holder = lock->holder; holder != NULL; holder = hfi_handle_next(lock, holder))
        moved = hfi_handle_move_end(holder, end, now) && moved;
    return moved;
}

/* The renewal succeeded, but a reader has found the lease over meanwhile. */
static HFI_RARE void found_over(struct hfi_lock *lock, int64_t now)
{
    struct hfi_step step;
    hfi_step_init(&step, now, 0);
    hfi_entry_lost(&lock->entry, hfi_lease_over(&lock->entry.held.times, now), &step);
    hfi_lock_perform(lock, &step, NULL);
}

/* Counts an entry that keeps asking: in a queue, or kept out of it by the server's trouble. */
static void count_queued(struct hfi_lock *lock)
{
    const struct hfi_entry *entry = &lock->entry;
    bool in_trouble = entry->trouble != HF_OK && entry->remote != HFI_HELD && !hfi_list_is_empty(&entry->waiters);
    bool queued = entry->remote == HFI_QUEUED || in_trouble;
    if (queued == lock->queued)
        return;
    lock->queued = queued;
    (void)atomic_fetch_add_explicit(&lock->client->rules[lock->keys.use].queued, queued ? 1 : (uint64_t)-1, memory_order_relaxed);
}

void hfi_lock_perform(struct hfi_lock *lock, struct hfi_step *step, struct hfi_releaser *releaser)
{
    HFI_ASSERT_HELD(lock->mutex);
    hfi_entry_check(&lock->entry);
    for (int i = 0; i < step->count; i++) {
        const struct hfi_action *action = &step->at[i];
        switch (action->kind) {
        case HFI_SEND_NATIVE:
        case HFI_SEND_WAIT:
        case HFI_SEND_TRY:
            send_acquire(lock, action, step->now);
            break;
        case HFI_SEND_MORE:
        case HFI_SEND_FLOOR:
            send_more(lock, action->kind == HFI_SEND_FLOOR, step->now);
            break;
        case HFI_GIVE_BACK:
            hfi_retire_begin(lock, step->now, lock->entry.contended, releaser);
            hfi_announce_end(lock, step->now);
            break;
        case HFI_RETIRE_TOKEN:
            hfi_retire_begin(lock, step->now, false, NULL);
            hfi_announce_end(lock, step->now);
            break;
        case HFI_SHRINK:
            hfi_lock_shrink(lock, action->keep, releaser, step->now);
            break;
        case HFI_MOVE_END:
            if (!move_ends(lock, action->end, step->now))
                found_over(lock, step->now);
            break;
        case HFI_LET_IN:
            hfi_entry_let_in(&lock->entry, step);
            break;
        case HFI_TELL:
            tell_holders(lock, action);
            break;
        case HFI_EXPLAIN_LATE:
            hfi_lock_note_late_grant(lock);
            break;
        case HFI_WATCH_FOREIGN:
            hfi_key_events_watch(lock, action->fresh);
            hfi_tracking_arm(lock, step->now);
            break;
        }
    }
    if (step->successor != NULL)
        hfi_park_wake(&hfi_container_of(step->successor, struct hfi_acquirer, waiter)->park);
    wake_decided(lock, step);
    if (lock->keys.use == HFI_SEMAPHORE)
        lock->client->lock_ops->look(hfi_lock_home(lock), step->now);
    count_queued(lock);
    if (lock->shared != NULL)
        lock->client->fetch_ops->look(lock);
    hfi_lock_set_timer(lock);
}
