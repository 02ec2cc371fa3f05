/* SPDX-License-Identifier: MIT */
/* threads.c - threads that take signals, are canceled, end while they hold or wait, or have a very small stack. */
#include "tests/fault/fault.h"

#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static _Atomic(long) rings;

static void ring(int number)
{
    (void)number;
    atomic_fetch_add(&rings, 1);
}

struct shaken {
    struct hft_run *run;
    hf_client *client;
    pthread_t thread;
    int number;
    _Atomic(bool) over;
    int64_t worst_ns;
};

/* Waits of 100 ms on a held lock, and short sections of its own, while signals hit the thread. */
static void *be_shaken(void *arg)
{
    struct shaken *me = arg;
    char name[48];
    (void)snprintf(name, sizeof name, "own:%d", me->number);
    for (int i = 0; i < 6; i++) {
        hf_lease *lease;
        int64_t before = hft_true_ns();
        hf_status status = hf_lock_acquire(me->client, "held", HF_LOCK(.wait_ms = 100), &lease, NULL);
        int64_t took = hft_true_ns() - before;
        me->worst_ns = took > me->worst_ns ? took : me->worst_ns;
        HFT_CHECK(me->run, status == HF_TIMEOUT, "a wait ended with %s", hf_status_name(status));
        HFT_CHECK(me->run, took >= 100 * HFT_NS_PER_MS, "a wait of 100 ms took %lld us",
                  (long long)took / 1000);
        for (int k = 0; k < 20; k++) {
            status = hf_lock_acquire(me->client, name, HF_LOCK(.wait_ms = 2000), &lease, NULL);
            HFT_CHECK(me->run, status == HF_OK, "an acquire ended with %s", hf_status_name(status));
            if (status == HF_OK)
                HFT_CHECK(me->run, hf_lease_release(lease, NULL) == HF_OK, "a release failed");
        }
    }
    atomic_store(&me->over, true);
    return NULL;
}

static void signals(struct hft_run *run)
{
    enum { THREADS = 8 };
    struct sigaction action = {.sa_handler = ring}; /* without SA_RESTART */
    struct shaken all[THREADS] = {0};
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL),
              *other = hft_open(hft_server_url(server), NULL);
    hf_lease *held;
    int64_t worst = 0;
    (void)sigaction(SIGUSR1, &action, NULL);
    HFT_CHECK(run, hf_lock_acquire(other, "held", NULL, &held, NULL) == HF_OK, "no lease");
    for (int round = 0; round < run->times; round++) {
        for (int i = 0; i < THREADS; i++) {
            all[i] = (struct shaken){.run = run, .client = client, .number = i};
            (void)pthread_create(&all[i].thread, NULL, be_shaken, &all[i]);
        }
        for (bool over = false; !over;) {
            over = true;
            hft_sleep_ms(10);
            for (int i = 0; i < THREADS; i++) {
                over = over && atomic_load(&all[i].over);
                (void)pthread_kill(all[i].thread, SIGUSR1);
            }
        }
        for (int i = 0; i < THREADS; i++) {
            (void)pthread_join(all[i].thread, NULL);
            worst = all[i].worst_ns > worst ? all[i].worst_ns : worst;
        }
    }
    HFT_CHECK(run, hft_in_time(worst, 150 * HFT_NS_PER_MS), "a wait of 100 ms took %lld ms",
              (long long)worst / HFT_NS_PER_MS);
    HFT_CHECK(run, hf_lease_release(held, NULL) == HF_OK, "release failed");
    hft_note(run, "%ld signals, waits of 100 ms took at most %.0f ms", atomic_load(&rings),
             (double)worst / 1e6);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(other, NULL);
    hft_server_stop(server);
}

struct doomed {
    hf_client *client;
    int number;
    pthread_t thread;
    hf_lease *lease;
    _Atomic(bool) in;
};

static void *be_doomed(void *arg)
{
    struct doomed *me = arg;
    char name[48];
    (void)snprintf(name, sizeof name, "doomed:%d", me->number % 4);
    atomic_store(&me->in, true);
    hf_status status =
        hf_lock_acquire(me->client, name, HF_LOCK(.wait_ms = 60, .lease_ms = 1000), &me->lease, NULL);
    if (me->number % 3 == 0)
        pthread_exit(NULL); /* as a holder, or after a wait */
    if (status == HF_OK) {
        hf_lease *lease = me->lease;
        me->lease = NULL;
        (void)hf_lease_release(lease, NULL);
    }
    pthread_testcancel();
    return NULL;
}

