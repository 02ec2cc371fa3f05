/* SPDX-License-Identifier: MIT */
/* entry_stand.c - see entry_stand.h. */
#include "tests/support/entry_stand.h"
#include "core/policy/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const kinds[] = {
    [HFI_SEND_NATIVE] = "native",  [HFI_SEND_WAIT] = "wait",     [HFI_SEND_TRY] = "try",
    [HFI_SEND_MORE] = "more",      [HFI_SEND_FLOOR] = "floor",
    [HFI_GIVE_BACK] = "give-back", [HFI_RETIRE_TOKEN] = "close", [HFI_MOVE_END] = "end"};
static const char *const reasons[] = {"NONE",    "UNCONFIRMED", "ENDING", "EXPIRED", "GONE",  "TAKEN",
                                      "REVOKED", "MAX_HOLD",    "CLOCK",  "FORKED",  "CLOSED"};

static void say(struct hft_stand *stand, const char *word, const char *more)
{
    size_t at = strlen(stand->did);
    (void)snprintf(stand->did + at, sizeof stand->did - at, "%s%s%s", at > 0 ? " " : "", word, more);
}

static void say_action(struct hft_stand *stand, const struct hfi_action *action)
{
    char shrink[24];
    switch (action->kind) {
    case HFI_SEND_NATIVE:
    case HFI_SEND_WAIT:
    case HFI_SEND_TRY:
        stand->asked_at = stand->now;
        stand->asking = hfi_entry_acquire_params(&stand->entry);
        hfi_entry_sent(&stand->entry, &stand->asking, stand->now);
        say(stand, kinds[action->kind], action->fresh ? "!" : "");
        break;
    case HFI_TELL:
        if (action->event == HF_EVENT_SAFE_AGAIN)
            say(stand, "safe-again", "");
        else
            say(stand, action->event == HF_EVENT_LOST ? "lost:" : "at-risk:", reasons[action->reason]);
        break;
    case HFI_EXPLAIN_LATE:
        say(stand, "explain-late", "");
        break;
    case HFI_WATCH_FOREIGN:
        say(stand, action->fresh ? "watch" : "unwatch", "");
        break;
    case HFI_LET_IN:
        break; /* see perform */
    case HFI_SHRINK:
        (void)snprintf(shrink, sizeof shrink, "shrink:%d", action->keep);
        say(stand, shrink, "");
        break;
    case HFI_SEND_MORE:
    case HFI_SEND_FLOOR:
    case HFI_GIVE_BACK:
    case HFI_RETIRE_TOKEN:
    case HFI_MOVE_END:
        say(stand, kinds[action->kind], "");
        break;
    }
}

static void say_batch(struct hft_stand *stand, enum hfi_batch batch)
{
    switch (batch) {
    case HFI_BATCH_RECHECK:
        stand->asked_at = stand->now;
        stand->asking = hfi_entry_recheck_params(&stand->entry, stand->now);
        say(stand, "re-check", "");
        break;
    case HFI_BATCH_RENEWAL: /* its stamp is the tick's, which was read before the mutex was had */
        stand->sent_at = stand->now - HFI_MS / 20;
        (void)hfi_entry_renew_params(&stand->entry, stand->sent_at);
        say(stand, "renew", "");
        break;
    case HFI_BATCH_NOTHING:
        break;
    }
}

/* What the shell does, without a server. */
static const char *perform(struct hft_stand *stand, enum hfi_batch batch, struct hfi_step *step)
{
    stand->did[0] = 0;
    hfi_entry_check(&stand->entry);
    assert_true(step->count < HFI_ACTIONS_MOST);
    say_batch(stand, batch);
    for (int i = 0; i < step->count; i++) {
        say_action(stand, &step->at[i]);
        if (step->at[i].kind == HFI_LET_IN)
            hfi_entry_let_in(&stand->entry, step);
    }
    if (step->successor != NULL)
        say(stand, "call:", hfi_container_of(step->successor, struct hft_thread, waiter)->name);
    while (!hfi_list_is_empty(&step->woken)) {
        struct hft_thread *thread = hfi_container_of(step->woken.next, struct hft_thread, waiter.link);
        hfi_list_remove(&thread->waiter.link);
        say(stand, thread->name, "=");
        const char *verdict = thread->waiter.verdict == HFI_GOT_LEASE ? "lease"
                              : thread->waiter.verdict == HFI_GOT_VALUE
                                  ? "value"
                                  : hf_status_name(thread->waiter.status) + 3;
        size_t at = strlen(stand->did);
        (void)snprintf(stand->did + at, sizeof stand->did - at, "%s", verdict);
    }
    return stand->did;
}

void hft_stand_init(struct hft_stand *stand)
{
    memset(stand, 0, sizeof *stand);
    stand->rules.guard_ms = 250;
    stand->rules.native = true;
    stand->rules.rides_out = true;
    stand->now = INT64_C(1000000) * HFI_MS;
    stand->rtt = HFI_MS / 10;
    stand->counter = HFT_FENCE;
    hfi_entry_init(&stand->entry, &stand->rules, 7);
}

struct hft_thread hft_thread(const char *name)
{
    return (struct hft_thread){.name = name, .waiter = {.lease_ms = 10000, .stop_ms = 1000, .permits = 1}};
}

struct hft_thread hft_try(const char *name)
{
    struct hft_thread thread = hft_thread(name);
    thread.waiter.once = true;
    return thread;
}

#define DO(call)                                                                                             \
    struct hfi_step step;                                                                                    \
    hfi_step_init(&step, stand->now, stand->rtt);                                                            \
    call;                                                                                                    \
    return perform(stand, HFI_BATCH_NOTHING, &step)

