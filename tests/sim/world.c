/* SPDX-License-Identifier: MIT */
/* world.c - see world.h. Events are a binary heap by time and number. */
#include "tests/sim/world.h"
#include "base/random.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct event {
    int64_t when;
    uint64_t number; /* among those of one time the first made comes first */
    struct sim_process *owner;
    sim_event_fn *run;
    void *what;
    int64_t argument;
};

struct sim_world sim;
static struct event *heap;
static size_t heap_count, heap_room;
static uint64_t event_number;

/* ---- random numbers ---- */

uint64_t sim_roll(void)
{
    return hfi_rng_next(&sim.rng);
}

int64_t sim_between(int64_t least, int64_t most)
{
    return least + (int64_t)(sim_roll() % ((uint64_t)most - (uint64_t)least + 1));
}

bool sim_chance(int percent)
{
    return (int)(sim_roll() % 100) < percent;
}

/* ---- the digest ---- */

void sim_note(uint64_t word)
{
    sim.digest = (sim.digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    sim.digest ^= sim.digest >> 29;
}

void sim_note_bytes(const void *bytes, size_t size)
{
    const char *at = bytes;
    uint64_t word;
    for (; size >= sizeof word; at += sizeof word, size -= sizeof word) {
        memcpy(&word, at, sizeof word);
        sim_note(word);
    }
    word = size;
    memcpy(&word, at, size);
    sim_note(word);
}

/* ---- events ---- */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->when != b->when ? a->when < b->when : a->number < b->number;
}

static void put(const struct event *event)
{
    if (heap_count == heap_room) {
        heap_room = heap_room == 0 ? 1024 : 2 * heap_room;
        heap = realloc(heap, heap_room * sizeof *heap);
        if (heap == NULL)
            abort();
    }
    size_t at = heap_count++;
    while (at > 0 && is_before(event, &heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = *event;
}

static struct event take(void)
{
    struct event first = heap[0], last = heap[--heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap_count)
            break;
        if (child + 1 < heap_count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

void sim_at(int64_t when, struct sim_process *owner, sim_event_fn *run, void *what, int64_t number)
{
    struct event event = {when < sim.now ? sim.now : when, ++event_number, owner, run, what, number};
    put(&event);
}

/* Events that a pause withheld run at its end, in any order: timers and sockets belong to different threads. */
static void withhold(struct event event)
{
    event.when = event.owner->paused_until + sim_between(0, HFI_MS);
    put(&event);
}

bool sim_next(int64_t until)
{
    if (heap_count == 0 || heap[0].when > until || sim.failure[0] != 0)
        return false;
    struct event event = take();
    struct sim_process *owner = event.owner;
    sim.now = event.when;
    if (owner != NULL && !owner->alive)
        return true;
    if (owner != NULL && sim_is_paused(owner)) {
        withhold(event);
        return true;
    }
    sim.events++;
    sim_note((uint64_t)event.when + event.number);
    sim.self = owner;
    event.run(event.what, event.argument);
    sim.self = NULL;
    return true;
}

/* ---- processes ---- */

struct sim_process *sim_process_new(void)
{
    struct sim_process *process = &sim.processes[sim.process_count++];
    if (sim.process_count > SIM_PROCESSES)
        abort();
    *process = (struct sim_process){.id = sim.process_count, .alive = true};
    process->clock_start = sim_between(1, INT64_C(4000000000000));
    process->clock_ppm = sim_between(-9990, 9990);
    hfi_list_init(&process->threads);
    return process;
}

int64_t sim_clock(const struct sim_process *process, int64_t when)
{
    return process->clock_start + when + when * process->clock_ppm / 1000000; /* never back, to the nanosecond */
}

int64_t sim_when(const struct sim_process *process, int64_t clock)
{
    if (clock == HFI_NEVER || clock <= sim_clock(process, sim.now))
        return clock == HFI_NEVER ? HFI_NEVER : sim.now;
    int64_t length = clock - sim_clock(process, sim.now);
    int64_t when = sim.now + (int64_t)((double)length * 1000000.0 / (double)(1000000 + process->clock_ppm));
    while (sim_clock(process, when) < clock)
        when += (clock - sim_clock(process, when)) / 2 + 1;
    return when;
}

void sim_kill(struct sim_process *process)
{
    process->alive = false;
    process->client = NULL;
}

bool sim_is_paused(const struct sim_process *process)
{
    return process->paused_until > sim.now;
}

void sim_pause(struct sim_process *process, int64_t until)
{
    process->paused_until = process->last_pause_end = until;
}

/* ---- words ---- */

void sim_say(const char *format, ...)
{
    if (!sim.verbose)
        return;
    va_list values;
    (void)printf("%11.3f ms ", (double)sim.now / 1e6);
    if (sim.self != NULL)
        (void)printf("P%d%s ", sim.self->id, sim.running == NULL ? "  " : "");
    else
        (void)printf("   ");
    va_start(values, format);
    (void)vprintf(format, values);
    va_end(values);
    (void)putchar('\n');
}

void sim_violation(const char *format, ...)
{
    if (sim.failure[0] != 0)
        return;
    va_list values;
    va_start(values, format);
    (void)vsnprintf(sim.failure, sizeof sim.failure, format, values);
    va_end(values);
    sim_say("VIOLATION: %s", sim.failure);
}

void sim_begin(uint64_t seed, bool verbose)
{
    heap_count = 0;
    event_number = 0;
    sim_threads_begin();
    sim = (struct sim_world){.seed = seed, .rng = seed, .verbose = verbose};
    (void)sim_roll();
}
