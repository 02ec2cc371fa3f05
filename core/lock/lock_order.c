/* SPDX-License-Identifier: MIT */
/* lock_order.c - see lock_order.h. core/policy/lock_order.c has the graph and finds its circles. */
#include "core/lock/lock_order.h"
#include "core/lock/handle.h"
#include "core/policy/lock_order.h"
#include "base/perturb.h"
#include "base/thread.h"

#include <holdfast/fetch.h>

#include <execinfo.h> /* glibc has it, musl has not; hf_loading_fail needs glibc too (strerrordesc_np) */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES  24
#define OWNER_BITS 6
#define OWNERS  (1 << OWNER_BITS) /* lists of what is held */
#define ORDERS_SHOWN 8 /* of a circle */
#define CLASS_SIZE (1 + HF_KEY_MAX)

_Static_assert(HF_KEY_MAX >= HF_NAME_MAX, "a class has room for both");

struct stack {
    void *frames[FRAMES];
    int   count;
};

struct sighting { /* of an order, when it was first seen; never changes */
    struct stack stack;
    uint64_t owner;
    char held[96], wanted[96];
};

struct hfi_listed { /* a lease that is held */
    struct hfi_list link;
    hf_lease *lease;
    char order_class[]; /* "": none */
};

struct hfi_lock_order {
    struct hfi_mutex mutex; /* guards what follows. What sightings, orders and the texts of classes say never changes, so
                             * whoever was told their number under the mutex may read them without it */
    struct hfi_list owners[OWNERS];
    bool full;
    int  reports;
    char held[CLASS_SIZE], wanted[CLASS_SIZE]; /* scratch: texts of two classes */
    struct sighting *sightings[HFI_ORDERS_MOST + 1];
    struct hfi_order_graph graph;
};

struct report { /* of a circle, to be logged without the mutex */
    struct report *next;
    int number, length;
    uint16_t orders[]; /* the new one, then the way back */
};

struct wish { /* one call of hfi_lock_order_wanted */
    const struct hfi_lock *lock;
    uint64_t owner;
    const char *order_class;
    struct stack stack;
    bool has_stack, filled;
    struct report *reports, **last;
};

struct hfi_lock_order *hfi_lock_order_new(void)
{
    struct stack stack;
    struct hfi_lock_order *order = calloc(1, sizeof *order);
    if (order == NULL)
        return NULL;
    hfi_mutex_init(&order->mutex, HFI_RANK_INNER);
    for (int i = 0; i < OWNERS; i++)
        hfi_list_init(&order->owners[i]);
    (void)backtrace(stack.frames, FRAMES); /* the first one loads a library: not in the way of an acquire */
    return order;
}

void hfi_lock_order_free(struct hfi_lock_order *order)
{
    if (order == NULL)
        return;
    for (int i = 1; i <= order->graph.class_count; i++)
        free((void *)(uintptr_t)order->graph.classes[i].text);
    for (int i = 1; i <= order->graph.order_count; i++)
        free(order->sightings[i]);
    hfi_mutex_destroy(&order->mutex);
    free(order);
}

/* Owners may be pointers, or ids that are multiples of a power of two. */
static struct hfi_list *owned_by(struct hfi_lock_order *order, uint64_t owner)
{
    return &order->owners[(owner * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - OWNER_BITS)];
}

static bool is_fetch(const struct hfi_lock *lock)
{
    return lock->keys.use == HFI_FETCH;
}

/* Loads and locks have classes of their own, told apart by the first byte. */
static size_t class_of(const struct hfi_lock *lock, const char *order_class, char *text)
{
    text[0] = is_fetch(lock) ? 'f' : 'l';
    if (order_class == NULL || *order_class == 0)
        return 1 + hfi_order_fold(hfi_keys_name(&lock->keys), lock->keys.name_size, text + 1);
    size_t size = strlen(order_class);
    memcpy(text + 1, order_class, size);
    return 1 + size;
}

static void name_it(const struct hfi_lock *lock, char *text, size_t size)
{
    char quoted[80];
    (void)snprintf(text, size, "%s %s", is_fetch(lock) ? "load of" : "lock",
                   hfi_quote(quoted, sizeof quoted, hfi_keys_name(&lock->keys), lock->keys.name_size));
}

/* The number of the class, which gets one if it has none. 0: no memory. */
static uint16_t number_of(struct hfi_order_graph *graph, const char *text, size_t size)
{
    uint16_t number = hfi_order_find_class(graph, text, size);
    char *copy = number == 0 && graph->class_count < HFI_CLASSES_MOST ? malloc(size) : NULL;
    if (copy == NULL)
        return number;
    memcpy(copy, text, size);
    return hfi_order_add_class(graph, copy, size);
}

