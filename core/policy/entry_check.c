/* SPDX-License-Identifier: MIT */
/* entry_check.c - builds for development only: which state of an entry may follow which, and what is true of an entry
 * between two events. */
#include "core/policy/entry_steps.h"

#ifdef HFI_CHECKED

/* The states by number: those of hfi_remote, but instead of HELD those of hfi_holding. */
#define NUMBER(remote, holding) ((int)(remote) + (int)(holding))

enum {
    NOTHING = 1 << HFI_NOTHING,
    ASKING = 1 << HFI_ASKING,
    QUEUED = 1 << HFI_QUEUED,
    BY_THREAD = 1 << NUMBER(HFI_HELD, HFI_BY_THREAD),
    OFFERED = 1 << NUMBER(HFI_HELD, HFI_OFFERED),
    LINGERING = 1 << NUMBER(HFI_HELD, HFI_LINGERING),
    AWAITING_FENCES = 1 << NUMBER(HFI_HELD, HFI_AWAITING_FENCES)
};

bool hfi_step_may_become(const struct hfi_entry *entry, enum hfi_remote remote, enum hfi_holding holding)
{
    static const uint8_t next[] = {
        [HFI_NOTHING] = ASKING,
        [HFI_ASKING] = QUEUED | BY_THREAD | AWAITING_FENCES | NOTHING,
        [HFI_QUEUED] = QUEUED | BY_THREAD | AWAITING_FENCES | NOTHING,
        [NUMBER(HFI_HELD, HFI_BY_THREAD)] = BY_THREAD | OFFERED | LINGERING | AWAITING_FENCES | NOTHING,
        [NUMBER(HFI_HELD, HFI_OFFERED)] = BY_THREAD | OFFERED | AWAITING_FENCES | NOTHING,
        [NUMBER(HFI_HELD, HFI_LINGERING)] = BY_THREAD | AWAITING_FENCES | NOTHING,
        [NUMBER(HFI_HELD, HFI_AWAITING_FENCES)] = BY_THREAD | NOTHING,
    };
    return (remote == HFI_HELD) == (holding != HFI_NOT_HELD) &&
           (next[NUMBER(entry->remote, entry->holding)] >> NUMBER(remote, holding) & 1) != 0;
}

void hfi_entry_check(const struct hfi_entry *entry)
{
    bool is_held = entry->remote == HFI_HELD, waits = !hfi_list_is_empty(&entry->waiters);
    HFI_CHECK(is_held == (entry->holding != HFI_NOT_HELD));
    const struct hfi_waiter *head = hfi_step_head_of(entry);
    bool is_called = waits && hfi_waiter_is_successor(head);
    HFI_CHECK(!is_called || (is_held && !head->threadless));
    HFI_CHECK(!waits || hfi_list_last(&entry->waiters, struct hfi_waiter, link) == head ||
              !hfi_waiter_is_successor(hfi_list_last(&entry->waiters, struct hfi_waiter, link)));
    HFI_CHECK(entry->holding != HFI_OFFERED || is_called);
    HFI_CHECK(entry->holding != HFI_BY_THREAD || entry->held.inside == 1 || (entry->rules->shares && entry->held.inside > 0));
    HFI_CHECK(entry->holding != HFI_LINGERING || !waits);
    HFI_CHECK(entry->holding != HFI_AWAITING_FENCES || entry->rules->shares || !hfi_step_has_fences(entry));
    HFI_CHECK(entry->remote != HFI_NOTHING || !hfi_entry_awaits_answer(entry));
    HFI_CHECK(is_held || waits || entry->remote == HFI_NOTHING || (hfi_entry_is_unclaimed(entry) && hfi_entry_awaits_answer(entry)));
    HFI_CHECK(is_held || !waits || hfi_entry_awaits_answer(entry) || entry->ask_at != HFI_NEVER);
}

#endif
