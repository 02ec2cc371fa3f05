/* SPDX-License-Identifier: MIT */
/* harness.c - see harness.h. */
#include "bench/harness.h"

#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROUNDS 32

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

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Reads all CPUs' ticks since boot, and the idle ones among them. */
static void read_ticks(long *all, long *idle)
{
    long user = 0, nice = 0, system = 0, rest = 0, io = 0, irq = 0, soft = 0, steal = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (file == NULL || fscanf(file, "cpu %ld %ld %ld %ld %ld %ld %ld %ld", &user, &nice, &system, &rest, &io,
                               &irq, &soft, &steal) != 8)
        bench_die("cannot read /proc/stat");
    (void)fclose(file);
    *all = user + nice + system + rest + io + irq + soft + steal;
    *idle = rest + io;
}

void bench_begin(struct bench *bench, int argc, char **argv, const char *question, const char *words)
{
    *bench = (struct bench){.question = question, .folder = "build/bench"};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            bench->quick = true;
        else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc)
            bench->folder = argv[++i];
        else if (strcmp(argv[i], "--full") != 0)
            bench_die("%s knows --quick, --full and --out FOLDER, not %s", question, argv[i]);
    }
    (void)mkdir(bench->folder, 0777);
    if (access(bench->folder, W_OK) != 0)
        bench_die("%s is no folder to write to", bench->folder);
    bench->rounds = bench->quick ? 5 : 25;
    bench->seconds = bench->quick ? 0.15 : 0.28;
    bench->rows_out = open_memstream(&bench->rows, &bench->rows_size);
    bench->points_out = open_memstream(&bench->points, &bench->points_size);
    bench->began_ns = bench_now_ns();
    (void)getloadavg(&bench->load_before, 1);
    read_ticks(&bench->jiffies_before, &bench->idle_before);
    (void)printf("\n%s: %s\n", question, words);
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

static const char *verdict(struct bench *bench, struct bench_goal goal, double value)
{
    if (goal.sense == BENCH_NO_GOAL)
        return "";
    bool met = goal.sense == BENCH_AT_LEAST ? value >= goal.limit : value <= goal.limit;
    bench->met += met ? 1 : 0;
    bench->missed += met ? 0 : 1;
    return met ? "met" : "MISSED";
}

static void print_goal(struct bench *bench, struct bench_goal goal, double value)
{
    const char *word = verdict(bench, goal, value);
    if (goal.sense != BENCH_NO_GOAL)
        (void)printf("  goal %s %g: %s", goal.sense == BENCH_AT_LEAST ? ">=" : "<=", goal.limit, word);
    (void)printf("\n");
    (void)fflush(stdout);
    if (goal.sense != BENCH_NO_GOAL)
        (void)fprintf(bench->rows_out, ", \"goal\": \"%s %g\", \"met\": %s",
                      goal.sense == BENCH_AT_LEAST ? ">=" : "<=", goal.limit,
                      word[0] == 'm' ? "true" : "false");
    (void)fprintf(bench->rows_out, "},\n");
}

/* `middle_half`: two numbers, or NULL. */
static void print_ratio(struct bench *bench, const char *row, const char *unit, const char *yardstick,
                        struct bench_ratio ratio, const double *middle_half)
{
    (void)printf("  %-46s %11.0f %-10s %s %.0f; x %.3g", row, ratio.value, unit, yardstick, ratio.other,
                 ratio.ratio);
    (void)fprintf(bench->rows_out,
                  "    {\"row\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"yardstick\": \"%s\", "
                  "\"yardstick_value\": %.6g, \"ratio\": %.4g",
                  row, ratio.value, unit, yardstick, ratio.other, ratio.ratio);
    if (middle_half != NULL) {
        (void)printf(" (%.3g .. %.3g)", middle_half[0], middle_half[1]);
        (void)fprintf(bench->rows_out, ", \"quarter\": %.4g, \"three_quarters\": %.4g, \"rounds\": %d",
                      middle_half[0], middle_half[1], bench->rounds);
    }
}

struct bench_ratio bench_compare(struct bench *bench, const char *row, const char *unit,
                                 struct bench_goal goal, const struct bench_side *ours,
                                 const struct bench_side *yardstick)
{
    double a[MAX_ROUNDS], b[MAX_ROUNDS], ratio[MAX_ROUNDS];
    (void)ours->turn(ours->arg, bench->seconds / 4);
    (void)yardstick->turn(yardstick->arg, bench->seconds / 4);
    for (int i = 0; i < bench->rounds; i++) {
        bench_progress(bench, "%s, round %d of %d", row, i + 1, bench->rounds);
        a[i] = ours->turn(ours->arg, bench->seconds);
        b[i] = yardstick->turn(yardstick->arg, bench->seconds);
        ratio[i] = a[i] / b[i];
    }
    bench_progress(bench, "%s", "");
    struct bench_ratio middle = {bench_median(a, bench->rounds), bench_median(b, bench->rounds),
                                 bench_median(ratio, bench->rounds)}; /* sorted now: lowest first */
    const double middle_half[] = {ratio[bench->rounds / 4], ratio[bench->rounds - 1 - bench->rounds / 4]};
    print_ratio(bench, row, unit, yardstick->name, middle, middle_half);
    print_goal(bench, goal, middle.ratio);
    return middle;
}

