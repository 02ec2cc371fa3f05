/* SPDX-License-Identifier: MIT */
/* inbox.h - many threads put nodes in, one at a time takes all of them out, oldest first. Lock-free (ck_stack). */
#ifndef HFI_INBOX_H
#define HFI_INBOX_H

#include "base/tsan.h"

#include <ck_stack.h>
#include <stdbool.h>
#include <stddef.h>

struct hfi_inbox {
    struct ck_stack stack;
};

struct hfi_inbox_node {
    struct ck_stack_entry link;
};

static inline void hfi_inbox_init(struct hfi_inbox *inbox)
{
    ck_stack_init(&inbox->stack);
}

/* Sequentially consistent: ordered after this thread's earlier atomic stores. */
static inline bool hfi_inbox_is_empty(const struct hfi_inbox *inbox)
{
    return __atomic_load_n(&inbox->stack.head, __ATOMIC_SEQ_CST) == NULL;
}

/* Any thread. The node belongs to the inbox until it is taken. It is in the inbox before any later load of this
 * thread. Not ck_stack's push, which stores the link where ThreadSanitizer can no longer be notified of it. */
static inline void hfi_inbox_put(struct hfi_inbox *inbox, struct hfi_inbox_node *node)
{
    struct ck_stack_entry *newest = ck_pr_load_ptr(&inbox->stack.head);
    do {
        node->link.next = newest;
        hfi_tsan_release(inbox);
        ck_pr_fence_release();
    } while (!ck_pr_cas_ptr_value(&inbox->stack.head, newest, &node->link, &newest));
    ck_pr_fence_atomic_load();
}

/* Takes everything put in so far, oldest first, linked by hfi_inbox_next; NULL if empty. */
static inline struct hfi_inbox_node *hfi_inbox_take(struct hfi_inbox *inbox)
{
    struct ck_stack_entry *newest = ck_stack_batch_pop_upmc(&inbox->stack), *oldest = NULL;
    hfi_tsan_acquire(inbox);
    while (newest != NULL) {
        struct ck_stack_entry *older = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = older;
    }
    return (struct hfi_inbox_node *)(void *)oldest;
}

static inline struct hfi_inbox_node *hfi_inbox_next(const struct hfi_inbox_node *node)
{
    return (struct hfi_inbox_node *)(void *)node->link.next;
}

#endif
