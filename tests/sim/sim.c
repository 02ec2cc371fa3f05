/* SPDX-License-Identifier: MIT */
/* sim.c - runs seeds: each history in a process of its own, so that whatever it leaves behind is gone with it. */
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

#define WORKERS_MOST 16
#define PATIENCE_S   60 /* for one history; then it is a violation too */

struct plan {
    uint64_t from, count, seconds;
    enum sim_profile profile;
    int workers;
    bool verbose, one;
};

struct board { /* shared by all processes */
    _Atomic(uint64_t) next, done, failed;
    uint64_t runs[SIM_PROFILES], grants[SIM_PROFILES], losses[SIM_PROFILES], violations[SIM_PROFILES];
    int64_t gaps[SIM_PROFILES];
    uint64_t acquires, fetches, loads, faults, events, commands, messages;
    uint64_t failed_seeds[16];
    char failures[16][440];
};

static struct board *board;
static struct sim_result *results; /* one for each worker, shared with its children */

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* False: it did not end by itself. */
static bool run_in_child(uint64_t seed, enum sim_profile profile, struct sim_result *result)
{
    int status;
    (void)fflush(NULL);
    result->failure[0] = 0;
    result->profile = SIM_PROFILES;
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(PATIENCE_S);
        sim_history_run(seed, profile, false, result);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void add(uint64_t *to, uint64_t what)
{
    (void)__atomic_add_fetch(to, what, __ATOMIC_RELAXED);
}

static void count(uint64_t seed, const struct sim_result *result)
{
    enum sim_profile p = result->profile < SIM_PROFILES ? result->profile : SIM_STORM;
    add(&board->runs[p], 1);
    add(&board->grants[p], result->grants);
    add(&board->losses[p], result->losses);
    add(&board->acquires, result->acquires);
    add(&board->fetches, result->fetches);
    add(&board->loads, result->loads);
    add(&board->faults, result->faults);
    add(&board->events, result->events);
    add(&board->commands, result->commands);
    add(&board->messages, result->messages);
    if (result->longest_gap > board->gaps[p])
        board->gaps[p] = result->longest_gap;
    if (result->failure[0] != 0) {
        uint64_t at = atomic_fetch_add(&board->failed, 1);
        add(&board->violations[p], 1);
        if (at < 16) {
            board->failed_seeds[at] = seed;
            (void)snprintf(board->failures[at], sizeof board->failures[at], "%s: %s", sim_profile_name(p),
                           result->failure);
        }
    }
    (void)atomic_fetch_add(&board->done, 1);
}

static void work(const struct plan *plan, int worker, double until)
{
    for (;;) {
        uint64_t number = atomic_fetch_add(&board->next, 1);
        if (number >= plan->count || seconds_now() >= until)
            return;
        struct sim_result *result = &results[worker];
        if (!run_in_child(plan->from + number, plan->profile, result))
            (void)snprintf(result->failure, sizeof result->failure, "the history crashed or never ends");
        count(plan->from + number, result);
    }
}

static void show_table(double took)
{
    (void)printf("\n%-10s %9s %10s %8s %12s %10s\n", "profile", "histories", "grants", "LOST", "longest gap",
                 "violations");
    for (int p = 0; p < SIM_PROFILES; p++)
        if (board->runs[p] > 0)
            (void)printf("%-10s %9" PRIu64 " %10" PRIu64 " %8" PRIu64 " %9.0f ms %10" PRIu64 "\n",
                         sim_profile_name((enum sim_profile)p), board->runs[p], board->grants[p],
                         board->losses[p], (double)board->gaps[p] / 1e6, board->violations[p]);
    (void)printf("%" PRIu64 " acquires, %" PRIu64 " fetches, %" PRIu64 " loads, %" PRIu64 " faults, %" PRIu64
                 " commands, %" PRIu64 " messages, %" PRIu64 " events; %.0f histories a second\n",
                 board->acquires, board->fetches, board->loads, board->faults, board->commands,
                 board->messages, board->events, (double)atomic_load(&board->done) / took);
}

static int run_all(const struct plan *plan)
{
    pid_t workers[WORKERS_MOST];
    double began = seconds_now(), until = plan->seconds > 0 ? began + (double)plan->seconds : 1e18;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    results =
        mmap(NULL, WORKERS_MOST * sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED || results == MAP_FAILED)
        return 1;
    for (int i = 0; i < plan->workers; i++) {
        workers[i] = fork();
        if (workers[i] == 0) {
            work(plan, i, until);
            _exit(0);
        }
    }
    int left = plan->workers;
    for (double shown = began; left > 0;) {
        const struct timespec moment = {0, 100000000};
        while (left > 0 && waitpid(-1, NULL, WNOHANG) > 0)
            left--;
        if (left > 0)
            (void)nanosleep(&moment, NULL);
        if (seconds_now() - shown < 2)
            continue;
        shown = seconds_now();
        (void)fprintf(stderr, "sim: %" PRIu64 " histories, %" PRIu64 " violations, %.0f s\n",
                      atomic_load(&board->done), atomic_load(&board->failed), shown - began);
    }
    uint64_t failed = atomic_load(&board->failed);
    show_table(seconds_now() - began);
    for (uint64_t i = 0; i < failed && i < 16; i++)
        (void)printf("VIOLATION seed %" PRIu64 " (%s)\n", board->failed_seeds[i], board->failures[i]);
    (void)printf("sim: %" PRIu64 " histories from seed %" PRIu64 ", %" PRIu64 " violations\n",
                 atomic_load(&board->done), plan->from, failed);
    if (failed > 0)
        (void)printf("replay one with: ./dev sim --seed %" PRIu64 "%s%s --verbose\n", board->failed_seeds[0],
                     plan->profile < SIM_PROFILES ? " --profile " : "",
                     plan->profile < SIM_PROFILES ? sim_profile_name(plan->profile) : "");
    return failed > 0;
}

static int run_one(const struct plan *plan)
{
    struct sim_result result;
    sim_history_run(plan->from, plan->profile, plan->verbose, &result);
    (void)printf("seed %" PRIu64 ": %s, %" PRIu64 " grants, %" PRIu64 " events, %.1f s of virtual time: %s\n",
                 plan->from, sim_profile_name(result.profile), result.grants, result.events,
                 (double)result.length / 1e9, result.failure[0] != 0 ? result.failure : "all promises kept");
    (void)fflush(NULL);
    _exit(result.failure[0] != 0);
}

static int usage(void)
{
    (void)fputs("sim [--seeds N] [--from S] [--seconds T] [--workers W] [--profile NAME]\n"
                "sim --seed S [--profile NAME] [--verbose]\nprofiles:",
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
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        uint64_t number = strtoull(value, NULL, 10);
        if (strcmp(argv[i], "--verbose") == 0) {
            plan.verbose = true;
            continue;
        }
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