/* Without memory nothing is added, and the order is new again next time. */
static void add_locked(struct hfi_lock_order *order, struct wish *wish, const struct hfi_lock *held_lock, size_t held_size,
                       size_t wanted_size)
{
    struct hfi_order_graph *graph = &order->graph;
    struct sighting *sighting = malloc(sizeof *sighting);
    uint16_t held = sighting != NULL ? number_of(graph, order->held, held_size) : 0;
    uint16_t wanted = held != 0 ? number_of(graph, order->wanted, wanted_size) : 0;
    int back = wanted != 0 ? hfi_order_way(graph, wanted, held, NULL) : 0;
    struct report *report = back > 0 ? malloc(sizeof *report + (size_t)(back + 1) * sizeof report->orders[0]) : NULL;
    if (wanted == 0 || (back > 0 && report == NULL)) {
        free(sighting);
        free(report);
        return;
    }
    sighting->stack = wish->stack;
    sighting->owner = wish->owner;
    name_it(held_lock, sighting->held, sizeof sighting->held);
    name_it(wish->lock, sighting->wanted, sizeof sighting->wanted);
    uint16_t number = hfi_order_add(graph, held, wanted);
    order->sightings[number] = sighting;
    if (report == NULL)
        return;
    *report = (struct report){.number = ++order->reports, .length = back + 1};
    report->orders[0] = number;
    (void)hfi_order_way(graph, wanted, held, report->orders + 1);
    *wish->last = report;
    wish->last = &report->next;
}

/* True: there is an order that is new, and the stack is needed. */
static bool meets_new_locked(struct hfi_lock_order *order, struct wish *wish, const struct hfi_listed *listed)
{
    const struct hfi_lock *lock = listed->lease->lock;
    size_t held_size = class_of(lock, listed->order_class, order->held);
    size_t wanted_size = class_of(wish->lock, wish->order_class, order->wanted);
    if (held_size == wanted_size && memcmp(order->held, order->wanted, held_size) == 0)
        return false;
    uint16_t held = hfi_order_find_class(&order->graph, order->held, held_size);
    uint16_t wanted = hfi_order_find_class(&order->graph, order->wanted, wanted_size);
    if (held != 0 && wanted != 0 && hfi_order_find(&order->graph, held, wanted) != 0)
        return false;
    if (order->graph.order_count == HFI_ORDERS_MOST) {
        order->full = wish->filled = true;
        return false;
    }
    if (wish->has_stack)
        add_locked(order, wish, lock, held_size, wanted_size);
    return !wish->has_stack;
}

/* Held by this owner now. An expired lease does not count, even if it is not released yet. */
static bool is_held(const struct hfi_listed *listed, uint64_t owner, int64_t now)
{
    return atomic_load(&listed->lease->owner) == owner && atomic_load(listed->lease->end) > now;
}

/* True: as above, and nothing was added yet. The clock is read under the mutex that orders releases and owners. */
static bool look_locked(struct hfi_lock_order *order, struct wish *wish)
{
    HFI_ASSERT_HELD(&order->mutex);
    struct hfi_list *owned = owned_by(order, wish->owner);
    int64_t now = hfi_now(wish->lock->client->clock);
    if (order->full)
        return false;
    for (struct hfi_list *at = owned->next; at != owned; at = at->next) {
        struct hfi_listed *listed = hfi_container_of(at, struct hfi_listed, link);
        if (listed->lease->lock == wish->lock && is_held(listed, wish->owner, now))
            return false; /* re-entry, or HF_DEADLOCK: it does not wait */
    }
    for (struct hfi_list *at = owned->next; at != owned && !order->full; at = at->next) {
        struct hfi_listed *listed = hfi_container_of(at, struct hfi_listed, link);
        if (is_held(listed, wish->owner, now) && meets_new_locked(order, wish, listed))
            return true;
    }
    return false;
}

static void log_stack(const struct hfi_log *log, int number, const struct stack *stack)
{
    char **symbols = backtrace_symbols(stack->frames, stack->count);
    for (int i = 0; i < stack->count; i++)
        if (symbols != NULL)
            hfi_log(log, HF_LOG_WARNING, "lock order %d:     %s", number, symbols[i]);
        else
            hfi_log(log, HF_LOG_WARNING, "lock order %d:     [%p]", number, stack->frames[i]);
    free(symbols);
}

static const char *class_text(const struct hfi_class *class, char *text, size_t size)
{
    char quoted[96];
    (void)snprintf(text, size, "%s%s", class->text[0] == 'f' ? "load of " : "",
                   hfi_quote(quoted, sizeof quoted, class->text + 1, class->size - 1));
    return text;
}

