/* SPDX-License-Identifier: MIT */
/* lock_order.c - see lock_order.h. */
#include "core/policy/lock_order.h"
#include "base/check.h"
#include "base/hash.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits_at(const char *text, size_t size)
{
    size_t count = 0;
    while (count < size && is_digit(text[count]))
        count++;
    return count;
}

/* *has_digit: one of them is decimal; a word may consist of a to f alone. */
static size_t hex_at(const char *text, size_t size, bool *has_digit)
{
    size_t count = 0;
    *has_digit = false;
    while (count < size && (is_digit(text[count]) || (text[count] >= 'a' && text[count] <= 'f') ||
                            (text[count] >= 'A' && text[count] <= 'F')))
        *has_digit = is_digit(text[count++]) || *has_digit;
    return count;
}

static size_t uuid_at(const char *text, size_t size)
{
    static const size_t parts[] = {8, 4, 4, 4, 12};
    bool has_digit;
    size_t at = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (hex_at(text + at, size - at, &has_digit) != parts[i])
            return 0;
        at += parts[i];
        if (i + 1 < sizeof parts / sizeof parts[0] && (at == size || text[at++] != '-'))
            return 0;
    }
    return at;
}

/* How many bytes from here on are a number: a UUID, eight or more hex digits, or decimal ones. */
static size_t number_at(const char *text, size_t size)
{
    bool has_digit;
    size_t uuid = uuid_at(text, size), hex = hex_at(text, size, &has_digit);
    return uuid != 0 ? uuid : hex >= 8 && has_digit ? hex : digits_at(text, size);
}

size_t hfi_order_fold(const char *name, size_t size, char *text)
{
    size_t at = 0;
    for (size_t i = 0; i < size;) {
        size_t number = number_at(name + i, size - i);
        text[at++] = number > 0 ? '#' : name[i];
        i += number > 0 ? number : 1;
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
