/* SPDX-License-Identifier: MIT */
/* floors.c - the small floors below core as a simulated process has them: clock, random numbers, watchdog and
 * dispatcher. */
#include "base/random.h"
#include "base/thread.h"
#include "tests/sim/world.h"
#include "watchdog/dispatcher.h"
#include "watchdog/timers.h"
#include "watchdog/watchdog.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAR_NS INT64_C(1000000000000000) /* no history is as long */

/* ---- base ---- */

static int64_t clock_of_self(void *unused)
{
    (void)unused;
    return sim_clock(sim.self, sim.now);
}

const struct hfi_clock hfi_boottime = {clock_of_self, NULL};

/* Nothing that runs here takes time. */
int64_t hfi_cpu_ns(void)
{
    return 0;
}

bool hfi_random(void *bytes, size_t size)
{
    unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        at[i] = (unsigned char)sim_roll();
    return true;
}

bool hfi_random_word(struct hfi_random_supply *supply, uint64_t *word)
{
    (void)supply;
    return hfi_random(word, sizeof *word);
}

/* A token names host and pid. In server_test, which links this file, no simulated process runs: the pid is real. */
pid_t getpid(void)
{
    return sim.self != NULL ? 1000 + sim.self->id : (pid_t)syscall(SYS_getpid);
}

int gethostname(char *name, size_t size)
{
    (void)snprintf(name, size, "virtual");
    return 0;
}

int hfi_thread_id(void)
{
    return sim_thread_id();
}

uint64_t hfi_thread_number(void)
{
    return UINT64_C(1) << 63 | (uint64_t)sim_thread_id();
}

void **hfi_thread_own(void)
{
    return sim_thread_own();
}

/* ---- watchdog: the real heap of timers, rung by events ---- */

struct hfi_watchdog {
    struct sim_process *process;
    hfi_due_fn *due;
    void *self;
    struct hfi_timers timers;
    int64_t number; /* of the event that counts; an arm makes the older ones void */
    bool rings;     /* its thread is at it, though it may have stopped */
    struct hfi_park rung;
};

static void ring(void *what, int64_t number);

static void plan(struct hfi_watchdog *dog)
{
    int64_t next = hfi_timers_next_ns(&dog->timers);
    dog->number++;
    if (next >= FAR_NS) /* also of a command that the server may obey at any time, because its clock was not known */
        return;
    /* A thread that slept is a little late. */
    int64_t late = sim_chance(5) ? sim_between(0, 5 * HFI_MS) : sim_between(0, HFI_MS / 10);
    sim_at(sim_when(dog->process, next) + late, dog->process, ring, dog, dog->number);
}

static void ring(void *what, int64_t number)
{
    struct hfi_watchdog *dog = what;
    struct hfi_timer *due[HFI_DUE_MOST];
    size_t count;
    if (dog->number != number || dog->rings)
        return;
    dog->rings = true;
    do {
        int64_t now = hfi_now(&hfi_boottime);
        count = 0;
        while (count < HFI_DUE_MOST && (due[count] = hfi_timers_take(&dog->timers, now)) != NULL)
            count++;
        if (count > 0)
            dog->due(dog->self, due, count, now);
    } while (count > 0);
    dog->rings = false;
    hfi_park_wake(&dog->rung);
    plan(dog);
}

hf_status hfi_watchdog_start(const struct hfi_clock *clock, hfi_due_fn *due, void *self,
                             struct hfi_watchdog **watchdog, hf_error *error)
{
    (void)clock;
    (void)error;
    struct hfi_watchdog *dog = calloc(1, sizeof *dog);
    if (dog == NULL)
        abort();
    *dog = (struct hfi_watchdog){.process = sim.self, .due = due, .self = self};
    hfi_park_init(&dog->rung);
    *watchdog = dog;
    return HF_OK;
}

void hfi_watchdog_stop(struct hfi_watchdog *dog)
{
    if (dog == NULL)
        return;
    while (dog->rings)
        (void)hfi_park_wait(&dog->rung, hfi_park_epoch(&dog->rung), HFI_NEVER);
    dog->number++;
    dog->timers.soonest = NULL;
}

