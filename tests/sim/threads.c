/* SPDX-License-Identifier: MIT */
/*
 * threads.c - coroutines as the threads of processes: ucontext begins one, setjmp switches, as it makes no system
 * call; stacks are reused.
 *
 * Events run on coroutines too, the hands. An event that stops half-way, at a mark or for a mutex, keeps its hand
 * until it is over, and another hand runs all other events. So the work of the library's own threads can be stopped
 * like that of the program's.
 */
#include "base/mutex.h"
#include "base/thread.h"
#include "tests/sim/world.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (128 * 1024)
#define STACKS_MOST 1024

#ifdef SIM_SWAPS_CONTEXTS /* AddressSanitizer follows context switches that are announced to it, and no jumps between
                           * stacks */
#include <sanitizer/common_interface_defs.h>
typedef ucontext_t place;
#else
typedef jmp_buf place;
#endif

struct sim_thread {
    struct hfi_list link;
    place place; /* where it waits, once it has begun */
    struct sim_process *process;
    int id; /* 0: a hand */
    int stack;
    void *own;
#ifdef HFI_CHECKED
    struct hfi_held held;
#endif
    sim_thread_fn *run;
    void *arg;
    const struct hfi_park *waits_on;  /* NULL: it does not wait on a park */
    const pthread_mutex_t *waits_for; /* NULL: nor for a mutex */
    struct hfi_list at_mutex;
    int64_t wait_number;
    bool begun, over;
    struct sim_thread *older;
};

static struct sim_thread outside; /* who calls sim_run */
static struct sim_thread *hand;   /* that goes on with the events */
static struct sim_thread *running, *starting;
static struct sim_thread *newest; /* the threads of this history: an event may name one that is over, so they are
                                   * freed at its end */
static struct hfi_list at_mutexes; /* who waits for one */
static int64_t run_until;
static void *stacks[STACKS_MOST];
static int free_stacks[STACKS_MOST], free_count, stack_count;

/* ---- switching ---- */

static void first_step(void);

static void make_ready(const struct sim_thread *thread, ucontext_t *there)
{
    (void)getcontext(there);
    there->uc_stack.ss_sp = stacks[thread->stack];
    there->uc_stack.ss_size = STACK_BYTES;
    makecontext(there, first_step, 0);
}

#ifdef SIM_SWAPS_CONTEXTS
static struct sim_thread *left;
static struct {
    const void *bottom;
    size_t size;
} outer; /* the program's own stack */

static void arrive(void *fake)
{
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(fake, &bottom, &size);
    if (left == &outside) {
        outer.bottom = bottom;
        outer.size = size;
    }
}

static void go(struct sim_thread *from, struct sim_thread *to)
{
    void *fake = NULL;
    starting = to;
    if (!to->begun && to != &outside)
        make_ready(to, &to->place);
    to->begun = true;
    left = from;
    __sanitizer_start_switch_fiber(from->over ? NULL : &fake, to == &outside ? outer.bottom : stacks[to->stack],
                                   to == &outside ? outer.size : STACK_BYTES);
    (void)swapcontext(&from->place, &to->place);
    arrive(fake);
}
#else
static void arrive(void *fake)
{
    (void)fake;
}

static void begin(struct sim_thread *thread)
{
    ucontext_t there;
    starting = thread;
    thread->begun = true;
    make_ready(thread, &there);
    (void)setcontext(&there);
}

static void go(struct sim_thread *from, struct sim_thread *to)
{
    if (_setjmp(from->place) != 0)
        return;
    if (to->begun)
        _longjmp(to->place, 1);
    begin(to);
}
#endif

static void first_step(void)
{
    struct sim_thread *thread = starting;
    arrive(NULL);
    thread->run(thread->arg);
    thread->over = true;
    go(thread, hand);
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

static struct sim_thread *new_thread(sim_thread_fn *run, void *arg)
{
    struct sim_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL)
        abort();
    thread->stack = some_stack();
    thread->run = run;
    thread->arg = arg;
    hfi_list_init(&thread->link);
    hfi_list_init(&thread->at_mutex);
    thread->older = newest;
    newest = thread;
    return thread;
}

/* ---- hands ---- */

static void run_events(void *unused)
{
    struct sim_thread *me = starting;
    (void)unused;
    running = me;
    while (me == hand)
        if (!sim_next(run_until))
            go(me, &outside);
}

/* Whoever runs now waits to be resumed; the others go on. */
static void wait_for_resume(void)
{
    struct sim_thread *me = running;
    me->process = sim.self;
    if (me == hand)
        hand = new_thread(run_events, NULL);
    go(me, hand);
}

