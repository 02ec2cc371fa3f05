/* SPDX-License-Identifier: MIT */
/* watchdog_test.c - the watchdog: with a clock of the test's own where that is enough, else the thread. */
#include "base/park.h"
#include "tests/support/fds.h"
#include "tests/support/takers.h"
#include "watchdog/watchdog.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct hfi_watchdog *dog;
    int64_t now_ns; /* of the test's own clock */
    struct hfi_clock clock;

    pthread_mutex_t mutex; /* guards all below */
    struct hfi_park park;
    size_t calls, fired, most_at_once;
    int64_t last_at_ns, worst_early_ns;
    bool in_order;
    bool deaf;               /* all signals were blocked where `due` ran */
    struct hfi_timer *again; /* armed once more from inside `due` */
    int64_t again_at_ns;
};

static int64_t test_clock(void *self)
{
    return ((struct fixture *)self)->now_ns;
}

static bool is_deaf(void)
{
    sigset_t mask;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number <= SIGRTMAX; number++) {
        bool of_libc = number >= 32 && number < SIGRTMIN;
        if (number != SIGKILL && number != SIGSTOP && !of_libc && sigismember(&mask, number) != 1)
            return false;
    }
    return true;
}

static void due(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns)
{
    struct fixture *f = self;
    (void)pthread_mutex_lock(&f->mutex);
    f->calls++;
    f->fired += count;
    f->most_at_once = count > f->most_at_once ? count : f->most_at_once;
    f->deaf = is_deaf();
    for (size_t i = 0; i < count; i++) {
        f->in_order = f->in_order && timers[i]->at_ns >= f->last_at_ns;
        f->last_at_ns = timers[i]->at_ns;
        int64_t early_ns = timers[i]->at_ns - now_ns;
        f->worst_early_ns = early_ns > f->worst_early_ns ? early_ns : f->worst_early_ns;
        if (timers[i] == f->again) {
            f->again = NULL;
            (void)hfi_watchdog_arm(f->dog, timers[i], f->again_at_ns);
        }
    }
    hfi_park_wake(&f->park);
    (void)pthread_mutex_unlock(&f->mutex);
}

static void start(struct fixture *f, bool own_clock)
{
    memset(f, 0, sizeof *f);
    f->in_order = true;
    (void)pthread_mutex_init(&f->mutex, NULL);
    hfi_park_init(&f->park);
    f->now_ns = 1000;
    f->clock = own_clock ? (struct hfi_clock){test_clock, f} : hfi_boottime;
    assert_int_equal(hfi_watchdog_start(&f->clock, due, f, &f->dog, NULL), HF_OK);
}

/* Waits until `fired` is so many; false after 20 s. */
static bool has_fired(struct fixture *f, size_t count)
{
    int64_t until_ns = hfi_after_ms(hfi_now(&hfi_boottime), 20000);
    for (;;) {
        (void)pthread_mutex_lock(&f->mutex);
        uint32_t ticket = hfi_park_epoch(&f->park);
        bool enough = f->fired >= count;
        (void)pthread_mutex_unlock(&f->mutex);
        if (enough || !hfi_park_wait(&f->park, ticket, until_ns))
            return enough;
    }
}

static void nothing_fires_before_its_time_and_everything_at_it(void **state)
{
    (void)state;
    struct fixture f;
    struct hfi_timer a = {0}, b = {0};
    start(&f, true);
    assert_false(hfi_watchdog_arm(f.dog, &a, 2000));
    assert_false(hfi_watchdog_arm(f.dog, &b, 3000));
    assert_int_equal(hfi_watchdog_run_due(f.dog), 2000);
    assert_int_equal(f.fired, 0);
    f.now_ns = 2000;
    assert_int_equal(hfi_watchdog_run_due(f.dog), 3000);
    assert_int_equal(f.fired, 1);
    assert_true(hfi_watchdog_arm(f.dog, &b, HFI_NEVER));
    f.now_ns = 9000;
    assert_int_equal(hfi_watchdog_run_due(f.dog), HFI_NEVER);
    assert_int_equal(f.fired, 1);
    assert_false(hfi_watchdog_arm(f.dog, &a, 9500)); /* it has fired, so it was not armed */
    hfi_watchdog_stop(f.dog);
}

static void due_timers_are_handed_out_in_batches_and_in_order(void **state)
{
    (void)state;
    struct fixture f;
    const size_t many = 1000;
    struct hfi_timer *timer = calloc(many, sizeof *timer);
    start(&f, true);
    for (size_t i = 0; i < many; i++)
        (void)hfi_watchdog_arm(f.dog, &timer[i], (int64_t)(2000 + (i * 7919) % many));
    f.now_ns = 5000;
    (void)hfi_watchdog_run_due(f.dog);
    assert_int_equal(f.fired, many);
    assert_int_equal(f.calls, 4);
    assert_int_equal(f.most_at_once, HFI_DUE_MOST);
    assert_true(f.in_order);
    hfi_watchdog_stop(f.dog);
    free(timer);
}

static void a_timer_may_be_armed_again_while_it_is_handed_out(void **state)
{
    (void)state;
    struct fixture f;
    struct hfi_timer a = {0};
    start(&f, true);
    f.again = &a;
    f.again_at_ns = 7000;
    (void)hfi_watchdog_arm(f.dog, &a, 2000);
    f.now_ns = 2500;
    assert_int_equal(hfi_watchdog_run_due(f.dog), 7000);
    assert_int_equal(f.fired, 1);
    hfi_watchdog_stop(f.dog);
}

