/* SPDX-License-Identifier: MIT */
/* on_one.c - see on_one.h. */
#include "bench/on_one.h"

#include "bench/crew.h"
#include "bench/harness.h"
#include "bench/plain_loop.h"

#define MOST 64 /* of each */

struct child {
    const struct bench_server *server;
    int workers;
    double seconds, *rate;
    hf_client *client; /* NULL: plain loops that ask again every millisecond */
    struct bench_plain *plain[MOST];
    int64_t until_ns;
};

static long step_ours(int index, void *arg)
{
    struct child *child = arg;
    hf_lease *lease;
    (void)index;
    bench_must(hf_lock_acquire(child->client, "one", HF_LOCK(.wait_ms = HF_FOREVER), &lease, NULL), NULL,
               "acquire");
    bench_must(hf_lease_release(lease, NULL), NULL, "release");
    return 1;
}

static long step_plain(int index, void *arg)
{
    struct child *child = arg;
    while (!bench_plain_take(child->plain[index])) {
        if (bench_now_ns() > child->until_ns)
            return 0;
        bench_sleep(0.001);
    }
    bench_plain_give(child->plain[index]);
    return 1;
}

static int ours_on_one(void *arg)
{
    struct child *child = arg;
    child->client = bench_client(child->server->url, NULL);
    *child->rate = bench_crew(child->workers, child->seconds, step_ours, child, NULL);
    return hf_client_close(child->client, NULL) != HF_OK;
}

static int plain_on_one(void *arg)
{
    struct child *child = arg;
    for (int i = 0; i < child->workers; i++)
        child->plain[i] = bench_plain_open(child->server->port, "plain:one");
    child->until_ns = bench_now_ns() + (int64_t)(child->seconds * 1.2e9);
    *child->rate = bench_crew(child->workers, child->seconds, step_plain, child, NULL);
    return 0;
}

double bench_on_one(const struct bench_server *server, int processes, int workers, bool plainly,
                    double seconds)
{
    static double *rates;
    double all = 0;
    pid_t children[MOST];
    if (processes > MOST || workers > MOST)
        bench_die("at most %d processes of %d workers", MOST, MOST);
    if (rates == NULL)
        rates = bench_shared(MOST * sizeof *rates);
    for (int i = 0; i < processes; i++) {
        struct child child = {.server = server, .workers = workers, .seconds = seconds, .rate = &rates[i]};
        children[i] = bench_fork(plainly ? plain_on_one : ours_on_one, &child);
    }
    for (int i = 0; i < processes; i++) {
        bench_join(children[i]);
        all += rates[i];
    }
    return all;
}