static void resume(void *what, int64_t wait_number)
{
    struct sim_thread *thread = what, *me = running;
    if (thread->over || thread->wait_number != wait_number)
        return; /* it was woken for another reason first */
    thread->wait_number++;
    thread->waits_on = NULL;
    thread->waits_for = NULL;
    running = thread;
    sim.running = thread->id != 0 ? thread : NULL;
    go(me, thread);
    running = me;
    sim.running = NULL;
    if (thread->over) {
        hfi_list_remove(&thread->link); /* an event may still name it, so it is not freed */
        free_stacks[free_count++] = thread->stack;
    }
}

static void resume_at(int64_t when, struct sim_thread *thread)
{
    sim_at(when, thread->process, resume, thread, thread->wait_number);
}

void sim_run(int64_t until)
{
    run_until = until;
    if (hand == NULL)
        hand = new_thread(run_events, NULL);
    go(&outside, hand);
    if (sim.failure[0] == 0 && sim.now < until)
        sim.now = until;
}

void sim_stop(int64_t ns)
{
    sim_at(sim.now + ns, sim.self, resume, running, running->wait_number);
    wait_for_resume();
}

void sim_threads_begin(void)
{
    hand = newest = NULL;
    outside.begun = true;
    hfi_list_init(&at_mutexes);
    for (free_count = 0; free_count < stack_count; free_count++) /* nobody of the history before runs on */
        free_stacks[free_count] = stack_count - 1 - free_count;
}

void sim_threads_end(void)
{
    while (newest != NULL) {
        struct sim_thread *thread = newest;
        newest = thread->older;
        free(thread);
    }
}

/* ---- threads ---- */

void sim_thread_start(struct sim_process *process, sim_thread_fn *run, void *arg)
{
    struct sim_thread *thread = new_thread(run, arg);
    thread->process = process;
    thread->id = process->id * 1000 + ++process->next_thread;
    hfi_list_append(&process->threads, &thread->link);
    resume_at(sim.now + sim_between(0, HFI_MS / 10), thread);
}

int sim_thread_id(void)
{
    return sim.running != NULL ? sim.running->id : sim.self->id * 1000;
}

void **sim_thread_own(void)
{
    return &running->own;
}

#ifdef HFI_CHECKED
struct hfi_held *hfi_thread_held(void)
{
    return running != NULL ? &running->held : &outside.held;
}
#endif

void sim_sleep(int64_t ns)
{
    struct hfi_park never;
    hfi_park_init(&never);
    (void)hfi_park_wait(&never, hfi_park_epoch(&never), sim_clock(sim.self, sim.now) + ns);
}

/* ---- mutexes: the real ones, but nobody blocks ---- */

int sim_mutex_lock(pthread_mutex_t *mutex)
{
    while (pthread_mutex_trylock(mutex) != 0) {
        struct sim_thread *me = running;
        me->waits_for = mutex;
        hfi_list_append(&at_mutexes, &me->at_mutex);
        wait_for_resume();
        hfi_list_remove(&me->at_mutex);
    }
    return 0;
}

int sim_mutex_unlock(pthread_mutex_t *mutex)
{
    int failed = pthread_mutex_unlock(mutex);
    for (struct hfi_list *at = at_mutexes.next; at != &at_mutexes; at = at->next) {
        struct sim_thread *thread = hfi_container_of(at, struct sim_thread, at_mutex);
        if (thread->waits_for == mutex)
            resume_at(sim.now + sim_between(0, HFI_MS / 20), thread);
    }
    return failed;
}

/* ---- base/park.h, for these threads ---- */

void hfi_park_init(struct hfi_park *park)
{
    park->count = 0;
}

uint32_t hfi_park_epoch(struct hfi_park *park)
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
        resume_at(sim_when(sim.self, until_ns), thread);
    wait_for_resume();
    return park->count != ticket;
}

void hfi_park_wake(struct hfi_park *park)
{
    park->count++;
    for (struct hfi_list *at = sim.self->threads.next; at != &sim.self->threads; at = at->next) {
        struct sim_thread *thread = hfi_container_of(at, struct sim_thread, link);
        if (thread->waits_on == park)
            resume_at(sim.now + sim_between(0, HFI_MS / 20), thread);
    }
}

void hfi_park_kick(struct hfi_park *park, int fd)
{
    (void)park;
    (void)fd;
}

void hfi_park_hold(void)
{
}

void hfi_park_let_go(void)
{
}