static void log_report(const struct hfi_log *log, const struct hfi_lock_order *order, const struct report *report)
{
    char held[112], wanted[112];
    const struct sighting *new = order->sightings[report->orders[0]];
    hfi_log(log, HF_LOG_WARNING, "lock order %d: %s is wanted while %s is held, which closes a circle of %d classes: callers "
                                 "that do all of this at once wait for each other. Take them in one order everywhere",
            report->number, new->wanted, new->held, report->length);
    for (int i = 0; i < report->length && i < ORDERS_SHOWN; i++) {
        const struct hfi_order *edge = &order->graph.orders[report->orders[i]];
        const struct sighting *seen = order->sightings[report->orders[i]];
        bool thread = seen->owner >= HFI_THREADS;
        hfi_log(log, HF_LOG_WARNING, "lock order %d: %s, then %s: %s %" PRIu64 " held %s and wanted %s, at", report->number,
                class_text(&order->graph.classes[edge->held], held, sizeof held),
                class_text(&order->graph.classes[edge->wanted], wanted, sizeof wanted), thread ? "thread" : "owner",
                thread ? seen->owner - HFI_THREADS : seen->owner, seen->held, seen->wanted);
        log_stack(log, report->number, &seen->stack);
    }
    if (report->length > ORDERS_SHOWN)
        hfi_log(log, HF_LOG_WARNING, "lock order %d: and %d more: hf_client_dump has all", report->number,
                report->length - ORDERS_SHOWN);
}

void hfi_lock_order_wanted(struct hfi_lock *lock, uint64_t owner, const char *order_class)
{
    const struct hfi_log *log = &lock->client->log;
    struct hfi_lock_order *order = lock->client->order;
    struct wish wish = {.lock = lock, .owner = owner, .order_class = order_class};
    wish.last = &wish.reports;
    if (owner == 0) /* nobody, who holds nothing */
        return;
    for (bool again = true; again;) {
        hfi_mutex_lock(&order->mutex);
        again = look_locked(order, &wish);
        hfi_mutex_unlock(&order->mutex);
        HFI_PERTURB("order-to-stack");
        if (again) /* without the mutex: it may have to wait for a thread that loads a library */
            wish.stack.count = backtrace(wish.stack.frames, FRAMES);
        wish.has_stack = again;
    }
    while (wish.reports != NULL) {
        struct report *report = wish.reports;
        wish.reports = report->next;
        log_report(log, order, report);
        free(report);
    }
    if (wish.filled)
        hfi_log(log, HF_LOG_WARNING, "lock order: %d orders are known, and no more are learned: this client's check has stopped. "
                                     "Give locks of one kind an .order_class", HFI_ORDERS_MOST);
}

bool hfi_lock_order_is_alone(const struct hfi_lock *lock)
{
    char text[HF_KEY_MAX];
    size_t size = hfi_order_fold(hfi_keys_name(&lock->keys), lock->keys.name_size, text);
    return size == lock->keys.name_size && memcmp(text, hfi_keys_name(&lock->keys), size) == 0;
}

void hfi_lock_order_held(hf_lease *lease, const char *order_class)
{
    struct hfi_lock_order *order = lease->client->order;
    size_t size = order_class != NULL ? strlen(order_class) + 1 : 1;
    struct hfi_listed *listed = malloc(sizeof *listed + size);
    if (listed == NULL) /* its orders are not seen */
        return;
    listed->lease = lease;
    memcpy(listed->order_class, order_class != NULL ? order_class : "", size);
    hfi_mutex_lock(&order->mutex);
    bool first = lease->listed == NULL;
    if (first) {
        lease->listed = listed;
        hfi_list_append(owned_by(order, atomic_load(&lease->owner)), &listed->link);
    }
    hfi_mutex_unlock(&order->mutex);
    if (!first)
        free(listed);
}

void hfi_lock_order_moved(hf_lease *lease)
{
    struct hfi_lock_order *order = lease->client->order;
    hfi_mutex_lock(&order->mutex);
    if (lease->listed != NULL) { /* else another thread of its owner is about to list it */
        hfi_list_remove(&lease->listed->link);
        hfi_list_append(owned_by(order, atomic_load(&lease->owner)), &lease->listed->link);
    }
    hfi_mutex_unlock(&order->mutex);
}

void hfi_lock_order_released(hf_lease *lease)
{
    struct hfi_lock_order *order = lease->client->order;
    hfi_mutex_lock(&order->mutex);
    struct hfi_listed *listed = lease->listed;
    lease->listed = NULL;
    if (listed != NULL)
        hfi_list_remove(&listed->link);
    hfi_mutex_unlock(&order->mutex);
    free(listed);
}

void hfi_lock_order_dump(struct hfi_lock_order *order, FILE *out)
{
    char held[112], wanted[112];
    hfi_mutex_lock(&order->mutex);
    int count = order->graph.order_count;
    hfi_mutex_unlock(&order->mutex);
    for (int i = 1; i <= count; i++) {
        const struct hfi_order *edge = &order->graph.orders[i];
        fprintf(out, "order %s, then %s\n", class_text(&order->graph.classes[edge->held], held, sizeof held),
                class_text(&order->graph.classes[edge->wanted], wanted, sizeof wanted));
    }
}
