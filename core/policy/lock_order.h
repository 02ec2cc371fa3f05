/* SPDX-License-Identifier: MIT */
/* lock_order.h - in which order locks are taken: a graph of classes of locks, and whether a new edge closes a circle.
 * Pure; the caller serialises, and owns the texts. */
#ifndef HFI_POLICY_LOCK_ORDER_H
#define HFI_POLICY_LOCK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_ORDERS_MOST  4096                    /* edges */
#define HFI_CLASSES_MOST (2 * HFI_ORDERS_MOST)   /* a class has an edge, or no number */
#define HFI_CLASS_SLOTS  1024

struct hfi_order { /* somebody held `held` and wanted `wanted` */
    uint16_t held, wanted;
    uint16_t next; /* another one of the same `held`; 0: none */
};

struct hfi_class {
    const char *text;
    uint32_t size;
    uint16_t next;  /* in its slot; 0: none */
    uint16_t first; /* of its orders as `held`; 0: none */
    uint16_t by;    /* scratch of a search: the order that it was reached by; 0: not reached */
};

struct hfi_order_graph { /* all 0: empty. Numbers of classes and orders begin with 1 and never change */
    uint16_t class_count, order_count;
    uint16_t slots[HFI_CLASS_SLOTS];
    struct hfi_class classes[HFI_CLASSES_MOST + 1];
    struct hfi_order orders[HFI_ORDERS_MOST + 1];
    uint16_t reached[HFI_CLASSES_MOST]; /* scratch of a search: a queue */
};

/* Writes the class of a name, at most `size` bytes: each run of digits becomes one `#`. Returns its size. */
size_t hfi_order_fold(const char *name, size_t size, char *text);

/* The number of the class with this text; 0: none. */
uint16_t hfi_order_find_class(const struct hfi_order_graph *graph, const char *text, size_t size);
/* A class that has no number yet gets one. The text must live as long as the graph. Never more than twice for each
 * order that is added next. */
uint16_t hfi_order_add_class(struct hfi_order_graph *graph, const char *text, size_t size);

uint16_t hfi_order_find(const struct hfi_order_graph *graph, uint16_t held, uint16_t wanted); /* 0: none */
/* Of two classes, and not in the graph yet. Returns its number; 0: the graph is full. */
uint16_t hfi_order_add(struct hfi_order_graph *graph, uint16_t held, uint16_t wanted);

/* The shortest way from one class to another along orders: `held` of the first is `from`, `wanted` of the last is `to`,
 * and `wanted` of each is `held` of the next. An order to -> from closes a circle with it. Returns its length, 0: none;
 * `way` (NULL: not interested) has room for that many. */
int hfi_order_way(struct hfi_order_graph *graph, uint16_t from, uint16_t to, uint16_t *way);

#endif
