/* SPDX-License-Identifier: MIT */
/* paired.c - an older library against this one, with the programs of this one: each question with the one and the
 * other in turns, in random order. Compared is the ratio to the yardstick, where there is one, else the value. */
#include "bench/crew.h"
#include "bench/dear.h"
#include "bench/harness.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_ROWS 64
#define WITHIN    0.02

enum side { NEW, OLD };

struct row {
    char name[96], unit[32];
    struct bench_goal goal; /* for new / old */
    bool has_yardstick;
    int seen[2];
    double values[2][BENCH_MOST_TURNS], yardsticks[2][BENCH_MOST_TURNS];
};

struct scene {
    struct bench bench;
    char folder[512];                                /* for the answers of the turns */
    char programs[PATH_MAX], libraries[2][PATH_MAX]; /* where they are */
    const char *question;
    enum side side; /* that has its turn */
    struct row rows[MOST_ROWS];
    int count;
};

/* In a child: becomes the question's program, for one round. */
static int become(void *arg)
{
    struct scene *scene = arg;
    char path[PATH_MAX + 64], seed[32];
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)snprintf(path, sizeof path, "%s/%s", scene->programs, scene->question);
    (void)snprintf(seed, sizeof seed, "%u", (unsigned)(scene->bench.random >> 32));
    (void)setenv("LD_LIBRARY_PATH", scene->libraries[scene->side], 1);
    (void)execl(path, path, scene->bench.quick ? "--quick" : "--full", "--rounds", "1", "--out",
                scene->folder, "--seed", seed, scene->bench.dear ? "--dear" : (char *)0, (char *)0);
    bench_die("cannot start %s", path);
}

/* What follows `"name": ` in a line of a file of answers; NULL: it has no such field. */
static const char *field(const char *line, const char *name)
{
    char key[48];
    (void)snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = strstr(line, key);
    return found != NULL ? found + strlen(key) : NULL;
}

static bool copy_text(const char *line, const char *name, char *out, size_t room)
{
    const char *text = field(line, name);
    if (text == NULL || text[0] != '"')
        return false;
    (void)snprintf(out, room, "%.*s", (int)strcspn(text + 1, "\""), text + 1);
    return true;
}

static double number_of(const char *line, const char *name)
{
    const char *text = field(line, name);
    return text != NULL ? strtod(text, NULL) : 0;
}

/* A rate is to be as good as it was, and so is what has a goal; the others are told without a verdict. */
static struct bench_goal goal_of(const char *line, const char *unit)
{
    char goal[32] = "";
    size_t length = strlen(unit);
    (void)copy_text(line, "goal", goal, sizeof goal);
    if (goal[0] == '<')
        return AT_MOST(1 + WITHIN);
    return goal[0] == '>' || (length > 2 && strcmp(unit + length - 2, "/s") == 0) ? AT_LEAST(1 - WITHIN)
                                                                                  : NO_GOAL;
}

static struct row *row_of(struct scene *scene, const char *line)
{
    struct row row = {.has_yardstick = field(line, "ratio") != NULL};
    if (!copy_text(line, "row", row.name, sizeof row.name) ||
        !copy_text(line, "unit", row.unit, sizeof row.unit))
        return NULL;
    for (int i = 0; i < scene->count; i++)
        if (strcmp(scene->rows[i].name, row.name) == 0)
            return &scene->rows[i];
    if (scene->count == MOST_ROWS)
        bench_die("%s has too many rows", scene->question);
    row.goal = goal_of(line, row.unit);
    scene->rows[scene->count] = row;
    return &scene->rows[scene->count++];
}

static void read_answers(struct scene *scene, int round)
{
    char path[600], line[1024], said[PATH_MAX] = "", library[PATH_MAX] = "";
    struct bench child = scene->bench;
    enum side side = scene->side;
    child.folder = scene->folder;
    bench_answers_path(&child, scene->question, path, sizeof path);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)copy_text(line, "library", said, sizeof said);
        struct row *row = row_of(scene, line);
        if (row == NULL || row->seen[side] != round)
            continue;
        row->values[side][round] = number_of(line, row->has_yardstick ? "ratio" : "value");
        row->yardsticks[side][round] = row->has_yardstick ? number_of(line, "yardstick_value") : 1;
        row->seen[side]++;
    }
    if (file == NULL)
        bench_die("%s left no %s", scene->question, path);
    (void)fclose(file);
    size_t length = strlen(scene->libraries[side]);
    if (realpath(said, library) == NULL || strncmp(library, scene->libraries[side], length) != 0 ||
        library[length] != '/')
        bench_die("%s ran with %s, not with that of %s", scene->question, said, scene->libraries[side]);
}

