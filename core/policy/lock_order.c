/* SPDX-License-Identifier: MIT */
/* lock_order.c - see lock_order.h. */
#include "core/policy/lock_order.h"
#include "base/check.h"
#include "base/hash.h"

#include <string.h>

size_t hfi_order_fold(const char *name, size_t size, char *text)
{
    size_t at = 0;
    bool in_number = false;
    for (size_t i = 0; i < size; i++) {
        bool digit = name[i] >= '0' && name[i] <= '9';
        if (!digit || !in_number)
            text[at++] = digit ? '#' : name[i];
        in_number = digit;
    }
    return at;
}

static size_t slot_of(const char *text, size_t size)
{
    uint64_t hash = hfi_hash(HFI_HASH_BEGIN, text, size);
    return (hash ^ (hash >> 29)) % HFI_CLASS_SLOTS;
}

uint16_t hfi_order_find_class(const struct hfi_order_graph *graph, const char *text, size_t size)
{
    uint16_t at = graph->slots[slot_of(text, size)];
    while (at != 0 && (graph->classes[at].size != size || memcmp(graph->classes[at].text, text, size) != 0))
        at = graph->classes[at].next;
    return at;
}

uint16_t hfi_order_add_class(struct hfi_order_graph *graph, const char *text, size_t size)
{
    HFI_CHECK(graph->class_count < HFI_CLASSES_MOST);
    uint16_t *slot = &graph->slots[slot_of(text, size)];
    uint16_t number = ++graph->class_count;
    graph->classes[number] = (struct hfi_class){.text = text, .size = (uint32_t)size, .next = *slot};
    *slot = number;
    return number;
}

uint16_t hfi_order_find(const struct hfi_order_graph *graph, uint16_t held, uint16_t wanted)
{
    uint16_t at = graph->classes[held].first;
    while (at != 0 && graph->orders[at].wanted != wanted)
        at = graph->orders[at].next;
    return at;
}

uint16_t hfi_order_add(struct hfi_order_graph *graph, uint16_t held, uint16_t wanted)
{
    if (graph->order_count == HFI_ORDERS_MOST)
        return 0;
    uint16_t *first = &graph->classes[held].first;
    uint16_t number = ++graph->order_count;
    graph->orders[number] = (struct hfi_order){held, wanted, *first};
    *first = number;
    return number;
}

/* Breadth first, so the first way found is a shortest one. `by` is cleaned for what was reached, not for all classes. */
static int search(struct hfi_order_graph *graph, uint16_t from, uint16_t to)
{
    int count = 0, looked = 0;
    graph->reached[count++] = from;
    while (looked < count && graph->classes[to].by == 0) {
        uint16_t order = graph->classes[graph->reached[looked++]].first;
        for (; order != 0; order = graph->orders[order].next) {
            uint16_t next = graph->orders[order].wanted;
            if (next == from || graph->classes[next].by != 0)
                continue;
            graph->classes[next].by = order;
            graph->reached[count++] = next;
        }
    }
    return count;
}

int hfi_order_way(struct hfi_order_graph *graph, uint16_t from, uint16_t to, uint16_t *way)
{
    int count = search(graph, from, to), length = 0;
    for (uint16_t at = to; graph->classes[at].by != 0; at = graph->orders[graph->classes[at].by].held)
        length++;
    int place = length;
    for (uint16_t at = to; way != NULL && place > 0; at = graph->orders[graph->classes[at].by].held)
        way[--place] = graph->classes[at].by;
    for (int i = 0; i < count; i++)
        graph->classes[graph->reached[i]].by = 0;
    return length;
}
