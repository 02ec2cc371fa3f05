/* SPDX-License-Identifier: MIT */
/* sim.c - runs seeds in worker processes, and in each of those in batches. A batch is a process too: what its
 * histories leave behind ends with it, and a crash ends no other batch. */
#include "tests/sim/history.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS_MOST  16
#define FAILURES_MOST 16
#define BATCH         50
#define PATIENCE_S    60 /* for one history; then it is a violation too */

struct plan {
    uint64_t from, count, seconds;
    enum sim_profile profile;
    int workers;
    bool verbose, one, json, first; /* first: none is begun after a violation */
};

struct tally { /* one for each worker, written by its batches and read by all */
    _Atomic(uint64_t) done, failed;
    uint64_t runs[SIM_PROFILES], grants[SIM_PROFILES], losses[SIM_PROFILES], violations[SIM_PROFILES];
    int64_t gaps[SIM_PROFILES];
    uint64_t acquires, fetches, near, loads, faults, events, commands, messages, digest;
    uint64_t seed; /* that runs now */
    bool runs_now;
    uint64_t failed_seeds[FAILURES_MOST];
    char failures[FAILURES_MOST][440];
};

static struct shared {
    _Atomic(uint64_t) next;
    struct tally tallies[WORKERS_MOST];
} * shared;

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- a worker ---- */

static void note_failure(struct tally *tally, uint64_t seed, const char *failure)
{
    uint64_t at = atomic_fetch_add(&tally->failed, 1);
    if (at >= FAILURES_MOST)
        return;
    tally->failed_seeds[at] = seed;
    (void)snprintf(tally->failures[at], sizeof tally->failures[at], "%s", failure);
}

static void count(struct tally *tally, uint64_t seed, const struct sim_result *result)
{
    enum sim_profile p = result->profile;
    tally->runs[p]++;
    tally->grants[p] += result->grants;
    tally->losses[p] += result->losses;
    tally->acquires += result->acquires;
    tally->fetches += result->fetches;
    tally->near += result->near;
    tally->loads += result->loads;
    tally->faults += result->faults;
    tally->events += result->events;
    tally->commands += result->commands;
    tally->messages += result->messages;
    tally->digest += result->digest * (2 * seed + 1);
    if (result->longest_gap > tally->gaps[p])
        tally->gaps[p] = result->longest_gap;
    if (result->failure[0] != 0) {
        tally->violations[p]++;
        note_failure(tally, seed, result->failure);
    }
    (void)atomic_fetch_add(&tally->done, 1);
}

static void stop_if_first(const struct plan *plan)
{
    if (plan->first)
        atomic_store(&shared->next, plan->count);
}

static void run_batch(const struct plan *plan, struct tally *tally, double until)
{
    for (int i = 0; i < BATCH && seconds_now() < until; i++) {
        struct sim_result result;
        uint64_t number = atomic_fetch_add(&shared->next, 1);
        if (number >= plan->count)
            return;
        tally->seed = plan->from + number;
        tally->runs_now = true;
        (void)alarm(PATIENCE_S);
        sim_history_run(tally->seed, plan->profile, false, &result);
        tally->runs_now = false;
        count(tally, tally->seed, &result);
        if (result.failure[0] != 0) {
            stop_if_first(plan);
            return; /* what is broken there breaks nothing here */
        }
    }
}

static void work(const struct plan *plan, struct tally *tally, double until)
{
    while (atomic_load(&shared->next) < plan->count && seconds_now() < until) {
        int status = 0;
        (void)fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            run_batch(plan, tally, until);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            abort();
        if (tally->runs_now) {
            tally->runs_now = false;
            note_failure(tally, tally->seed, "the history crashed or never ends");
            stop_if_first(plan);
            (void)atomic_fetch_add(&tally->done, 1);
        }
    }
}

/* ---- all together ---- */

static struct tally *sum(const struct plan *plan)
{
    static struct tally all;
    memset(&all, 0, sizeof all);
    for (int i = 0; i < plan->workers; i++) {
        const struct tally *one = &shared->tallies[i];
        uint64_t failed = atomic_load(&one->failed);
        for (uint64_t j = 0; j < failed && j < FAILURES_MOST; j++)
            note_failure(&all, one->failed_seeds[j], one->failures[j]);
        (void)atomic_fetch_add(&all.failed, failed > FAILURES_MOST ? failed - FAILURES_MOST : 0);
        (void)atomic_fetch_add(&all.done, atomic_load(&one->done));
        for (int p = 0; p < SIM_PROFILES; p++) {
            all.runs[p] += one->runs[p];
            all.grants[p] += one->grants[p];
            all.losses[p] += one->losses[p];
            all.violations[p] += one->violations[p];
            all.gaps[p] = one->gaps[p] > all.gaps[p] ? one->gaps[p] : all.gaps[p];
        }
        all.acquires += one->acquires;
        all.fetches += one->fetches;
        all.near += one->near;
        all.loads += one->loads;
        all.faults += one->faults;
        all.events += one->events;
        all.commands += one->commands;
        all.messages += one->messages;
        all.digest += one->digest;
    }
    return &all;
}

