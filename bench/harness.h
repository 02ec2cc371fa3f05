/* SPDX-License-Identifier: MIT */
/* harness.h - one question of the bench: its length, its comparisons in turns, and its answers in the terminal and
 * in bench/results/. A failure in here ends the program with a message. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <holdfast/holdfast.h>
#include <stdio.h>

struct bench {
    const char *question;
    bool quick;
    int rounds;     /* how often the sides take turns */
    double seconds; /* how long one turn lasts */
    const char *folder;
    char *rows, *points; /* JSON so far */
    size_t rows_size, points_size;
    FILE *rows_out, *points_out;
    int64_t began_ns;
    double load_before;
    long jiffies_before, idle_before;
    int met, missed;
    char void_why[160]; /* "": the run counts */
};

/* Reads --quick, --full and --out FOLDER, says the question. */
void bench_begin(struct bench *bench, int argc, char **argv, const char *question, const char *words);
int bench_end(struct bench *bench); /* writes FOLDER/QUESTION.json; the program's exit code */

struct bench_goal {
    enum { BENCH_NO_GOAL, BENCH_AT_LEAST, BENCH_AT_MOST } sense;
    double limit;
};
#define AT_LEAST(limit) ((struct bench_goal){BENCH_AT_LEAST, (limit)})
#define AT_MOST(limit)  ((struct bench_goal){BENCH_AT_MOST, (limit)})
#define NO_GOAL         ((struct bench_goal){BENCH_NO_GOAL, 0})

/* One side of a comparison: `turn` works for this many seconds after a warm-up, and returns its rate a second. */
typedef double bench_turn(void *arg, double seconds);
struct bench_side {
    const char *name;
    bench_turn *turn;
    void *arg;
};

struct bench_ratio {
    double value, other, ratio; /* medians; `ratio` is not value / other, but that of the turns' ratios */
};

/* Turns of Holdfast and the yardstick alternate; the goal is for the median of the ratios of neighbouring turns. At
 * most 32 rounds. */
struct bench_ratio bench_compare(struct bench *bench, const char *row, const char *unit,
                                 struct bench_goal goal, const struct bench_side *ours,
                                 const struct bench_side *yardstick);
/* A row like those of bench_compare whose ratio was found otherwise. */
void bench_row(struct bench *bench, const char *row, const char *unit, struct bench_goal goal,
               const char *yardstick, struct bench_ratio ratio);
/* A number by itself. `context` says what it is to be compared with; NULL: nothing. */
void bench_number(struct bench *bench, const char *row, double value, const char *unit,
                  struct bench_goal goal, const char *context);
/* A row that has no number here, and why. */
void bench_skip(struct bench *bench, const char *row, const char *why);
/* The yardstick is not valid: the measurements of this run do not count. */
void bench_void(struct bench *bench, const char *why);
void bench_point(struct bench *bench, const char *plot, const char *series, double x, double y);
void bench_progress(struct bench *bench, const char *format, ...) __attribute__((format(printf, 2, 3)));

__attribute__((format(printf, 1, 2), noreturn)) void bench_die(const char *format, ...);
void bench_must(hf_status status, const hf_error *error, const char *what); /* dies unless HF_OK */
hf_client *bench_client(const char *url, const hf_client_options *options);

int64_t bench_now_ns(void);
void bench_sleep(double seconds);
double bench_median(double *values, int count); /* sorts them */
double bench_cpu_seconds(void);                 /* used by this process, user and system */
void bench_pin(int cpu);                        /* this thread and those it starts; -1: anywhere */

#endif