const char *hft_arrive(struct hft_stand *stand, struct hft_thread *thread)
{
    DO(hfi_entry_arrive(&stand->entry, &thread->waiter, &step));
}

const char *hft_leave(struct hft_stand *stand, struct hft_thread *thread)
{
    DO(hfi_entry_leave(&stand->entry, &thread->waiter, &step));
}

const char *hft_come(struct hft_stand *stand, struct hft_thread *thread)
{
    DO(hfi_entry_successor_runs(&stand->entry, &thread->waiter, &step));
}

const char *hft_answer(struct hft_stand *stand, struct hfi_answer answer)
{
    if (answer.sent_at == 0)
        answer.sent_at = stand->asked_at;
    if (answer.kind == HFI_GRANTED && answer.fence == 0) {
        answer.fence = stand->counter += HFI_FENCE_BLOCK;
        answer.fence_is_good = true;
    }
    DO(hfi_entry_answered(&stand->entry, &answer, &step));
}

const char *hft_handed(struct hft_stand *stand, int64_t echo)
{
    stand->counter += HFI_FENCE_BLOCK;
    return hft_handed_fence(stand, echo, stand->counter, true);
}

const char *hft_handed_fence(struct hft_stand *stand, int64_t echo, int64_t fence, bool good)
{
    DO(hfi_entry_granted(&stand->entry, echo, fence, good, &step));
}

const char *hft_fences(struct hft_stand *stand, int64_t first, int64_t count, bool good)
{
    DO(hfi_entry_fences(&stand->entry, first, count, good, &step));
}

const char *hft_no_counter(struct hft_stand *stand)
{
    DO(hfi_entry_no_counter(&stand->entry, &step));
}

const char *hft_wanted(struct hft_stand *stand)
{
    DO(hfi_entry_remote_waiter(&stand->entry, &step));
}

const char *hft_wanted_beside(struct hft_stand *stand)
{
    DO(hfi_entry_remote_waiter_beside(&stand->entry, &step));
}

const char *hft_unwanted(struct hft_stand *stand, int64_t sent_at)
{
    DO(hfi_entry_no_remote_waiter(&stand->entry, sent_at, &step));
}

const char *hft_doubted(struct hft_stand *stand)
{
    struct hfi_step step;
    hfi_step_init(&step, stand->now, stand->rtt);
    bool may_be_held = hfi_entry_token_questioned(&stand->entry, &step);
    (void)perform(stand, HFI_BATCH_NOTHING, &step);
    if (may_be_held)
        say(stand, "held", "");
    return stand->did;
}

const char *hft_missed(struct hft_stand *stand)
{
    DO(hfi_entry_missed(&stand->entry, &step));
}

const char *hft_nudged(struct hft_stand *stand)
{
    DO(hfi_entry_requery(&stand->entry, &step));
}

const char *hft_release(struct hft_stand *stand, bool quietly)
{
    struct hfi_step step;
    char words[400];
    hfi_step_init(&step, stand->now, stand->rtt);
    if (hfi_entry_release(&stand->entry, 1, quietly, &step))
        return perform(stand, HFI_BATCH_NOTHING, &step);
    (void)snprintf(words, sizeof words, "refused: %s", perform(stand, HFI_BATCH_NOTHING, &step));
    (void)snprintf(stand->did, sizeof stand->did, "%s", words);
    return stand->did;
}

const char *hft_filled(struct hft_stand *stand, bool give_it_back)
{
    DO(hfi_entry_filled(&stand->entry, give_it_back, &step));
}

const char *hft_renewed(struct hft_stand *stand, int64_t sent_at)
{
    DO(hfi_entry_renewed(&stand->entry, sent_at, &step));
}

const char *hft_lost(struct hft_stand *stand, hf_reason reason)
{
    DO(hfi_entry_lost(&stand->entry, reason, &step));
}

const char *hft_refuse_all(struct hft_stand *stand, hf_status status)
{
    DO(hfi_entry_refuse_all(&stand->entry, status, &step));
}

const char *hft_look(struct hft_stand *stand)
{
    struct hfi_step step;
    hfi_step_init(&step, stand->now, stand->rtt);
    enum hfi_batch batch = hfi_entry_on_timer(&stand->entry, &step);
    return perform(stand, batch, &step);
}

const char *hft_look_next(struct hft_stand *stand)
{
    int64_t next = hfi_entry_next(&stand->entry);
    assert_true(next != HFI_NEVER);
    if (next > stand->now)
        stand->now = next;
    return hft_look(stand);
}

void hft_pass_ms(struct hft_stand *stand, int64_t ms)
{
    stand->now += ms * HFI_MS;
}

void hft_hold(struct hft_stand *stand, struct hft_thread *thread)
{
    assert_string_equal(hft_arrive(stand, thread), "native!");
    (void)hft_answer(stand, (struct hfi_answer){.kind = HFI_GRANTED, .native = true});
    assert_int_equal(thread->waiter.verdict, HFI_GOT_LEASE);
}

void hft_queue(struct hft_stand *stand, struct hft_thread *thread, int64_t position)
{
    assert_string_equal(hft_arrive(stand, thread), "native!");
    assert_string_equal(hft_answer(stand, (struct hfi_answer){.kind = HFI_BUSY, .native = true}), "wait");
    (void)hft_answer(stand, (struct hfi_answer){.kind = HFI_IN_QUEUE,
                                                .ours = true,
                                                .left_ms = 9000,
                                                .position = position,
                                                .ticket = 4711 + position});
    assert_int_equal(stand->entry.remote, HFI_QUEUED);
}