static void show_table(const struct tally *all, double took)
{
    (void)printf("\n%-10s %9s %10s %8s %12s %10s\n", "profile", "histories", "grants", "LOST", "longest gap",
                 "violations");
    for (int p = 0; p < SIM_PROFILES; p++)
        if (all->runs[p] > 0)
            (void)printf("%-10s %9" PRIu64 " %10" PRIu64 " %8" PRIu64 " %9.0f ms %10" PRIu64 "\n",
                         sim_profile_name((enum sim_profile)p), all->runs[p], all->grants[p], all->losses[p],
                         (double)all->gaps[p] / 1e6, all->violations[p]);
    (void)printf("%" PRIu64 " acquires, %" PRIu64 " fetches, %" PRIu64 " from memory, %" PRIu64 " loads, %" PRIu64 " faults, %" PRIu64
                 " commands, %" PRIu64 " messages, %" PRIu64 " events; %.0f histories a second\n",
                 all->acquires, all->fetches, all->near, all->loads, all->faults, all->commands, all->messages,
                 all->events, (double)atomic_load(&all->done) / took);
}

static void show_json(const struct plan *plan, const struct tally *all, double took)
{
    uint64_t grants = 0, losses = 0;
    for (int p = 0; p < SIM_PROFILES; p++) {
        grants += all->grants[p];
        losses += all->losses[p];
    }
    (void)printf("{\"from\": %" PRIu64 ", \"seeds\": %" PRIu64 ", \"violations\": %" PRIu64
                 ", \"first_failed\": %" PRId64 ", \"grants\": %" PRIu64 ", \"lost\": %" PRIu64
                 ", \"acquires\": %" PRIu64 ", \"fetches\": %" PRIu64 ", \"loads\": %" PRIu64
                 ", \"faults\": %" PRIu64 ", \"commands\": %" PRIu64 ", \"messages\": %" PRIu64
                 ", \"events\": %" PRIu64 ", \"seconds\": %.1f, \"digest\": \"%016" PRIx64 "\"}\n",
                 plan->from, atomic_load(&all->done), atomic_load(&all->failed),
                 atomic_load(&all->failed) > 0 ? (int64_t)all->failed_seeds[0] : -1, grants, losses,
                 all->acquires, all->fetches, all->loads, all->faults, all->commands, all->messages,
                 all->events, took, all->digest);
}

static void show_progress(const struct plan *plan, double began, double until)
{
    uint64_t done = 0, failed = 0;
    double took = seconds_now() - began;
    for (int i = 0; i < plan->workers; i++) {
        done += atomic_load(&shared->tallies[i].done);
        failed += atomic_load(&shared->tallies[i].failed);
    }
    double left = done > 0 ? took * (double)(plan->count - done) / (double)done : 0;
    left = left > until - seconds_now() ? until - seconds_now() : left;
    (void)fprintf(stderr,
                  "sim: %" PRIu64 " of %" PRIu64 " histories, %" PRIu64 " violations, %.0f s, %.0f s left\n",
                  done, plan->count, failed, took, left);
}

static int run_one(const struct plan *plan)
{
    struct sim_result result;
    sim_history_run(plan->from, plan->profile, plan->verbose, &result);
    (void)printf("seed %" PRIu64 ": %s, %" PRIu64 " grants, %" PRIu64
                 " events, %.1f s of virtual time, digest %016" PRIx64 ": %s\n",
                 plan->from, sim_profile_name(result.profile), result.grants, result.events,
                 (double)result.length / 1e9, result.digest * (2 * plan->from + 1),
                 result.failure[0] != 0 ? result.failure : "all promises kept");
    (void)fflush(NULL);
    _exit(result.failure[0] != 0);
}

