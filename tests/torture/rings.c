/* SPDX-License-Identifier: MIT */
/*
 * rings.c - processes that wait for each other, many rings at a time, and processes that never do.
 *
 *   torture rings   --count N: so many rings of two processes, and as many of three: each has one victim. --runs N: so many times
 *                several of eight locks are taken in one order, or as a set, with short patience and cancels: nobody is one.
 */
#include "tests/support/child.h"
#include "tests/support/server.h"
#include "tests/torture/ledger.h"
#include "tests/torture/oracle.h"
#include "tests/torture/rings.h"

#include <holdfast/holdfast.h>

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES = 3, THREADS = 24, DEADLOCK_MS = 50, ORDERED = 8, PATIENT_MS = 60000, NAME = 40 };

struct ring { /* in memory that outlives the processes */
    int size;
    _Atomic(int) holding;
    struct hft_player players[PROCESSES];
};

static struct {
    int count, runs, slack_ms;
    unsigned seed;
} plan = {.count = 1000, .runs = 10000, .slack_ms = 300};

static struct {
    _Atomic(int) runs_left, runs, refused, looked_at, victims, wrong; /* of those in order */
    _Atomic(int) next[PROCESSES];                          /* the next ring that a process plays in */
    struct ring rings[];
} *shared;

struct thread {
    pthread_t thread;
    hf_client *client;
    hf_cancel *cancel;
    int process;
    unsigned rng;
};

static void complain(const char *what, const char *why)
{
    (void)fprintf(stderr, "torture rings: %s: %s\n", what, why);
    (void)atomic_fetch_add(&shared->wrong, 1);
}

static void wait_a_little(void)
{
    struct timespec tick = {0, 500000};
    (void)nanosleep(&tick, NULL);
}

static void name_of(char name[NAME], int number, int player)
{
    (void)snprintf(name, NAME, "ring:%d:%d", number, player);
}

/* Holds the lock of its own, and wants that of the next player once all of them hold theirs. */
static void play(const struct thread *self, int number)
{
    struct ring *ring = &shared->rings[number];
    struct hft_player *me = &ring->players[self->process];
    char own[NAME], next[NAME];
    hf_lease *held = NULL, *wanted = NULL;
    hf_error error;
    name_of(own, number, self->process);
    name_of(next, number, (self->process + 1) % ring->size);
    if (hf_lock_acquire(self->client, own, HF_LOCK(.wait_ms = PATIENT_MS), &held, &error) != HF_OK)
        complain(own, error.message);
    (void)atomic_fetch_add(&ring->holding, 1);
    while (atomic_load(&ring->holding) < ring->size)
        wait_a_little();
    me->asked_ns = hft_now_ns();
    hf_status status = hf_lock_acquire(self->client, next, HF_LOCK(.wait_ms = PATIENT_MS), &wanted, &error);
    me->told_ns = hft_now_ns();
    me->end = status == HF_OK ? HFT_WENT_ON : status == HF_DEADLOCK ? HFT_VICTIM : HFT_ELSE;
    if (status != HF_OK)
        (void)snprintf(me->said, sizeof me->said, "%s", error.message);
    if (hf_lease_release(wanted, &error) != HF_OK)
        complain(next, error.message);
    if (hf_lease_release(held, &error) != HF_OK)
        complain(own, error.message);
}

static int roll(struct thread *self, int sides)
{
    return rand_r(&self->rng) % sides;
}

static hf_status take(struct thread *self, const char *name, hf_lease **lease, hf_error *error)
{
    static const int64_t waits_ms[] = {0, 1, 20, 60, 150, 400, PATIENT_MS, PATIENT_MS};
    int64_t asked_ns = hft_now_ns();
    hf_status status = hf_lock_acquire(self->client, name, HF_LOCK(.wait_ms = waits_ms[roll(self, 8)], .cancel = self->cancel), lease,
                                       error);
    if (hft_now_ns() - asked_ns > 2 * DEADLOCK_MS * HFT_MS)
        (void)atomic_fetch_add(&shared->looked_at, 1);
    return status;
}

/* Up to four locks, in the one order that all know; stays a moment, and gives them back. */
static void run_in_order(struct thread *self)
{
    static const char *const order[ORDERED] = {"order:0", "order:1", "order:2", "order:3", "order:4", "order:5", "order:6", "order:7"};
    hf_lease *held[4];
    hf_error error;
    int count = 0, first = roll(self, ORDERED - 3);
    hf_status status = HF_OK;
    if (roll(self, 5) == 0) {
        status = hf_multilock_acquire(self->client, order + first, 3, HF_LOCK(.wait_ms = 200, .cancel = self->cancel), &held[0], &error);
        count = status == HF_OK;
    }
    for (int at = first; count < 4 && at < ORDERED && status == HF_OK; at += 1 + roll(self, 3)) {
        if (count > 0 && hf_lease_fence(held[0]) == 0) /* a set: the next one comes behind all of it */
            at = at < first + 3 ? first + 3 : at;
        if (at < ORDERED)
            status = take(self, order[at], &held[count], &error);
        count += at < ORDERED && status == HF_OK;
    }
    bool may_be = status == HF_OK || status == HF_BUSY || status == HF_TIMEOUT || status == HF_CANCELED;
    if (status == HF_DEADLOCK)
        (void)atomic_fetch_add(&shared->victims, 1);
    if (!may_be)
        complain("in order", error.message);
    if (status != HF_OK)
        (void)atomic_fetch_add(&shared->refused, 1);
    for (int ticks = roll(self, 20); ticks >= 0; ticks--)
        wait_a_little();
    while (count > 0)
        if (hf_lease_release(held[--count], &error) != HF_OK)
            complain("a release", error.message);
    hf_cancel_reset(self->cancel);
    (void)atomic_fetch_add(&shared->runs, 1);
}

