/* SPDX-License-Identifier: MIT */
/* list.h - an intrusive circular list. The caller serialises. */
#ifndef HFI_LIST_H
#define HFI_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct hfi_list {
    struct hfi_list *next, *prev; /* of a head or of a link; a link that is in no list points to itself */
};

#define hfi_container_of(link, type, member) ((type *)(void *)((char *)(link) - offsetof(type, member)))

/* Of a list that is not empty. */
#define hfi_list_first(list, type, member) hfi_container_of((list)->next, type, member)
#define hfi_list_last(list, type, member)  hfi_container_of((list)->prev, type, member)

static inline void hfi_list_init(struct hfi_list *list)
{
    list->next = list->prev = list;
}

static inline bool hfi_list_is_empty(const struct hfi_list *list)
{
    return list->next == list;
}

/* Walks the list: for checks. */
static inline int hfi_list_length(const struct hfi_list *list)
{
    int length = 0;
    for (const struct hfi_list *at = list->next; at != list; at = at->next)
        length++;
    return length;
}

static inline void hfi_list_append(struct hfi_list *list, struct hfi_list *link)
{
    link->prev = list->prev;
    link->next = list;
    list->prev->next = link;
    list->prev = link;
}

static inline void hfi_list_prepend(struct hfi_list *list, struct hfi_list *link)
{
    hfi_list_append(list->next, link);
}

/* Removes the link from its list; a no-op for a link that is in none. */
static inline void hfi_list_remove(struct hfi_list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    hfi_list_init(link);
}

#endif
