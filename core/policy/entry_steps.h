/* SPDX-License-Identifier: MIT */
/* entry_steps.h - the moves that entry.c (asking and waiting), entry_held.c (holding) and entry_pace.c (when to ask next)
 * make for each other. */
#ifndef HFI_ENTRY_STEPS_H
#define HFI_ENTRY_STEPS_H

#include "base/check.h"
#include "core/policy/entry.h"

/* Something happens at `now`. What is decided here compares times of several happenings, so they come in their order. */
static inline void hfi_step_at(struct hfi_entry *entry, int64_t now)
{
#ifdef HFI_CHECKED
    HFI_CHECK(now >= entry->latest);
    entry->latest = now;
#else
    (void)entry;
    (void)now;
#endif
}

/* entry.c */
struct hfi_action *hfi_step_act(struct hfi_actions *actions, enum hfi_action_kind kind);
struct hfi_waiter *hfi_step_head_of(const struct hfi_entry *entry); /* the oldest waiter; NULL: nobody waits */
void hfi_step_decide(struct hfi_waiter *waiter, enum hfi_verdict verdict, hf_status status, struct hfi_actions *actions);
void hfi_step_unwatch(struct hfi_entry *entry, struct hfi_actions *actions);
void hfi_step_forget_token(struct hfi_entry *entry, struct hfi_actions *actions);
void hfi_step_ask(struct hfi_entry *entry, struct hfi_actions *actions);
void hfi_step_retire_token(struct hfi_entry *entry, struct hfi_actions *actions);
/* Another token for the same place in the remote queue (P6). giving_up: HFI_GIVE_BACK or HFI_RETIRE_TOKEN. */
void hfi_step_ask_anew(struct hfi_entry *entry, enum hfi_action_kind giving_up, int64_t now, struct hfi_actions *actions);
void hfi_step_give_back(struct hfi_entry *entry, struct hfi_actions *actions);

/* entry_pace.c */
int64_t hfi_step_recheck_ms(const struct hfi_entry *entry, int64_t lease_ms); /* R, as a question is to count by it */
/* When the next question is due: the record is fresh for three of the R that the last one counted by, or, if that one has
 * changed nothing, the one before. */
int64_t hfi_step_period_ms(const struct hfi_entry *entry);
void hfi_step_ask_in(struct hfi_entry *entry, int64_t now, int64_t ms);
void hfi_step_ask_later(struct hfi_entry *entry, int64_t now); /* after R */
/* With the others that are due by then. A round trip sooner, because there may be a question to follow. */
void hfi_step_ask_together_in(struct hfi_entry *entry, int64_t now, int64_t ms, int64_t rtt_ns);
/* When to tell the holder again that we wait. One that did not hear it may be subscribing just now; if it still hears
 * nothing after a while, it is dead or has no messages. */
int64_t hfi_step_wish_again_ms(struct hfi_entry *entry, bool unheard, int64_t period_ms);
/* When the next early question may be asked, that is wanted at `at`. */
int64_t hfi_step_next_early(const struct hfi_entry *entry, int64_t at);

/* entry_held.c */
void hfi_step_hold(struct hfi_entry *entry, int64_t end, int64_t good_for, int64_t fence, bool good, int64_t now,
                   int64_t rtt_ns, struct hfi_actions *actions);
void hfi_step_pass(struct hfi_entry *entry, struct hfi_waiter *waiter, int64_t now, struct hfi_actions *actions);
void hfi_step_wake_successor(struct hfi_entry *entry, int64_t now, struct hfi_actions *actions); /* the oldest waiter */
bool hfi_step_has_fences(const struct hfi_entry *entry);
bool hfi_step_is_free(const struct hfi_entry *entry); /* held for this process, by none of its threads */
/* More is left of it than this thread wants for stopping. */
bool hfi_step_suits(const struct hfi_entry *entry, const struct hfi_waiter *waiter, int64_t now);
void hfi_step_confirmed(struct hfi_entry *entry, int64_t sent_at, int64_t good_for, int64_t now, int64_t rtt_ns,
                        struct hfi_actions *actions);

#endif