void bench_row(struct bench *bench, const char *row, const char *unit, struct bench_goal goal,
               const char *yardstick, struct bench_ratio ratio)
{
    print_ratio(bench, row, unit, yardstick, ratio, NULL);
    print_goal(bench, goal, ratio.ratio);
}

void bench_number(struct bench *bench, const char *row, double value, const char *unit,
                  struct bench_goal goal, const char *context)
{
    (void)printf("  %-46s %11.*f %-10s %s", row,
                 value >= 1000 || value == floor(value) ? 0
                 : value < 1                            ? 3
                                                        : 2,
                 value, unit, context != NULL ? context : "");
    (void)fprintf(bench->rows_out, "    {\"row\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", row, value,
                  unit);
    if (context != NULL)
        (void)fprintf(bench->rows_out, ", \"context\": \"%s\"", context);
    print_goal(bench, goal, value);
}

void bench_skip(struct bench *bench, const char *row, const char *why)
{
    (void)printf("  %-46s %11s %s\n", row, "-", why);
    (void)fflush(stdout);
    (void)fprintf(bench->rows_out, "    {\"row\": \"%s\", \"skipped\": \"%s\"},\n", row, why);
}

void bench_void(struct bench *bench, const char *why)
{
    (void)snprintf(bench->void_why, sizeof bench->void_why, "%s", why);
    (void)printf("  VOID: %s\n", why);
    (void)fflush(stdout);
}

void bench_point(struct bench *bench, const char *plot, const char *series, double x, double y)
{
    (void)printf("  %-30s %-34s %10g %14.6g\n", plot, series, x, y);
    (void)fflush(stdout);
    (void)fprintf(bench->points_out, "    {\"plot\": \"%s\", \"series\": \"%s\", \"x\": %g, \"y\": %.6g},\n",
                  plot, series, x, y);
}

static void write_list(FILE *out, const char *name, FILE *stream, char **text, const size_t *size)
{
    (void)fclose(stream);
    size_t length = *size >= 2 ? *size - 2 : 0; /* without the last comma */
    (void)fprintf(out, "  \"%s\": [\n%.*s\n  ]", name, (int)length, *text);
    free(*text);
}

int bench_end(struct bench *bench)
{
    char path[512], day[32];
    struct utsname machine;
    time_t now = time(NULL);
    struct tm parts;
    double load = 0;
    long all, idle;
    (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    (void)uname(&machine);
    (void)getloadavg(&load, 1);
    read_ticks(&all, &idle);
    (void)snprintf(path, sizeof path, "%s/%s.json", bench->folder, bench->question);
    FILE *out = fopen(path, "we");
    if (out == NULL)
        bench_die("cannot write %s", path);
    double busy = 1 - (double)(idle - bench->idle_before) / (double)(all - bench->jiffies_before + 1);
    (void)fprintf(
        out,
        "{\n  \"question\": \"%s\",\n  \"mode\": \"%s\",\n  \"when\": \"%s\",\n  \"took_s\": %.1f,\n"
        "  \"kernel\": \"%s\",\n  \"cpus\": %ld,\n  \"load_before\": %.2f,\n  \"load_after\": %.2f,\n"
        "  \"cpus_busy\": %.2f,\n  \"void\": \"%s\",\n",
        bench->question, bench->quick ? "quick" : "full", day,
        (double)(bench_now_ns() - bench->began_ns) / 1e9, machine.release, sysconf(_SC_NPROCESSORS_ONLN),
        bench->load_before, load, busy, bench->void_why);
    write_list(out, "rows", bench->rows_out, &bench->rows, &bench->rows_size);
    (void)fprintf(out, ",\n");
    write_list(out, "points", bench->points_out, &bench->points, &bench->points_size);
    (void)fprintf(out, "\n}\n");
    if (fclose(out) != 0)
        bench_die("cannot write %s", path);
    (void)printf("  (%d goals met, %d missed; load average before %.1f, after %.1f)\n", bench->met,
                 bench->missed, bench->load_before, load);
    if (bench->void_why[0] != '\0')
        (void)printf("  VOID, nothing of it counts: %s\n", bench->void_why);
    return 0;
}