bool hfi_watchdog_arm(struct hfi_watchdog *dog, struct hfi_timer *timer, int64_t at_ns)
{
    int64_t before = hfi_timers_next_ns(&dog->timers);
    bool was_armed = hfi_timers_set(&dog->timers, timer, at_ns);
    if (hfi_timers_next_ns(&dog->timers) != before)
        plan(dog);
    return was_armed;
}

/* ---- dispatcher: a thread of the process ---- */

struct hfi_dispatcher {
    struct hfi_list posted;
    struct hfi_park work, done;
    bool ends, over;
};

static void run_calls(void *arg)
{
    struct hfi_dispatcher *dispatcher = arg;
    for (;;) {
        uint32_t ticket = hfi_park_epoch(&dispatcher->work);
        while (!hfi_list_is_empty(&dispatcher->posted)) {
            struct hfi_job *call = hfi_container_of(dispatcher->posted.next, struct hfi_job, link);
            hfi_list_remove(&call->link);
            call->run(call);
        }
        if (dispatcher->ends)
            break;
        (void)hfi_park_wait(&dispatcher->work, ticket, HFI_NEVER);
    }
    dispatcher->over = true;
    hfi_park_wake(&dispatcher->done);
}

hf_status hfi_dispatcher_start(bool caller_runs, struct hfi_dispatcher **out, hf_error *error)
{
    (void)caller_runs; /* histories have none of those */
    (void)error;
    struct hfi_dispatcher *dispatcher = calloc(1, sizeof *dispatcher);
    if (dispatcher == NULL)
        abort();
    hfi_list_init(&dispatcher->posted);
    hfi_park_init(&dispatcher->work);
    hfi_park_init(&dispatcher->done);
    sim_thread_start(sim.self, run_calls, dispatcher);
    *out = dispatcher;
    return HF_OK;
}

void hfi_dispatcher_stop(struct hfi_dispatcher *dispatcher)
{
    if (dispatcher == NULL)
        return;
    dispatcher->ends = true;
    hfi_park_wake(&dispatcher->work);
    while (!dispatcher->over)
        (void)hfi_park_wait(&dispatcher->done, hfi_park_epoch(&dispatcher->done), HFI_NEVER);
}

void hfi_dispatcher_free(struct hfi_dispatcher *dispatcher)
{
    (void)dispatcher; /* the history's end frees everything */
}

void hfi_dispatcher_post(struct hfi_dispatcher *dispatcher, struct hfi_job *call)
{
    hfi_list_append(&dispatcher->posted, &call->link);
    hfi_park_wake(&dispatcher->work);
}

bool hfi_dispatcher_chore(struct hfi_dispatcher *dispatcher, struct hfi_job *call)
{
    (void)dispatcher;
    (void)call;
    return false; /* nothing is looked up here */
}

bool hfi_dispatcher_withdraw(struct hfi_dispatcher *dispatcher, struct hfi_job *call)
{
    (void)dispatcher;
    bool listed = !hfi_list_is_empty(&call->link);
    hfi_list_remove(&call->link);
    return listed;
}

void hfi_dispatcher_forked(struct hfi_dispatcher *dispatcher)
{
    (void)dispatcher;
}

int hfi_dispatcher_fd(struct hfi_dispatcher *dispatcher)
{
    (void)dispatcher;
    return -1;
}

size_t hfi_dispatcher_run(struct hfi_dispatcher *dispatcher)
{
    (void)dispatcher;
    return 0;
}

int hfi_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg)
{
    (void)thread, (void)name, (void)run, (void)arg;
    return EAGAIN; /* nothing is loaded aside here */
}

void hfi_thread_leave_behind(pthread_t thread)
{
    (void)thread;
}

bool hfi_thread_shield(void)
{
    return true;
}

void hfi_thread_unshield(void)
{
}

void hfi_thread_forbid(void)
{
}

void hfi_thread_permit(void)
{
}