static void cancels(struct hft_run *run)
{
    enum { THREADS = 32 };
    static struct doomed all[THREADS];
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    int before = hft_running_threads();
    for (int round = 0; round < run->times; round++) {
        for (int i = 0; i < THREADS; i++) {
            all[i] = (struct doomed){.client = client, .number = i + round};
            (void)pthread_create(&all[i].thread, NULL, be_doomed, &all[i]);
        }
        for (int i = 0; i < THREADS; i++) {
            if (hft_roll(run, 4) == 0)
                hft_sleep_ms(hft_roll(run, 3));
            (void)pthread_cancel(all[i].thread);
        }
        for (int i = 0; i < THREADS; i++) {
            (void)pthread_join(all[i].thread, NULL);
            if (all[i].lease != NULL) { /* a lease outlives its thread */
                hf_status status = hf_lease_release(all[i].lease, NULL);
                HFT_CHECK(run, status == HF_OK, "the lease of a thread that ended: %s",
                          hf_status_name(status));
            }
        }
    }
    int64_t left = hft_lock_keys_after(server, 2000);
    HFT_CHECK(run, left == 0, "%lld keys are left", (long long)left);
    HFT_CHECK(run, hft_comes_down_to(hft_running_threads, before), "threads are left");
    hf_stats stats;
    hf_client_stats(client, &stats);
    HFT_CHECK(run, stats.held == 0 && stats.waiting == 0, "%llu held, %llu wait, says the client",
              (unsigned long long)stats.held, (unsigned long long)stats.waiting);
    hft_note(run, "%d threads canceled", run->times * THREADS);
    HFT_CHECK(run, hf_client_close(client, NULL) == HF_OK, "close was not clean");
    hft_server_stop(server);
}

static hf_status load(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_set(loading, "small", 5);
}

static void *use_little(void *arg)
{
    struct hft_run *run = arg;
    const char *url = getenv("HFT_URL");
    hf_client *client;
    hf_lease *lease;
    hf_value *value;
    hf_error error;
    hf_status status = hf_client_open(url, NULL, &client, &error);
    HFT_CHECK(run, status == HF_OK, "open: %s: %s", hf_status_name(status), error.message);
    if (status != HF_OK)
        return NULL;
    status = hf_lock_acquire(client, "small", HF_LOCK(.wait_ms = 3000), &lease, &error);
    HFT_CHECK(run, status == HF_OK, "acquire: %s", hf_status_name(status));
    if (status == HF_OK) {
        HFT_CHECK(run, hf_lease_verify(lease, NULL) == HF_OK, "verify failed");
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "release failed");
    }
    status = hf_fetch(client, "page", HF_FETCH(.load = load), &value, &error);
    HFT_CHECK(run, status == HF_OK, "fetch: %s", hf_status_name(status));
    if (status == HF_OK)
        hf_value_free(value);
    HFT_CHECK(run, hf_client_check(client, NULL, NULL, NULL) != HF_INTERNAL, "check");
    (void)hf_client_close(client, NULL);
    return NULL;
}

static void small_stacks(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    pthread_attr_t small;
    (void)setenv("HFT_URL", hft_server_url(server), 1);
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 65536);
    for (int round = 0; round < run->times; round++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, use_little, run) != 0) {
            hft_broken(run, "no thread with 64 KiB");
            break;
        }
        (void)pthread_join(thread, NULL);
    }
    (void)pthread_attr_destroy(&small);
    hft_note(run, "%d times", run->times);
    hft_server_stop(server);
}

const struct hft_named hft_thread_faults[] = {
    {"signals", "signals without SA_RESTART at 100 Hz shorten and stretch no wait", signals, 1, 30,
     HFT_MEASURES},
    {"cancels", "pthread_cancel and pthread_exit anywhere leave no lock, no place in a queue, no thread",
     cancels, 6, 320, 0},
    {"small-stacks", "64 KiB of stack are enough for every call", small_stacks, 3, 100, 0},
    {.name = NULL}};