static void the_thread_fires_a_timer_armed_sooner_than_the_one_it_sleeps_for(void **state)
{
    (void)state;
    struct fixture f;
    struct hfi_timer far = {0}, near = {0};
    start(&f, false);
    int64_t now_ns = hfi_now(&hfi_boottime);
    (void)hfi_watchdog_arm(f.dog, &far, now_ns + 3600 * 1000 * HFI_MS);
    (void)hfi_watchdog_arm(f.dog, &near, now_ns + 30 * HFI_MS);
    bool fired = has_fired(&f, 1);
    hfi_watchdog_stop(f.dog);
    assert_true(fired);
    assert_int_equal(f.fired, 1);
    assert_true(f.worst_early_ns <= 0);
}

static void no_signal_reaches_the_thread_and_the_starters_mask_is_kept(void **state)
{
    (void)state;
    struct fixture f;
    struct hfi_timer timer = {0};
    sigset_t before, after;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &before);
    start(&f, false);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &after);
    (void)hfi_watchdog_arm(f.dog, &timer, 0);
    bool fired = has_fired(&f, 1);
    hfi_watchdog_stop(f.dog);
    assert_true(fired);
    assert_true(f.deaf);
    for (int number = 1; number < SIGRTMAX; number++)
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
}

/* The number of times that the thread of that name has gone to sleep; -1: there is none. */
static long sleeps_of(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    long sleeps = -1;
    while (tasks != NULL && (task = readdir(tasks)) != NULL) {
        char path[300], line[200] = "";
        long count = -1;
        bool is_it = false;
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "re");
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            if (strncmp(line, "Name:\t", 6) == 0)
                is_it = strncmp(line + 6, name, strlen(name)) == 0;
            (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
        }
        if (status != NULL)
            (void)fclose(status);
        sleeps = is_it ? count : sleeps;
    }
    if (tasks != NULL)
        (void)closedir(tasks);
    return sleeps;
}

static void arming_later_timers_does_not_wake_the_thread(void **state)
{
    (void)state;
    struct fixture f;
    enum { MANY = 200 };
    struct hfi_timer near = {0}, timer[MANY] = {0};
    start(&f, false);
    int64_t now_ns = hfi_now(&hfi_boottime);
    (void)hfi_watchdog_arm(f.dog, &near, now_ns + 1800 * 1000 * HFI_MS);
    long before = sleeps_of("hf-watchdog");
    for (int i = 0; i < MANY; i++) {
        (void)hfi_watchdog_arm(f.dog, &timer[i], now_ns + (3600 * 1000 + i) * HFI_MS);
        HFT_UNTIL_TRUE(hft_is_asleep(hft_thread_named("hf-watchdog"))); /* if it was woken, that is counted */
    }
    long after = sleeps_of("hf-watchdog");
    hfi_watchdog_stop(f.dog);
    assert_true(before >= 0);
    /* It sleeps once more for the first timer, and looks up once a second. */
    assert_true(after - before < MANY / 4);
}

static void count_due(void *self, struct hfi_timer *const *timers, size_t count, int64_t now_ns)
{
    (void)timers, (void)now_ns;
    (void)atomic_fetch_add((_Atomic(long) *)self, (long)count);
}

struct armer {
    pthread_t thread;
    struct hfi_watchdog *dog;
    _Atomic(long) *fired;
    long fresh, disarmed; /* armings of an idle timer; those taken back */
    struct hfi_timer timer[500];
};

static void *arm_many(void *arg)
{
    struct armer *armer = arg;
    int64_t until_ns = hfi_after_ms(hfi_now(&hfi_boottime), 20000);
    for (int round = 0; round < 40 || (atomic_load(armer->fired) < 1000 && hfi_now(&hfi_boottime) < until_ns);
         round++)
        for (size_t i = 0; i < 500; i++) {
            int64_t at_ns = hfi_now(&hfi_boottime) + (int64_t)(i % 7) * 1000000;
            armer->fresh += hfi_watchdog_arm(armer->dog, &armer->timer[i], at_ns) ? 0 : 1;
        }
    for (size_t i = 0; i < 500; i++)
        armer->disarmed += hfi_watchdog_arm(armer->dog, &armer->timer[i], HFI_NEVER) ? 1 : 0;
    return NULL;
}

static void many_threads_arm_at_once_and_each_arming_fires_once_or_is_taken_back(void **state)
{
    (void)state;
    _Atomic(long) fired = 0;
    long fresh = 0, disarmed = 0;
    struct hfi_watchdog *dog;
    struct armer *armers = calloc(4, sizeof *armers);
    assert_int_equal(hfi_watchdog_start(&hfi_boottime, count_due, (void *)&fired, &dog, NULL), HF_OK);
    for (int i = 0; i < 4; i++) {
        armers[i].dog = dog;
        armers[i].fired = &fired;
        (void)pthread_create(&armers[i].thread, NULL, arm_many, &armers[i]);
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(armers[i].thread, NULL);
        fresh += armers[i].fresh;
        disarmed += armers[i].disarmed;
    }
    hfi_watchdog_stop(dog);
    free(armers);
    assert_true(fired >= 1000);
    assert_int_equal(fired + disarmed, fresh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_fires_before_its_time_and_everything_at_it),
        cmocka_unit_test(due_timers_are_handed_out_in_batches_and_in_order),
        cmocka_unit_test(a_timer_may_be_armed_again_while_it_is_handed_out),
        cmocka_unit_test(the_thread_fires_a_timer_armed_sooner_than_the_one_it_sleeps_for),
        cmocka_unit_test(no_signal_reaches_the_thread_and_the_starters_mask_is_kept),
        cmocka_unit_test(arming_later_timers_does_not_wake_the_thread),
        cmocka_unit_test(many_threads_arm_at_once_and_each_arming_fires_once_or_is_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
