/* SPDX-License-Identifier: MIT */
/* loops.c - what an event loop pays for a lock that nobody else wants: from hf_lock_acquire_start to the end of
 * hf_pending_take, beside a blocking hf_lock_acquire. */
#include "bench/harness.h"
#include "bench/histogram.h"
#include "bench/server.h"

#include <poll.h>
#include <string.h>

struct scene {
    hf_client *blocking, *loop, *threaded; /* the second one's callbacks run in hf_client_dispatch */
};

typedef hf_lease *obtain_fn(struct scene *scene);

static hf_lease *by_acquire(struct scene *scene)
{
    hf_lease *lease;
    bench_must(hf_lock_acquire(scene->blocking, "blocking", NULL, &lease, NULL), NULL, "acquire");
    return lease;
}

static hf_lease *take(hf_pending *pending)
{
    hf_lease *lease;
    bench_must(hf_pending_take(pending, &lease, NULL), NULL, "take");
    return lease;
}

static void on_done(hf_pending *pending, void *arg)
{
    hf_lease **lease = arg;
    *lease = take(pending);
}

/* A loop with the client's descriptor: `done` takes the lease. */
static hf_lease *by_dispatch(struct scene *scene)
{
    hf_pending *pending;
    hf_lease *lease = NULL;
    struct pollfd fd = {.fd = hf_client_fd(scene->loop), .events = POLLIN};
    bench_must(hf_lock_acquire_start(scene->loop, "loop", NULL, on_done, &lease, &pending, NULL), NULL, "start");
    while (lease == NULL) {
        (void)poll(&fd, 1, -1);
        hf_client_dispatch(scene->loop);
    }
    return lease;
}

/* A loop with the pending's own descriptor. */
static hf_lease *by_descriptor(struct scene *scene)
{
    hf_pending *pending;
    bench_must(hf_lock_acquire_start(scene->threaded, "threaded", NULL, NULL, NULL, &pending, NULL), NULL, "start");
    struct pollfd fd = {.fd = hf_pending_fd(pending), .events = POLLIN};
    while (!hf_pending_is_done(pending))
        (void)poll(&fd, 1, -1);
    return take(pending);
}

/* Microseconds in the middle of what was obtained in so long. */
static double p50_us(struct scene *scene, obtain_fn *obtain, double seconds)
{
    static struct bench_histogram histogram;
    int64_t until = bench_now_ns() + (int64_t)(seconds * 1e9);
    memset(&histogram, 0, sizeof histogram);
    for (int64_t began = bench_now_ns(); began < until; began = bench_now_ns()) {
        hf_lease *lease = obtain(scene);
        bench_record(&histogram, bench_now_ns() - began);
        bench_must(hf_lease_release(lease, NULL), NULL, "release");
    }
    return (double)bench_percentile(&histogram, 50) / 1e3;
}

int main(int argc, char **argv)
{
    enum { WAYS = 3 };
    static obtain_fn *const ways[WAYS] = {by_acquire, by_dispatch, by_descriptor};
    static const char *const rows[WAYS] = {"hf_lock_acquire, p50", "start + hf_client_dispatch + take, p50",
                                           "start + hf_pending_fd + take, p50"};
    struct bench bench;
    struct bench_server server;
    double values[WAYS][BENCH_MOST_TURNS], more[WAYS][BENCH_MOST_TURNS];
    bench_begin(&bench, argc, argv, "loops", "what an event loop pays for a lock, beside a blocking acquire");
    bench_server_start(&server, -1);
    struct scene scene = {.blocking = bench_client(server.url, NULL),
                          .loop = bench_client(server.url, HF_CLIENT(.dispatch = HF_DISPATCH_CALLER)),
                          .threaded = bench_client(server.url, NULL)};
    for (int way = 0; way < WAYS; way++)
        (void)p50_us(&scene, ways[way], bench.seconds / 4);
    for (int round = 0; round < bench.rounds; round++)
        for (int i = 0; i < WAYS; i++) { /* each begins a round as often as the others */
            int way = (round + i) % WAYS;
            values[way][round] = p50_us(&scene, ways[way], bench.seconds);
        }
    for (int way = 0; way < WAYS; way++) {
        for (int round = 0; round < bench.rounds; round++)
            more[way][round] = values[way][round] - values[0][round];
        bench_number(&bench, rows[way], bench_median(values[way], bench.rounds), "us", NO_GOAL, NULL);
    }
    bench_number(&bench, "a loop with hf_client_fd, more than a blocking acquire", bench_median(more[1], bench.rounds), "us",
                 AT_MOST(50), NULL);
    bench_number(&bench, "a loop with hf_pending_fd, more than a blocking acquire", bench_median(more[2], bench.rounds), "us",
                 NO_GOAL, NULL);
    (void)hf_client_close(scene.blocking, NULL);
    (void)hf_client_close(scene.loop, NULL);
    (void)hf_client_close(scene.threaded, NULL);
    bench_server_stop(&server);
    return bench_end(&bench);
}