/* The history of the first, and how to see it again. */
static void show_failures(const struct plan *plan, const struct tally *all)
{
    struct plan first = {.from = all->failed_seeds[0], .profile = plan->profile, .verbose = true};
    uint64_t failed = atomic_load(&all->failed);
    if (failed == 0)
        return;
    (void)fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(PATIENCE_S);
        (void)run_one(&first);
    }
    if (child > 0)
        (void)waitpid(child, NULL, 0);
    for (uint64_t i = 0; i < failed && i < FAILURES_MOST; i++)
        (void)printf("VIOLATION seed %" PRIu64 " (%s)\n", all->failed_seeds[i], all->failures[i]);
    (void)printf("replay one with: ./dev sim --seed %" PRIu64 "%s%s --verbose\n", all->failed_seeds[0],
                 plan->profile < SIM_PROFILES ? " --profile " : "",
                 plan->profile < SIM_PROFILES ? sim_profile_name(plan->profile) : "");
}

static int run_all(const struct plan *plan)
{
    double began = seconds_now(), until = plan->seconds > 0 ? began + (double)plan->seconds : 1e18;
    double every = isatty(STDERR_FILENO) ? 2 : 10, shown = began;
    int left = plan->workers;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int i = 0; i < plan->workers; i++) {
        pid_t worker = fork();
        if (worker == 0) {
            work(plan, &shared->tallies[i], until);
            _exit(0);
        }
        left -= worker < 0;
    }
    while (left > 0) {
        const struct timespec moment = {0, 50000000};
        while (left > 0 && waitpid(-1, NULL, WNOHANG) > 0)
            left--;
        if (left > 0)
            (void)nanosleep(&moment, NULL);
        if (seconds_now() - shown < every)
            continue;
        shown = seconds_now();
        show_progress(plan, began, until);
    }
    double took = seconds_now() - began;
    const struct tally *all = sum(plan);
    uint64_t failed = atomic_load(&all->failed), done = atomic_load(&all->done);
    if (!plan->json)
        show_table(all, took);
    show_failures(plan, all);
    if (plan->json)
        show_json(plan, all, took);
    else
        (void)printf("sim: %" PRIu64 " histories from seed %" PRIu64 ", %" PRIu64
                     " violations, digest %016" PRIx64 "\n",
                     done, plan->from, failed, all->digest);
    return failed > 0 || (plan->seconds == 0 && done != plan->count);
}

static int list_profiles(void)
{
    for (int p = 0; p < SIM_PROFILES; p++)
        (void)puts(sim_profile_name((enum sim_profile)p));
    return 0;
}

static int usage(void)
{
    (void)fputs("sim [--seeds N] [--from S] [--seconds T] [--workers W] [--profile NAME] [--json] [--first]\n"
                "sim --seed S [--profile NAME] [--verbose]\nsim --profiles\nprofiles:",
                stderr);
    for (int p = 0; p < SIM_PROFILES; p++)
        (void)fprintf(stderr, " %s", sim_profile_name((enum sim_profile)p));
    (void)fputc('\n', stderr);
    return 2;
}

static bool take_profile(struct plan *plan, const char *name)
{
    for (int p = 0; p < SIM_PROFILES; p++)
        if (strcmp(name, sim_profile_name((enum sim_profile)p)) == 0)
            plan->profile = (enum sim_profile)p;
    return plan->profile < SIM_PROFILES;
}

int main(int argc, char **argv)
{
    struct plan plan = {.count = 1000, .from = 1, .profile = SIM_PROFILES, .workers = 2};
    if (argc == 2 && strcmp(argv[1], "--profiles") == 0)
        return list_profiles();
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        uint64_t number = strtoull(value, NULL, 10);
        bool verbose = strcmp(argv[i], "--verbose") == 0, json = strcmp(argv[i], "--json") == 0;
        bool first = strcmp(argv[i], "--first") == 0;
        plan.verbose = plan.verbose || verbose;
        plan.json = plan.json || json;
        plan.first = plan.first || first;
        if (verbose || json || first)
            continue;
        if (strcmp(argv[i], "--seeds") == 0)
            plan.count = number;
        else if (strcmp(argv[i], "--from") == 0)
            plan.from = number;
        else if (strcmp(argv[i], "--seconds") == 0)
            plan.seconds = number;
        else if (strcmp(argv[i], "--workers") == 0 && number >= 1 && number <= WORKERS_MOST)
            plan.workers = (int)number;
        else if (strcmp(argv[i], "--seed") == 0)
            plan.one = true, plan.from = number;
        else if (strcmp(argv[i], "--profile") != 0 || !take_profile(&plan, value))
            return usage();
        i++;
    }
    return plan.one ? run_one(&plan) : run_all(&plan);
}
