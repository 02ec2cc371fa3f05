/* SPDX-License-Identifier: MIT */
/* entry_steps.h - the steps that entry.c (waiting here), entry_queue.c (asking the server), entry_held.c (holding) and
 * entry_pace.c (when to ask next) call in each other. */
#ifndef HFI_ENTRY_STEPS_H
#define HFI_ENTRY_STEPS_H

#include "base/check.h"
#include "core/policy/entry.h"

/* An event happens. Decisions compare the times of several events, so events must come in order of time. */
static inline void hfi_step_at(struct hfi_entry *entry, const struct hfi_step *step)
{
#ifdef HFI_CHECKED
    HFI_CHECK(step->now >= entry->latest);
    entry->latest = step->now;
#else
    (void)entry;
    (void)step;
#endif
}

/* The one door to the entry's state: entry_check.c says which may follow which. */
#ifdef HFI_CHECKED
bool hfi_step_may_become(const struct hfi_entry *entry, enum hfi_remote remote, enum hfi_holding holding);
#endif
static inline void hfi_step_become(struct hfi_entry *entry, enum hfi_remote remote, enum hfi_holding holding)
{
    HFI_CHECK(hfi_step_may_become(entry, remote, holding));
    entry->remote = remote;
    entry->holding = holding;
}

/* entry.c */
struct hfi_action *hfi_step_act(struct hfi_step *step, enum hfi_action_kind kind);
struct hfi_waiter *hfi_step_head_of(const struct hfi_entry *entry); /* the oldest waiter; NULL: none */
void hfi_step_decide(struct hfi_waiter *waiter, enum hfi_verdict verdict, hf_status status, struct hfi_step *step);
void hfi_step_forget_token(struct hfi_entry *entry, struct hfi_step *step);
void hfi_step_retire_token(struct hfi_entry *entry, struct hfi_step *step);
void hfi_step_give_back(struct hfi_entry *entry, struct hfi_step *step);

/* entry_permits.c */
void hfi_step_yield(struct hfi_entry *entry, struct hfi_step *step); /* what no thread has goes back */
void hfi_step_shrink_again(struct hfi_entry *entry, struct hfi_step *step); /* if that is owed */
int64_t hfi_step_idle_end(const struct hfi_entry *entry); /* when it does so by itself; NEVER: threads have all of it */

/* entry_queue.c */
void hfi_step_ask(struct hfi_entry *entry, struct hfi_step *step);
void hfi_step_recheck(struct hfi_entry *entry); /* ask again, batched with other names */
/* Replace the token and keep the place in the remote queue (P6). giving_up, for the old token: HFI_GIVE_BACK or
 * HFI_RETIRE_TOKEN. */
void hfi_step_ask_anew(struct hfi_entry *entry, enum hfi_action_kind giving_up, struct hfi_step *step);
void hfi_step_unwatch(struct hfi_entry *entry, struct hfi_step *step);

/* entry_pace.c */
int64_t hfi_step_recheck_ms(const struct hfi_entry *entry, int64_t lease_ms); /* R for a question sent now */
/* In how many ms the next question is due: the shortest of today's R, the R of the last question and the R of the last
 * record. A record is fresh for 3 R of the question that wrote it, and the last question may have written none. */
int64_t hfi_step_period_ms(const struct hfi_entry *entry);
void hfi_step_ask_in(struct hfi_entry *entry, int64_t now, int64_t ms);
void hfi_step_ask_later(struct hfi_entry *entry, int64_t now); /* after R */
/* Ask on the grid, batched with the other names that are due then; a round trip before `ms` have passed, as an acquire
 * may have to follow. */
void hfi_step_ask_together_in(struct hfi_entry *entry, int64_t now, int64_t ms, int64_t rtt_ns);
void hfi_step_ask_together_soon(struct hfi_entry *entry, int64_t now);
/* In how many ms to publish the message R to the holder again. A holder that did not receive R (`unheard`) may be
 * subscribing just now, so R is repeated soon at first. A holder that still does not receive it is dead or has no
 * pub/sub: then R follows once in period_ms. */
int64_t hfi_step_wish_again_ms(struct hfi_entry *entry, bool unheard, int64_t period_ms);
/* When to ask once more. `granted`: it was answered, but that does not count: the server goes on to say so, perhaps for long. */
int64_t hfi_step_after_no_answer(struct hfi_entry *entry, bool granted, int64_t now);
/* When an early question that is wanted at `at` may be asked (pace.h). */
int64_t hfi_step_next_early(const struct hfi_entry *entry, int64_t at);
void hfi_step_pay_early(struct hfi_entry *entry, int64_t now);

/* entry_held.c */
void hfi_step_hold(struct hfi_entry *entry, int64_t end, int64_t good_for, const struct hfi_answer *grant, struct hfi_step *step);
void hfi_step_pass(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step);
void hfi_step_join(struct hfi_entry *entry, struct hfi_waiter *waiter, struct hfi_step *step); /* rules->shares */
void hfi_step_wake_successor(struct hfi_entry *entry, struct hfi_step *step); /* the oldest waiter */
bool hfi_step_may_join(const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now);
bool hfi_step_has_fences(const struct hfi_entry *entry);
int64_t hfi_step_door_at(const struct hfi_entry *entry); /* when to ask whether the readers here still have to wait */
bool hfi_step_is_free(const struct hfi_entry *entry); /* held by this process, but by none of its threads */
/* True: more of the lease is left than this thread needs to stop. */
bool hfi_step_suits(const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now);
void hfi_step_confirmed(struct hfi_entry *entry, int64_t sent_at, int64_t good_for, struct hfi_step *step);

#endif
