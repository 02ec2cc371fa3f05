/* SPDX-License-Identifier: MIT */
/* neighbours.c - other lock libraries, in the same minute: those of bench/neighbours/ that `./dev bench` could
 * install ($BENCH_NODE_PATH is where npm put them). For the others the table has their ratio to the plain loop. */
#include "bench/baton.h"
#include "bench/from_table.h"
#include "bench/on_one.h"
#include "bench/pairs.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SECTIONS 2048

static const struct neighbour {
    const char *name, *command, *probe;
} neighbours[] = {
    {"warlock (node)", "node bench/neighbours/warlock.js",
     "node -e 'require(\"node-redis-warlock\");require(\"redis\")'"},
    {"redlock (node)", "node bench/neighbours/redlock.js",
     "node -e 'require(\"redlock\");require(\"redis\")'"},
    {"redis-semaphore (node)", "node bench/neighbours/semaphore.js",
     "node -e 'require(\"redis-semaphore\");require(\"ioredis\")'"},
    {"redis-py", "/usr/bin/python3 bench/neighbours/redis_py.py", "/usr/bin/python3 -c 'import redis'"},
};
#define COUNT (sizeof neighbours / sizeof *neighbours)

/* The workloads, in the order of the table's columns; hand-offs, the last one, are not counted a second. */
static const struct work {
    const char *words, *unit, *kind;
    int workers, processes;
    double goal;
} works[BENCH_HAND_OFF] = {
    {"1 worker, own lock", "pairs/s", "own", 1, 1, 1},
    {"64 workers, own lock", "pairs/s", "own", 64, 1, 1},
    {"64 workers, one lock", "sections/s", "one", 64, 1, 50},
    {"4 x 16 workers, one lock", "sections/s", "one", 16, 4, 20},
};

struct scene {
    struct bench_server *server;
    const struct work *work;
    struct bench_pairs pairs; /* of an own lock each */
    const struct neighbour *neighbour;
    double worst_ms; /* the neighbour's longest wait */
};

/* Starts a library in this many processes; adds up the first line of each, and gathers its sections. */
static double start(struct scene *scene, int processes, int workers, const char *kind, double seconds,
                    struct bench_section *sections, int *count)
{
    FILE *runs[4];
    double all = 0;
    for (int i = 0; i < processes; i++) {
        char line[256];
        (void)snprintf(line, sizeof line, "%s %d %d %s %.2f 2>/dev/null", scene->neighbour->command,
                       scene->server->port, workers, kind, seconds);
        runs[i] = popen(line, "re");
    }
    for (int i = 0; i < processes; i++) {
        double rate = 0, worst = 0;
        long long asked, taken, given;
        if (runs[i] == NULL || fscanf(runs[i], "%lf %lf", &rate, &worst) != 2)
            bench_die("%s says nothing", scene->neighbour->name);
        while (sections != NULL && *count < MOST_SECTIONS &&
               fscanf(runs[i], "%lld %lld %lld", &asked, &taken, &given) == 3)
            sections[(*count)++] = (struct bench_section){asked, taken, given, i};
        (void)pclose(runs[i]);
        all += rate;
        scene->worst_ms = worst > scene->worst_ms ? worst : scene->worst_ms;
    }
    return all > 0 ? all : 0.001;
}

static double turn_neighbour(void *arg, double seconds)
{
    struct scene *scene = arg;
    return start(scene, scene->work->processes, scene->work->workers, scene->work->kind, seconds, NULL, NULL);
}

static double on_one(const struct scene *scene, bool plainly, double seconds)
{
    return bench_on_one(scene->server, scene->work->processes, scene->work->workers, plainly, seconds);
}

static double turn_ours(void *arg, double seconds)
{
    struct scene *scene = arg;
    return scene->work->kind[1] == 'w' ? bench_pairs_ours(&scene->pairs, seconds)
                                       : on_one(scene, false, seconds);
}

static double turn_plain(void *arg, double seconds)
{
    struct scene *scene = arg;
    return scene->work->kind[1] == 'w' ? bench_pairs_plain(&scene->pairs, seconds)
                                       : on_one(scene, true, seconds);
}

static struct bench_ratio compare(struct bench *bench, struct scene *scene, struct bench_goal goal,
                                  const struct bench_side *other)
{
    char row[96];
    struct bench_side ours = {"holdfast", turn_ours, scene};
    bool own = scene->work->kind[1] == 'w';
    if (own)
        bench_pairs_open(&scene->pairs, scene->server->url, scene->server->port, scene->work->workers);
    (void)snprintf(row, sizeof row, "%s / %s", scene->work->words, other->name);
    struct bench_ratio ratio = bench_compare(bench, row, scene->work->unit, goal, &ours, other);
    if (own)
        bench_pairs_close(&scene->pairs);
    return ratio;
}

