/* SPDX-License-Identifier: MIT */
/* harness.c - see harness.h. */
#include "bench/harness.h"

#include "bench/dear.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void bench_die(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    (void)fflush(stdout);
    (void)fputs("\nbench: ", stderr);
    (void)vfprintf(stderr, format, words);
    (void)fputc('\n', stderr);
    va_end(words);
    _Exit(1);
}

void bench_must(hf_status status, const hf_error *error, const char *what)
{
    if (status != HF_OK)
        bench_die("%s: %s %s", what, hf_status_name(status), error != NULL ? error->message : "");
}

hf_client *bench_client(const char *url, const hf_client_options *options)
{
    hf_client *client;
    hf_error error;
    bench_must(hf_client_open(url, options, &client, &error), &error, "open");
    return client;
}

int64_t bench_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void bench_sleep(double seconds)
{
    struct timespec length = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
    while (nanosleep(&length, &length) != 0)
        ;
}

double bench_cpu_seconds(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

void bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= 0)
        CPU_SET((size_t)cpu, &set);
    else
        for (size_t i = 0; i < (size_t)sysconf(_SC_NPROCESSORS_CONF); i++)
            CPU_SET(i, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_die("cannot pin to cpu %d", cpu);
}

uint64_t bench_option(const char *option, const char *text, uint64_t low, uint64_t most)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number =
        text != NULL && isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
    if (end == NULL || *end != '\0' || errno != 0 || number < low || number > most)
        bench_die("%s wants a number from %" PRIu64 " to %" PRIu64 "%s%s", option, low, most,
                  text != NULL ? ", not " : "", text != NULL ? text : "");
    return number;
}

static void read_options(struct bench *bench, int argc, char **argv)
{
    uint64_t rounds = 0;
    bench->seed = (uint64_t)bench_now_ns() % 1000000000;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench->quick = true;
        else if (strcmp(argv[i], "--full") == 0)
            bench->quick = false;
        else if (strcmp(argv[i], "--dear") == 0)
            bench->dear = true;
        else if (strcmp(argv[i], "--rounds") == 0)
            rounds = bench_option("--rounds", argv[++i], 1, BENCH_MOST_TURNS);
        else if (strcmp(argv[i], "--seed") == 0)
            bench->seed = bench_option("--seed", argv[++i], 0, UINT64_MAX);
        else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            bench->folder = argv[++i];
        else
            bench_die("%s knows --quick, --full, --dear, --rounds N, --seed N and --out FOLDER, not %s",
                      bench->question, argv[i]);
    }
    bench->rounds = rounds != 0 ? (int)rounds : bench->quick ? 5 : 25;
    bench->seconds = bench->quick ? 0.15 : 0.28;
    bench->random = bench->seed;
}

void bench_begin(struct bench *bench, int argc, char **argv, const char *question, const char *words)
{
    *bench = (struct bench){.question = question, .folder = "build/bench"};
    read_options(bench, argc, argv);
    if (bench->dear)
        bench_dear(argv);
    (void)mkdir(bench->folder, 0777);
    if (access(bench->folder, W_OK) != 0)
        bench_die("%s is no folder to write to", bench->folder);
    bench_open_answers(bench);
    (void)printf("\n%s%s: %s (--seed %" PRIu64 ")\n", question, bench->dear ? ", each wake-up dear" : "",
                 words, bench->seed);
    (void)fflush(stdout);
}

void bench_progress(struct bench *bench, const char *format, ...)
{
    if (!isatty(2))
        return;
    va_list words;
    va_start(words, format);
    (void)fprintf(stderr, "\r\033[K  %s: ", bench->question);
    (void)vfprintf(stderr, format, words);
    (void)fprintf(stderr, "\r");
    va_end(words);
}

void bench_warm_up(const struct bench *bench, const struct bench_side *sides, int count)
{
    for (int i = 0; i < count; i++)
        (void)sides[i].turn(sides[i].arg, bench->seconds / 4);
}

void bench_turns(struct bench *bench, const char *row, const struct bench_side *sides, int count, int rounds,
                 double (*values)[BENCH_MOST_TURNS])
{
    int order[8];
    for (int i = 0; i < count; i++)
        order[i] = i;
    for (int round = 0; round < rounds; round++) {
        bench_progress(bench, "%s, round %d of %d", row, round + 1, rounds);
        for (int left = count; left > 0; left--) {
            int pick = (int)(bench_random(&bench->random) % (uint64_t)left), side = order[pick];
            order[pick] = order[left - 1];
            order[left - 1] = side;
            double rate = sides[side].turn(sides[side].arg, bench->seconds);
            values[side][round] =
                rate > 0 ? rate : 1 / bench->seconds; /* the first step is still under way */
        }
    }
    bench_progress(bench, "%s", "");
}

struct bench_ratio bench_pair(struct bench *bench, const double *ours, const double *yardstick, int turns)
{
    double a[BENCH_MOST_TURNS], b[BENCH_MOST_TURNS], ratios[BENCH_MOST_TURNS];
    struct bench_ratio pair = {.turns = turns};
    for (int i = 0; i < turns; i++) {
        a[i] = ours[i];
        b[i] = yardstick[i];
        ratios[i] = a[i] / b[i];
    }
    pair.interval = bench_interval(ratios, turns, &bench->random);
    pair.drift = bench_drift(b, turns, &bench->random);
    pair.value = bench_median(a, turns);
    pair.other = bench_median(b, turns);
    pair.ratio = bench_median(ratios, turns);
    return pair;
}

struct bench_ratio bench_compare(struct bench *bench, const char *row, const char *unit,
                                 struct bench_goal goal, const struct bench_side *ours,
                                 const struct bench_side *yardstick)
{
    const struct bench_side sides[] = {*ours, *yardstick};
    double values[2][BENCH_MOST_TURNS];
    bench_warm_up(bench, sides, 2);
    bench_turns(bench, row, sides, 2, bench->rounds, values);
    struct bench_ratio pair = bench_pair(bench, values[0], values[1], bench->rounds);
    bench_row(bench, row, unit, goal, yardstick->name, pair);
    return pair;
}