static void *work(void *arg)
{
    struct thread *self = arg;
    for (;;) {
        int number = atomic_fetch_add(&shared->next[self->process], 1);
        if (number >= 2 * plan.count)
            break;
        if (self->process < shared->rings[number].size)
            play(self, number);
    }
    while (atomic_fetch_sub(&shared->runs_left, 1) > 0)
        run_in_order(self);
    return NULL;
}

static _Noreturn void run_process(const char *url, int process)
{
    static struct thread threads[THREADS];
    hf_client *client;
    hf_error error;
    unsigned rng = plan.seed + 100 * (unsigned)process;
    if (hf_client_open(url, HF_CLIENT(.deadlock_ms = DEADLOCK_MS), &client, &error) != HF_OK) {
        complain("a client", error.message);
        _exit(1);
    }
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.client = client, .process = process, .rng = plan.seed + 100 * (unsigned)process + (unsigned)i};
        if (hf_cancel_open(client, &threads[i].cancel, &error) != HF_OK || pthread_create(&threads[i].thread, NULL, work, &threads[i]) != 0)
            _exit(1);
    }
    while (atomic_load(&shared->runs_left) > 0) {
        wait_a_little();
        if (rand_r(&rng) % 100 == 0 && atomic_load(&shared->next[process]) >= 2 * plan.count + THREADS)
            hf_cancel_fire(threads[rand_r(&rng) % THREADS].cancel);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i].thread, NULL);
        hf_cancel_close(threads[i].cancel);
    }
    if (hf_client_close(client, &error) != HF_OK)
        complain("a close", error.message);
    _exit(0);
}

struct tally {
    int rings, wrong;
    int64_t latest_ns;
};

static void judge(struct tally *tally)
{
    for (int n = 0; n < 2 * plan.count; n++) {
        const struct ring *ring = &shared->rings[n];
        char names[PROCESSES][NAME];
        const char *all[PROCESSES] = {names[0], names[1], names[2]};
        int64_t late_ns = 0, bound_ns = 2 * DEADLOCK_MS * HFT_MS + plan.slack_ms * HFT_MS;
        for (int i = 0; i < ring->size; i++)
            name_of(names[i], n, i);
        const char *wrong = hft_oracle_check_ring(ring->players, all, ring->size, bound_ns, &late_ns);
        tally->rings++;
        tally->latest_ns = late_ns > tally->latest_ns ? late_ns : tally->latest_ns;
        if (wrong != NULL && tally->wrong++ < 5)
            (void)fprintf(stderr, "torture rings: ring %d of %d: %s (%lld ms)\n", n, ring->size, wrong, (long long)(late_ns / HFT_MS));
    }
}

static bool read_plan(int argc, char **argv)
{
    static const struct option names[] = {{"count", 1, NULL, 'c'}, {"runs", 1, NULL, 'r'}, {"seed", 1, NULL, 'e'},
                                          {"slack-ms", 1, NULL, 's'}, {NULL, 0, NULL, 0}};
    plan.seed = (unsigned)time(NULL) % 100000;
    optind = 2;
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *end = NULL;
        long value = optarg != NULL ? strtol(optarg, &end, 10) : 0;
        if (name == '?' || end == optarg || *end != 0 || value < 1 || value > 1000000)
            return false;
        *(name == 'c' ? &plan.count : name == 'r' ? &plan.runs : name == 's' ? &plan.slack_ms : (int *)&plan.seed) = (int)value;
    }
    return optind == argc;
}

int hft_rings(int argc, char **argv)
{
    pid_t pids[PROCESSES];
    struct tally tally = {0};
    if (!read_plan(argc, argv)) {
        (void)fputs("usage: torture rings [--count N] [--runs N] [--slack-ms N] [--seed N]\n", stderr);
        return 64;
    }
    size_t size = sizeof *shared + (size_t)plan.count * 2 * sizeof shared->rings[0];
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int i = 0; i < 2 * plan.count; i++)
        shared->rings[i].size = 2 + i % 2;
    atomic_store(&shared->runs_left, plan.runs);
    int64_t began = hft_now_ns();
    struct hft_server *server = hft_server_start(NULL);
    for (int i = 0; i < PROCESSES; i++)
        if ((pids[i] = hft_fork()) == 0)
            run_process(hft_server_url(server), i);
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        if (status != 0)
            complain("a process", "it did not end well");
    }
    judge(&tally);
    int wrong = tally.wrong + atomic_load(&shared->wrong) + (plan.runs >= 500 && atomic_load(&shared->looked_at) == 0);
    (void)printf("torture rings   %s seconds=%.1f seed=%u rings=%d wrong=%d latest_ms=%lld (bound %d) "
                 "runs=%d refused=%d long=%d victims=%d\n",
                 wrong == 0 ? "ok    " : "FAILED", (double)(hft_now_ns() - began) / 1e9, plan.seed, tally.rings, tally.wrong,
                 (long long)(tally.latest_ns / HFT_MS), 2 * DEADLOCK_MS + plan.slack_ms, atomic_load(&shared->runs),
                 atomic_load(&shared->refused), atomic_load(&shared->looked_at), atomic_load(&shared->victims));
    hft_server_stop(server);
    (void)munmap(shared, size);
    return wrong == 0 ? 0 : 1;
}
