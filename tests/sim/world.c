/* SPDX-License-Identifier: MIT */
/* world.c - see world.h. Events are a binary heap by time and number; threads are coroutines: ucontext
 * begins them, setjmp switches, for it makes no system call. Stacks are used again. */
#include "tests/sim/world.h"
#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (128 * 1024)
#define STACKS_MOST 1024

#ifdef SIM_SWAPS_CONTEXTS /* AddressSanitizer follows these, and no jumps between stacks */
typedef ucontext_t place;
#else
typedef jmp_buf place;
#endif

struct event {
    int64_t when;
    uint64_t number; /* among those of one time the first made comes first */
    struct sim_process *owner;
    sim_event_fn *run;
    void *what;
    int64_t argument;
};

struct sim_thread {
    struct hfi_list link;
    place place; /* where it waits, once it has begun */
    struct sim_process *process;
    int id;
    int stack;
    void *own;
    sim_thread_fn *run;
    void *arg;
    const struct hfi_park *waits_on; /* NULL: it does not wait on a park */
    int64_t wait_number;
    bool begun, over;
};

struct sim_world sim;
static struct event *heap;
static size_t heap_count, heap_room;
static uint64_t event_number;
static place loop;
static struct sim_thread *starting;
static void *own_of_events;
static void *stacks[STACKS_MOST];
static int free_stacks[STACKS_MOST], free_count, stack_count;

/* ---- dice ---- */

uint64_t sim_roll(void)
{
    return hfi_dice(&sim.dice);
}

int64_t sim_between(int64_t least, int64_t most)
{
    return least + (int64_t)(sim_roll() % (uint64_t)(most - least + 1));
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

/* What a pause withheld comes at its end, in any order: timers and sockets belong to different threads. */
static void withhold(struct event event)
{
    event.when = event.owner->paused_until + sim_between(0, HFI_MS);
    put(&event);
}

void sim_run(int64_t until)
{
    while (heap_count > 0 && heap[0].when <= until && sim.failure[0] == 0) {
        struct event event = take();
        struct sim_process *owner = event.owner;
        sim.now = event.when;
        if (owner != NULL && !owner->alive)
            continue;
        if (owner != NULL && sim_is_paused(owner)) {
            withhold(event);
            continue;
        }
        sim.events++;
        sim_note((uint64_t)event.when + event.number);
        sim.self = owner;
        event.run(event.what, event.argument);
        sim.self = NULL;
    }
    if (sim.failure[0] == 0 && sim.now < until)
        sim.now = until;
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

/* ---- threads ---- */

static void first_step(void);

static void make_ready(const struct sim_thread *thread, ucontext_t *there)
{
    (void)getcontext(there);
    there->uc_stack.ss_sp = stacks[thread->stack];
    there->uc_stack.ss_size = STACK_BYTES;
    makecontext(there, first_step, 0);
}

#ifdef SIM_SWAPS_CONTEXTS
static void enter(struct sim_thread *thread)
{
    if (!thread->begun)
        make_ready(thread, &thread->place);
    thread->begun = true;
    (void)swapcontext(&loop, &thread->place);
}

static void yield(struct sim_thread *thread)
{
    (void)swapcontext(&thread->place, &loop);
}
#else
static void begin(struct sim_thread *thread)
{
    ucontext_t there;
    thread->begun = true;
    make_ready(thread, &there);
    (void)setcontext(&there);
}

static void enter(struct sim_thread *thread)
{
    if (_setjmp(loop) != 0)
        return;
    if (thread->begun)
        _longjmp(thread->place, 1);
    begin(thread);
}

static void yield(struct sim_thread *thread)
{
    if (_setjmp(thread->place) == 0)
        _longjmp(loop, 1);
}
#endif

static void first_step(void)
{
    struct sim_thread *thread = starting;
    thread->run(thread->arg);
    thread->over = true;
    yield(thread);
}

static void resume(void *what, int64_t wait_number)
{
    struct sim_thread *thread = what;
    if (thread->over || thread->wait_number != wait_number)
        return; /* it was woken for another reason first */
    thread->wait_number++;
    thread->waits_on = NULL;
    sim.running = starting = thread;
    enter(thread);
    sim.running = NULL;
    if (thread->over) {
        hfi_list_remove(&thread->link); /* an event may still name it, so it is not freed */
        free_stacks[free_count++] = thread->stack;
    }
}

static int some_stack(void)
{
    if (free_count > 0)
        return free_stacks[--free_count];
    void *stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || stack_count == STACKS_MOST)
        abort();
    stacks[stack_count] = stack;
    return stack_count++;
}

void sim_thread_start(struct sim_process *process, sim_thread_fn *run, void *arg)
{
    struct sim_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        abort();
    thread->process = process;
    thread->id = process->id * 1000 + ++process->next_thread;
    thread->stack = some_stack();
    thread->run = run;
    thread->arg = arg;
    hfi_list_append(&process->threads, &thread->link);
    sim_at(sim.now + sim_between(0, HFI_MS / 10), process, resume, thread, thread->wait_number);
}

int sim_thread_id(void)
{
    return sim.running != NULL ? sim.running->id : sim.self->id * 1000;
}

void **sim_thread_own(void)
{
    return sim.running != NULL ? &sim.running->own : &own_of_events;
}

void sim_sleep(int64_t ns)
{
    struct hfi_park never;
    hfi_park_init(&never);
    (void)hfi_park_wait(&never, hfi_park_ticket(&never), sim_clock(sim.self, sim.now) + ns);
}

/* ---- base/park.h, for these threads ---- */

void hfi_park_init(struct hfi_park *park)
{
    park->count = 0;
}

uint32_t hfi_park_ticket(struct hfi_park *park)
{
    return park->count;
}

uint32_t hfi_park_next(uint32_t ticket)
{
    return ticket + 1;
}

bool hfi_park_is_woken(struct hfi_park *park, uint32_t ticket)
{
    return park->count != ticket;
}

bool hfi_park_wait(struct hfi_park *park, uint32_t ticket, int64_t until_ns)
{
    struct sim_thread *thread = sim.running;
    if (park->count != ticket)
        return true;
    if (until_ns <= sim_clock(sim.self, sim.now))
        return false;
    if (thread == NULL) {
        sim_violation("something waits outside a thread");
        abort();
    }
    thread->waits_on = park;
    if (until_ns != HFI_NEVER)
        sim_at(sim_when(sim.self, until_ns), sim.self, resume, thread, thread->wait_number);
    yield(thread);
    return park->count != ticket;
}

void hfi_park_wake(struct hfi_park *park)
{
    park->count++;
    for (struct hfi_list *at = sim.self->threads.next; at != &sim.self->threads; at = at->next) {
        struct sim_thread *thread = hfi_of(at, struct sim_thread, link);
        if (thread->waits_on == park)
            sim_at(sim.now + sim_between(0, HFI_MS / 20), sim.self, resume, thread, thread->wait_number);
    }
}

void hfi_park_kick(struct hfi_park *park, int fd)
{
    (void)park;
    (void)fd;
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
    own_of_events = NULL;
    for (free_count = 0; free_count < stack_count; free_count++) /* nobody of the history before runs on */
        free_stacks[free_count] = stack_count - 1 - free_count;
    sim = (struct sim_world){.seed = seed, .dice = seed, .verbose = verbose};
    (void)sim_roll();
}

void hfi_park_hold(void)
{
}

void hfi_park_let_go(void)
{
}
