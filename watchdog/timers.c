/* SPDX-License-Identifier: MIT */
/*
 * timers.c - see timers.h. `prev` is the older sibling, for a first child the parent, for the root the root itself.
 *
 * Of the timers that are due at the same time only one is in the heap. The others are in a list behind it: `same` is
 * the first of them, they are linked by next and prev, and each is its own `child`. When the timer in the heap goes,
 * the first of the list takes over its place and its children: a heap of ten thousand names is one of twenty points in
 * time.
 */
#include "watchdog/timers.h"

#include <stddef.h>

/* Merges two roots: the later one becomes the first child of the sooner one. The caller sets `prev` and `next` of
 * the root that is returned. */
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

/* Merges a list of siblings into one tree: in pairs from the left, then the pairs from the right. Melding one by one
 * would not keep later takes at O(log n). */
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

static bool is_behind(const struct hfi_timer *timer)
{
    return timer->child == timer;
}

static struct hfi_timer **known_at(struct hfi_timers *timers, int64_t at_ns)
{
    return &timers->known[(uint64_t)at_ns * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

static void put_behind(struct hfi_timer *first, struct hfi_timer *timer)
{
    timer->child = timer;
    timer->prev = first;
    timer->next = first->same;
    if (timer->next != NULL)
        timer->next->prev = timer;
    first->same = timer;
}

static void leave_line(struct hfi_timer *timer)
{
    if (timer->prev->same == timer)
        timer->prev->same = timer->next;
    else
        timer->prev->next = timer->next;
    if (timer->next != NULL)
        timer->next->prev = timer->prev;
}

/* The first timer behind it takes its place in the heap. */
static struct hfi_timer *give_place(struct hfi_timers *timers, struct hfi_timer *timer)
{
    struct hfi_timer *heir = timer->same;
    heir->same = heir->next; /* heir->next->prev is heir already */
    heir->child = timer->child;
    if (heir->child != NULL)
        heir->child->prev = heir;
    heir->next = timer->next;
    if (heir->next != NULL)
        heir->next->prev = heir;
    heir->prev = timer->prev;
    if (timer->prev == timer) {
        heir->prev = heir;
        timers->soonest = heir;
    } else if (timer->prev->child == timer) {
        timer->prev->child = heir;
    } else {
        timer->prev->next = heir;
    }
    return heir;
}

static void leave_heap(struct hfi_timers *timers, struct hfi_timer *timer)
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
}

static void take_out(struct hfi_timers *timers, struct hfi_timer *timer)
{
    struct hfi_timer **known = known_at(timers, timer->at_ns), *heir = NULL;
    if (is_behind(timer))
        leave_line(timer);
    else if (timer->same != NULL)
        heir = give_place(timers, timer);
    else
        leave_heap(timers, timer);
    if (*known == timer)
        *known = heir;
    timer->child = timer->next = timer->prev = timer->same = NULL;
}

bool hfi_timers_set(struct hfi_timers *timers, struct hfi_timer *timer, int64_t at_ns)
{
    bool armed = hfi_timer_is_armed(timer);
    if (armed)
        take_out(timers, timer);
    timer->at_ns = at_ns;
    if (at_ns == HFI_NEVER)
        return armed;
    struct hfi_timer **known = known_at(timers, at_ns);
    if (*known != NULL && (*known)->at_ns == at_ns) {
        put_behind(*known, timer);
    } else {
        set_root(timers, timers->soonest != NULL ? meld(timers->soonest, timer) : timer);
        *known = timer;
    }
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