/* Both sides have the same yardstick: what differs in it between them is the machine's. */
static void print_row(struct scene *scene, const struct row *row)
{
    struct bench *bench = &scene->bench;
    char name[160];
    double moved[BENCH_MOST_TURNS];
    int rounds = bench->rounds;
    (void)snprintf(name, sizeof name, "%s: %s", scene->question, row->name);
    for (int i = 0; i < row->seen[OLD]; i++)
        if (!(row->values[OLD][i] > 0))
            rounds = 0;
    if (row->seen[NEW] != rounds || row->seen[OLD] != rounds) {
        bench_skip(bench, name, "no ratio: not in every turn, or 0");
        return;
    }
    for (int i = 0; i < rounds; i++)
        moved[i] = row->yardsticks[NEW][i] / row->yardsticks[OLD][i];
    struct bench_ratio ratio = bench_pair(bench, row->values[NEW], row->values[OLD], rounds);
    ratio.drift = bench_factor(bench_interval(moved, rounds, &bench->random));
    bench_row(bench, name, row->has_yardstick ? "x" : row->unit, row->goal, "before", ratio);
}

static void ask(struct scene *scene, const char *question)
{
    struct bench *bench = &scene->bench;
    scene->question = question;
    scene->count = 0;
    for (int round = 0; round < bench->rounds; round++) {
        bench_progress(bench, "%s, round %d of %d", question, round + 1, bench->rounds);
        enum side first = bench_random(&bench->random) % 2 == 0 ? NEW : OLD;
        for (int i = 0; i < 2; i++) {
            scene->side = i == 0 ? first : (first == NEW ? OLD : NEW);
            bench_join(bench_fork(become, scene));
            read_answers(scene, round);
        }
    }
    bench_progress(bench, "%s", "");
    for (int i = 0; i < scene->count; i++)
        print_row(scene, &scene->rows[i]);
}

/* Where the programs and both libraries are. */
static void find(struct scene *scene, const char *old_build)
{
    char path[2 * PATH_MAX];
    Dl_info library;
    ssize_t length = readlink("/proc/self/exe", scene->programs, sizeof scene->programs - 1);
    if (length <= 0 || dladdr((void *)(uintptr_t)&hf_version, &library) == 0 ||
        realpath(library.dli_fname, scene->libraries[NEW]) == NULL ||
        strstr(library.dli_fname, ".so") == NULL)
        bench_die("paired needs a shared library of its own");
    *strrchr(scene->programs, '/') = '\0';
    *strrchr(scene->libraries[NEW], '/') = '\0';
    if (realpath(old_build, scene->libraries[OLD]) == NULL)
        bench_die("there is no folder %s", old_build);
    (void)snprintf(path, sizeof path, "%s%s", scene->libraries[OLD], strrchr(library.dli_fname, '/'));
    if (access(path, R_OK) != 0)
        bench_die("there is no %s: OLD_BUILD is a build folder whose library programs of today can load",
                  path);
    if (strcmp(scene->libraries[OLD], scene->libraries[NEW]) == 0)
        bench_die("%s is the build that it is to be compared with", old_build);
}

int main(int argc, char **argv)
{
    static struct scene scene;
    int words = 1;
    while (words < argc && strncmp(argv[words], "--", 2) != 0)
        words++;
    if (words < 3)
        bench_die("paired OLD_BUILD QUESTION... [--quick] [--rounds N] and others, which come last");
    for (int i = words; i < argc; i++)
        if (strcmp(argv[i], "--dear") == 0)
            bench_dear(argv);
    bench_begin(&scene.bench, argc - words + 1, argv + words - 1, "paired", "this library / the older one");
    (void)snprintf(scene.folder, sizeof scene.folder, "%s/paired", scene.bench.folder);
    find(&scene, argv[1]);
    for (int i = 2; i < words; i++)
        ask(&scene, argv[i]);
    return bench_end(&scene.bench);
}
