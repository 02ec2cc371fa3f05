/* SPDX-License-Identifier: MIT */
/* harness.h - one question of the bench: its length, its comparisons in turns, and its answers in the terminal and in
 * a file (answers.c). A failure in here ends the program with a message. */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include "bench/statistics.h"

#include <holdfast/holdfast.h>
#include <stdio.h>

struct bench {
    const char *question;
    bool quick, dear;      /* dear: see dear.h */
    int rounds;            /* how often the sides take turns, at most BENCH_MOST_TURNS */
    double seconds;        /* how long one turn lasts */
    uint64_t seed, random; /* of the order of the turns and the bootstrap */
    const char *folder;
    char *rows, *points; /* JSON so far */
    size_t rows_size, points_size;
    FILE *rows_out, *points_out;
    int64_t began_ns;
    double load_before;
    long jiffies_before, idle_before;
    int verdicts[BENCH_VERDICTS];
    char void_why[160]; /* "": the run counts */
};

/* Reads the options, says the question. */
void bench_begin(struct bench *bench, int argc, char **argv, const char *question, const char *words);
void bench_open_answers(struct bench *bench);
int bench_end(struct bench *bench); /* writes the file; the program's exit code */
/* FOLDER/QUESTION.json, and FOLDER/QUESTION-dear.json with dear wake-ups. */
void bench_answers_path(const struct bench *bench, const char *question, char *path, size_t room);

/* One side of a comparison: `turn` works for this many seconds after a warm-up, and returns its rate a second. */
typedef double bench_turn(void *arg, double seconds);
struct bench_side {
    const char *name;
    bench_turn *turn;
    void *arg;
};

struct bench_ratio {
    double value, other, ratio;     /* medians; `ratio` is not value / other, but that of the turns' ratios */
    struct bench_interval interval; /* of `ratio` */
    double drift;                   /* of the yardstick */
    int turns;                      /* 0: none of its own */
};

void bench_warm_up(const struct bench *bench, const struct bench_side *sides, int count);
/* In each round every side has a turn, in random order. values[side][round] */
void bench_turns(struct bench *bench, const char *row, const struct bench_side *sides, int count, int rounds,
                 double (*values)[BENCH_MOST_TURNS]);
/* What the turns of ours and of the yardstick say, neighbour by neighbour. */
struct bench_ratio bench_pair(struct bench *bench, const double *ours, const double *yardstick, int turns);
/* All of this: turns, a row. */
struct bench_ratio bench_compare(struct bench *bench, const char *row, const char *unit,
                                 struct bench_goal goal, const struct bench_side *ours,
                                 const struct bench_side *yardstick);
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
uint64_t bench_option(const char *option, const char *text, uint64_t low,
                      uint64_t most); /* a number, or it dies */
hf_client *bench_client(const char *url, const hf_client_options *options);

int64_t bench_now_ns(void);
void bench_sleep(double seconds);
double bench_cpu_seconds(void); /* used by this process, user and system */
void bench_pin(int cpu);        /* this thread and those it starts; -1: anywhere */

#endif