static void hand_off(struct bench *bench, double ours_ms, const char *name, const char *origin,
                     double theirs_ms)
{
    char row[96], theirs[96];
    (void)snprintf(row, sizeof row, "hand-off to a process, p50 / %s", name);
    (void)snprintf(theirs, sizeof theirs, "%.3g ms / %.3g ms%s", ours_ms, theirs_ms, origin);
    bench_number(bench, row, ours_ms / theirs_ms, "x", AT_MOST(1), theirs);
}

static void measured(struct bench *bench, struct scene *scene, double ours_ms)
{
    static struct bench_section sections[MOST_SECTIONS];
    char row[96];
    int count = 0;
    struct bench_side side = {scene->neighbour->name, turn_neighbour, scene};
    for (int i = 0; i < BENCH_HAND_OFF; i++) {
        scene->work = &works[i];
        scene->worst_ms = 0;
        bench->rounds =
            bench->quick && i >= BENCH_ONE_64 ? 1 : BENCH_LEAST_TURNS; /* they take a while to get warm */
        (void)compare(bench, scene, AT_LEAST(works[i].goal), &side);
        if (i == BENCH_ONE_64) {
            (void)snprintf(row, sizeof row, "its longest wait, %s", scene->neighbour->name);
            bench_number(bench, row, scene->worst_ms, "ms", NO_GOAL, NULL);
        }
    }
    (void)start(scene, 2, 1, "baton", bench->quick ? 1 : 4, sections, &count);
    hand_off(bench, ours_ms, scene->neighbour->name, "", bench_baton_ms(sections, count));
}

/* Against a yardstick that is so many times as fast as the measured one. */
static struct bench_ratio scaled(struct bench_ratio ratio, double times)
{
    ratio.other *= times;
    ratio.ratio /= times;
    ratio.interval.low /= times;
    ratio.interval.high /= times;
    return ratio;
}

/* Holdfast's rate is `ratios[i].ratio` plain loops now; the library's was that many plain loops in the table. */
static void from_table(struct bench *bench, const struct bench_table *table, const char *library,
                       const struct bench_ratio *ratios, double ours_ms, double plain_ms)
{
    const struct bench_table_row *plain = &table->rows[0], *row = bench_table_find(table, library);
    char words[96], name[64];
    (void)snprintf(name, sizeof name, "%s, from the table", library);
    for (int i = 0; i < BENCH_HAND_OFF; i++) {
        double loops = row->cells[i] / plain->cells[i];
        (void)snprintf(words, sizeof words, "%s / %s", works[i].words, library);
        bench_row(bench, words, works[i].unit, AT_LEAST(works[i].goal), name, scaled(ratios[i], loops));
    }
    hand_off(bench, ours_ms, library, ", from the table",
             plain_ms * row->cells[BENCH_HAND_OFF] / plain->cells[BENCH_HAND_OFF]);
}

static bool is_here(const struct neighbour *neighbour)
{
    char line[256];
    (void)snprintf(line, sizeof line, "%s >/dev/null 2>&1", neighbour->probe);
    FILE *run = popen(line, "re");
    return run != NULL && pclose(run) == 0;
}

static bool is_measured(const char *library)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(neighbours[i].name, library) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    struct bench_table table;
    struct bench_ratio ratios[BENCH_HAND_OFF];
    const char *path = getenv("BENCH_NODE_PATH");
    bench_begin(&bench, argc, argv, "neighbours", "other lock libraries, in the same minute");
    bench_table_read(&table);
    if (path != NULL)
        (void)setenv("NODE_PATH", path, 1);
    bench_server_start(&server, -1);
    struct scene scene = {.server = &server};
    struct bench_side plain = {"plain loop", turn_plain, &scene};
    for (int i = 0; i < BENCH_HAND_OFF; i++) {
        scene.work = &works[i];
        ratios[i] = compare(&bench, &scene, NO_GOAL, &plain);
    }
    bench_progress(&bench, "hand-offs");
    double length = bench.quick ? 1 : 4, ours_ms = bench_baton_play(&server, false, length),
           plain_ms = bench_baton_play(&server, true, length);
    hand_off(&bench, ours_ms, "plain loop", "", plain_ms);
    bench.seconds = bench.quick ? 0.25 : 1;
    for (size_t i = 0; i < COUNT; i++) {
        scene.neighbour = &neighbours[i];
        if (is_here(scene.neighbour)) {
            measured(&bench, &scene, ours_ms);
            continue;
        }
        bool known = bench_table_find(&table, scene.neighbour->name) != NULL;
        bench_skip(&bench, scene.neighbour->name,
                   known ? "not installed here: from the table" : "not installed here, and not in the table");
        if (known)
            from_table(&bench, &table, scene.neighbour->name, ratios, ours_ms, plain_ms);
    }
    for (int i = 1; i < table.count; i++)
        if (!is_measured(table.rows[i].library))
            from_table(&bench, &table, table.rows[i].library, ratios, ours_ms, plain_ms);
    bench_server_stop(&server);
    return bench_end(&bench);
}
