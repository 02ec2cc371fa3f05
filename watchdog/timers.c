/* SPDX-License-Identifier: MIT */
/* timers.c - see timers.h. `prev` is the older sibling, for a first child the parent, for the root itself. */
#include "watchdog/timers.h"

#include <stddef.h>

/* Two roots become one: the later one is the first child of the sooner. `prev` and `next` of the result are
 * the caller's to set. */
static struct hfi_timer *meld(struct hfi_timer *a, struct hfi_timer *b)
{
    if (b->at_ns < a->at_ns) {
        struct hfi_timer *sooner = b;
        b = a;
        a = sooner;
    }
    b->next = a->child;
    if (b->next != NULL)
        b->next->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* A list of siblings becomes one tree: melded in pairs from the left, then the pairs from the right. That,
 * and not melding one by one, is what keeps later takes at O(log n). */
static struct hfi_timer *meld_siblings(struct hfi_timer *first)
{
    struct hfi_timer *pairs = NULL; /* linked by next, the last pair first */
    while (first != NULL) {
        struct hfi_timer *second = first->next, *rest = NULL;
        if (second != NULL) {
            rest = second->next;
            first = meld(first, second);
        }
        first->next = pairs;
        pairs = first;
        first = rest;
    }
    while (pairs != NULL && pairs->next != NULL) {
        struct hfi_timer *rest = pairs->next->next;
        pairs = meld(pairs, pairs->next);
        pairs->next = rest;
    }
    return pairs;
}

static void set_root(struct hfi_timers *timers, struct hfi_timer *root)
{
    timers->soonest = root;
    if (root != NULL) {
        root->next = NULL;
        root->prev = root;
    }
}

static void take_out(struct hfi_timers *timers, struct hfi_timer *timer)
{
    struct hfi_timer *orphans = meld_siblings(timer->child);
    if (timer->prev == timer) {
        set_root(timers, orphans);
    } else {
        if (timer->prev->child == timer)
            timer->prev->child = timer->next;
        else
            timer->prev->next = timer->next;
        if (timer->next != NULL)
            timer->next->prev = timer->prev;
        if (orphans != NULL)
            set_root(timers, meld(timers->soonest, orphans));
    }
    timer->child = timer->next = timer->prev = NULL;
}

bool hfi_timers_set(struct hfi_timers *timers, struct hfi_timer *timer, int64_t at_ns)
{
    bool armed = hfi_timer_is_armed(timer);
    if (armed)
        take_out(timers, timer);
    timer->at_ns = at_ns;
    if (at_ns != HFI_NEVER)
        set_root(timers, timers->soonest != NULL ? meld(timers->soonest, timer) : timer);
    return armed;
}

struct hfi_timer *hfi_timers_take(struct hfi_timers *timers, int64_t now_ns)
{
    struct hfi_timer *timer = timers->soonest;
    if (timer == NULL || timer->at_ns > now_ns)
        return NULL;
    take_out(timers, timer);
    return timer;
}
