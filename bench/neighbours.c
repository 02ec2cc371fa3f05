/* SPDX-License-Identifier: MIT */
/* neighbours.c - other lock libraries, in the same minute: those of bench/neighbours/ that `./dev bench` could install.
 * $BENCH_NODE_PATH is where npm put them. */
#include "bench/crew.h"
#include "bench/pairs.h"
#include "bench/server.h"

#include <stdlib.h>
#include <string.h>

static const struct neighbour {
    const char *name, *command, *probe;
} neighbours[] = {
    {"warlock (node)", "node bench/neighbours/warlock.js",
     "node -e 'require(\"node-redis-warlock\");require(\"redis\")'"},
    {"redlock (node)", "node bench/neighbours/redlock.js",
     "node -e 'require(\"redlock\");require(\"redis\")'"},
    {"redis-py", "/usr/bin/python3 bench/neighbours/redis_py.py", "/usr/bin/python3 -c 'import redis'"},
};
#define COUNT ((int)(sizeof neighbours / sizeof *neighbours))

struct scene {
    struct bench_server *server;
    struct bench_pairs pairs;
    const struct neighbour *neighbour;
    hf_client *client;
    int workers, processes;
    const char *kind;
    double worst_ms;
};

static double run_neighbour(void *arg, double seconds)
{
    struct scene *scene = arg;
    FILE *runs[4];
    double all = 0;
    for (int i = 0; i < scene->processes; i++) {
        char line[256];
        (void)snprintf(line, sizeof line, "%s %d %d %s %.2f 2>/dev/null", scene->neighbour->command,
                       scene->server->port, scene->workers, scene->kind, seconds);
        runs[i] = popen(line, "re");
    }
    for (int i = 0; i < scene->processes; i++) {
        double rate = 0, worst = 0;
        if (runs[i] == NULL || fscanf(runs[i], "%lf %lf", &rate, &worst) != 2)
            bench_die("%s says nothing", scene->neighbour->name);
        (void)pclose(runs[i]);
        all += rate;
        scene->worst_ms = worst > scene->worst_ms ? worst : scene->worst_ms;
    }
    return all > 0 ? all : 0.001;
}

static long step_one(int index, void *arg)
{
    hf_lease *lease;
    (void)index;
    bench_must(hf_lock_acquire(arg, "one", HF_LOCK(.wait_ms = HF_FOREVER), &lease, NULL), NULL, "acquire");
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return 1;
}

struct child {
    const char *url;
    int workers;
    double seconds, *rate;
};

static int one_lock_child(void *arg)
{
    struct child *child = arg;
    hf_client *client = bench_client(child->url, NULL);
    *child->rate = bench_crew(child->workers, child->seconds, step_one, client, NULL);
    return hf_client_close(client, NULL) != HF_OK;
}

static double run_ours(void *arg, double seconds)
{
    struct scene *scene = arg;
    double *rates = bench_shared(4096), all = 0;
    pid_t children[4];
    for (int i = 0; i < scene->processes; i++) {
        struct child child = {scene->server->url, scene->workers, seconds, &rates[i]};
        children[i] = bench_fork(one_lock_child, &child);
    }
    for (int i = 0; i < scene->processes; i++) {
        bench_join(children[i]);
        all += rates[i];
    }
    return all;
}

static bool is_here(const struct neighbour *neighbour)
{
    char line[256];
    (void)snprintf(line, sizeof line, "%s >/dev/null 2>&1", neighbour->probe);
    FILE *run = popen(line, "re");
    bool here = run != NULL && pclose(run) == 0;
    if (!here)
        (void)printf("  %s: not installed, skipped\n", neighbour->name);
    return here;
}

static void rows(struct bench *bench, struct scene *scene)
{
    char row[96];
    struct bench_side side = {scene->neighbour->name, run_neighbour, scene};
    static const int crews[] = {1, 64};
    scene->processes = 1;
    for (int i = 0; i < 2; i++) {
        bench_pairs_open(&scene->pairs, scene->server->url, scene->server->port, crews[i]);
        struct bench_side ours = {"holdfast", bench_pairs_ours, &scene->pairs};
        scene->workers = crews[i];
        scene->kind = "own";
        (void)snprintf(row, sizeof row, "%d worker%s, own lock / %s", crews[i], i == 0 ? "" : "s",
                       scene->neighbour->name);
        (void)bench_compare(bench, row, "pairs/s", AT_LEAST(1), &ours, &side);
        bench_pairs_close(&scene->pairs);
    }
    struct bench_side ours = {"holdfast", run_ours, scene};
    scene->kind = "one";
    scene->workers = 64;
    scene->worst_ms = 0;
    (void)snprintf(row, sizeof row, "64 workers, one lock / %s", scene->neighbour->name);
    (void)bench_compare(bench, row, "sections/s", AT_LEAST(50), &ours, &side);
    (void)snprintf(row, sizeof row, "its longest wait, %s", scene->neighbour->name);
    bench_number(bench, row, scene->worst_ms, "ms", NO_GOAL, NULL);
    scene->workers = 16;
    scene->processes = 4;
    (void)snprintf(row, sizeof row, "4 x 16 workers, one lock / %s", scene->neighbour->name);
    (void)bench_compare(bench, row, "sections/s", AT_LEAST(20), &ours, &side);
}

int main(int argc, char **argv)
{
    struct bench bench;
    struct bench_server server;
    const char *path = getenv("BENCH_NODE_PATH");
    bench_begin(&bench, argc, argv, "neighbours", "other lock libraries, in the same minute");
    bench.rounds = 3;
    if (path != NULL)
        (void)setenv("NODE_PATH", path, 1);
    bench_server_start(&server, -1);
    struct scene scene = {.server = &server};
    for (int i = 0; i < COUNT; i++) {
        scene.neighbour = &neighbours[i];
        if (is_here(scene.neighbour))
            rows(&bench, &scene);
    }
    bench_server_stop(&server);
    return bench_end(&bench);
}
