/* SPDX-License-Identifier: MIT */
/* watchdog.c - the thread that sleeps until the next timer is due and hands out the timers that are. */
#include "watchdog/watchdog.h"
#include "base/mutex.h"
#include "base/park.h"
#include "base/perturb.h"
#include "base/thread.h"
#include "watchdog/timers.h"

#include <stdlib.h>

/* Futexes do not count the time for which a machine was suspended: after a suspend a timer is at most this late. */
#define LONGEST_SLEEP_NS (1000 * HFI_MS)

struct hfi_watchdog {
    const struct hfi_clock *clock;
    hfi_due_fn *due;
    void *self;
    bool has_thread;
    pthread_t thread;
    struct hfi_park park; /* guarded by the mutex, as all below */
    struct hfi_mutex mutex;
    struct hfi_timers timers;
    int64_t sleeps_until_ns; /* 0: awake, and it reads the timers again before it sleeps */
    bool ends;
};

/* Hands out what is due, in batches, so that the owner's stack stays small and the mutex is never held long. */
static void run_due_locked(struct hfi_watchdog *dog)
{
    struct hfi_timer *due[HFI_DUE_MOST];
    for (;;) {
        int64_t now_ns = hfi_now(dog->clock);
        size_t count = 0;
        while (count < HFI_DUE_MOST && (due[count] = hfi_timers_take(&dog->timers, now_ns)) != NULL)
            count++;
        if (count == 0)
            return;
        hfi_mutex_unlock(&dog->mutex);
        HFI_PERTURB("timer-to-due");
        dog->due(dog->self, due, count, now_ns);
        hfi_mutex_lock(&dog->mutex);
        if (dog->ends)
            return;
    }
}

static void *watch(void *arg)
{
    struct hfi_watchdog *dog = arg;
    hfi_mutex_lock(&dog->mutex);
    while (!dog->ends) {
        run_due_locked(dog);
        if (dog->ends)
            break;
        uint32_t epoch = hfi_park_epoch(&dog->park);
        int64_t next_ns = hfi_timers_next_ns(&dog->timers);
        int64_t until_ns = next_ns == HFI_NEVER ? HFI_NEVER : hfi_now(dog->clock) + LONGEST_SLEEP_NS;
        dog->sleeps_until_ns = until_ns = next_ns < until_ns ? next_ns : until_ns;
        hfi_mutex_unlock(&dog->mutex);
        HFI_PERTURB("watchdog-to-sleep");
        (void)hfi_park_wait(&dog->park, epoch, until_ns);
        hfi_mutex_lock(&dog->mutex);
        dog->sleeps_until_ns = 0;
    }
    hfi_mutex_unlock(&dog->mutex);
    return NULL;
}

hf_status hfi_watchdog_start(const struct hfi_clock *clock, hfi_due_fn *due, void *self,
                             struct hfi_watchdog **watchdog, hf_error *error)
{
    *watchdog = NULL;
    struct hfi_watchdog *dog = calloc(1, sizeof *dog);
    if (dog == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for the watchdog");
    dog->clock = clock;
    dog->due = due;
    dog->self = self;
    hfi_mutex_init(&dog->mutex, HFI_RANK_LEAF);
    hfi_park_init(&dog->park);
    if (clock->now_ns == hfi_boottime.now_ns) {
        int failed = hfi_thread_start(&dog->thread, "hf-watchdog", watch, dog);
        if (failed != 0) {
            hfi_mutex_destroy(&dog->mutex);
            free(dog);
            (void)hfi_fail(error, HF_NOMEM, "raise the limit on threads (ulimit -u, cgroup pids.max)",
                           "cannot start the watchdog's thread");
            hfi_fail_errno(error, failed);
            return HF_NOMEM;
        }
        dog->has_thread = true;
    }
    *watchdog = dog;
    return HF_OK;
}

void hfi_watchdog_stop(struct hfi_watchdog *dog)
{
    if (dog == NULL)
        return;
    if (dog->has_thread) {
        hfi_mutex_lock(&dog->mutex);
        dog->ends = true;
        hfi_park_wake(&dog->park);
        hfi_mutex_unlock(&dog->mutex);
        (void)pthread_join(dog->thread, NULL);
    }
    hfi_mutex_destroy(&dog->mutex);
    free(dog);
}

bool hfi_watchdog_arm(struct hfi_watchdog *dog, struct hfi_timer *timer, int64_t at_ns)
{
    hfi_mutex_lock(&dog->mutex);
    bool was_armed = hfi_timers_set(&dog->timers, timer, at_ns);
    HFI_PERTURB("armed-to-wake");
    if (at_ns < dog->sleeps_until_ns) {
        dog->sleeps_until_ns = at_ns; /* so one wake is enough for all later timers that follow */
        hfi_park_wake(&dog->park);
    }
    hfi_mutex_unlock(&dog->mutex);
    return was_armed;
}

int64_t hfi_watchdog_run_due(struct hfi_watchdog *dog)
{
    hfi_mutex_lock(&dog->mutex);
    run_due_locked(dog);
    int64_t next_ns = hfi_timers_next_ns(&dog->timers);
    hfi_mutex_unlock(&dog->mutex);
    return next_ns;
}
