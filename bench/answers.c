/* SPDX-License-Identifier: MIT */
/* answers.c - see harness.h: the rows and points of a question, in the terminal and in its file. */
#include "bench/dear.h"
#include "bench/harness.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

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

void bench_open_answers(struct bench *bench)
{
    bench->rows_out = open_memstream(&bench->rows, &bench->rows_size);
    bench->points_out = open_memstream(&bench->points, &bench->points_size);
    bench->began_ns = bench_now_ns();
    (void)getloadavg(&bench->load_before, 1);
    read_ticks(&bench->jiffies_before, &bench->idle_before);
}

static void end_row(struct bench *bench, struct bench_goal goal, enum bench_verdict verdict)
{
    const char *sign = goal.sense == BENCH_AT_LEAST ? ">=" : "<=", *word = bench_verdict_names[verdict];
    bench->verdicts[verdict]++;
    if (verdict != BENCH_NONE) {
        (void)printf("  goal %s %g: %s", sign, goal.limit, verdict == BENCH_MISSED ? "MISSED" : word);
        (void)fprintf(bench->rows_out, ", \"goal\": \"%s %g\", \"verdict\": \"%s\"", sign, goal.limit, word);
    }
    (void)printf("\n");
    (void)fflush(stdout);
    (void)fprintf(bench->rows_out, "},\n");
}

void bench_row(struct bench *bench, const char *row, const char *unit, struct bench_goal goal,
               const char *yardstick, struct bench_ratio ratio)
{
    (void)printf("  %-54s %11.*f %-10s %s %.*f; x %.3g", row, ratio.value < 100 ? 2 : 0, ratio.value, unit,
                 yardstick, ratio.other < 100 ? 2 : 0, ratio.other, ratio.ratio);
    (void)fprintf(bench->rows_out,
                  "    {\"row\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"yardstick\": \"%s\", "
                  "\"yardstick_value\": %.6g, \"ratio\": %.4g",
                  row, ratio.value, unit, yardstick, ratio.other, ratio.ratio);
    if (ratio.turns != 0)
        (void)fprintf(bench->rows_out, ", \"turns\": %d", ratio.turns);
    if (isfinite(ratio.interval.high)) {
        (void)printf(" (%.3g .. %.3g)", ratio.interval.low, ratio.interval.high);
        (void)fprintf(bench->rows_out, ", \"low\": %.4g, \"high\": %.4g, \"drift\": %.4g", ratio.interval.low,
                      ratio.interval.high, ratio.drift);
    }
    if (ratio.drift > 1)
        (void)printf(", the yardstick moved x %.3g", ratio.drift);
    end_row(bench, goal, bench_judge(goal, ratio.interval, ratio.drift));
}

void bench_number(struct bench *bench, const char *row, double value, const char *unit,
                  struct bench_goal goal, const char *context)
{
    (void)printf("  %-54s %11.*f %-10s %s", row,
                 value >= 1000 || value == floor(value) ? 0
                 : value < 1                            ? 3
                                                        : 2,
                 value, unit, context != NULL ? context : "");
    (void)fprintf(bench->rows_out, "    {\"row\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"", row, value,
                  unit);
    if (context != NULL)
        (void)fprintf(bench->rows_out, ", \"context\": \"%s\"", context);
    end_row(bench, goal, bench_judge(goal, (struct bench_interval){value, value}, 1));
}

void bench_skip(struct bench *bench, const char *row, const char *why)
{
    (void)printf("  %-54s %11s %s\n", row, "-", why);
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
    (void)fprintf(bench->points_out,
                  "    {\"plot\": \"%s%s\", \"series\": \"%s\", \"x\": %g, \"y\": %.6g},\n", plot,
                  bench->dear ? "-dear" : "", series, x, y);
}

static void write_list(FILE *out, const char *name, FILE *stream, char **text, const size_t *size)
{
    (void)fclose(stream);
    size_t length = *size >= 2 ? *size - 2 : 0; /* without the last comma */
    (void)fprintf(out, "  \"%s\": [\n%.*s\n  ]", name, (int)length, *text);
    free(*text);
}

void bench_answers_path(const struct bench *bench, const char *question, char *path, size_t room)
{
    (void)snprintf(path, room, "%s/%s%s.json", bench->folder, question, bench->dear ? "-dear" : "");
}

/* Seen from the project's folder, if it is below that. */
static const char *short_path(const char *path)
{
    static char here[512];
    size_t length = getcwd(here, sizeof here) != NULL ? strlen(here) : 0;
    return strncmp(path, here, length) == 0 && path[length] == '/' ? path + length + 1 : path;
}

static void write_circumstances(const struct bench *bench, FILE *out, double load)
{
    char day[32];
    struct utsname machine;
    Dl_info library = {.dli_fname = ""};
    time_t now = time(NULL);
    struct tm parts;
    long all, idle;
    (void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
    (void)uname(&machine);
    (void)dladdr((void *)(uintptr_t)&hf_version, &library);
    read_ticks(&all, &idle);
    double busy = 1 - (double)(idle - bench->idle_before) / (double)(all - bench->jiffies_before + 1);
    (void)fprintf(
        out,
        "{\n  \"question\": \"%s\",\n  \"mode\": \"%s\",\n  \"wakeups\": \"%s\",\n  \"when\": \"%s\",\n"
        "  \"took_s\": %.1f,\n  \"seed\": %" PRIu64 ",\n  \"library\": \"%s\",\n  \"kernel\": \"%s\",\n"
        "  \"cpus\": %ld,\n  \"load_before\": %.2f,\n  \"load_after\": %.2f,\n  \"cpus_busy\": %.2f,\n"
        "  \"void\": \"%s\",\n",
        bench->question, bench->quick ? "quick" : "full", bench->dear ? "dear" : "as they are", day,
        (double)(bench_now_ns() - bench->began_ns) / 1e9, bench->seed, short_path(library.dli_fname),
        machine.release, sysconf(_SC_NPROCESSORS_ONLN), bench->load_before, load, busy, bench->void_why);
}

int bench_end(struct bench *bench)
{
    char path[512];
    double load = 0;
    (void)getloadavg(&load, 1);
    bench_answers_path(bench, bench->question, path, sizeof path);
    FILE *out = fopen(path, "we");
    if (out == NULL)
        bench_die("cannot write %s", path);
    write_circumstances(bench, out, load);
    write_list(out, "rows", bench->rows_out, &bench->rows, &bench->rows_size);
    (void)fprintf(out, ",\n");
    write_list(out, "points", bench->points_out, &bench->points, &bench->points_size);
    (void)fprintf(out, "\n}\n");
    if (fclose(out) != 0)
        bench_die("cannot write %s", path);
    (void)printf("  (%d goals met, %d missed, %d open, %d void; load average before %.1f, after %.1f)\n",
                 bench->verdicts[BENCH_MET], bench->verdicts[BENCH_MISSED], bench->verdicts[BENCH_OPEN],
                 bench->verdicts[BENCH_VOID], bench->load_before, load);
    if (bench->dear)
        bench_dear_print();
    if (bench->void_why[0] != '\0')
        (void)printf("  VOID, nothing of it counts: %s\n", bench->void_why);
    return 0;
}
