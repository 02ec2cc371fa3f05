/* SPDX-License-Identifier: MIT */
/* prefork.c - a web server of many children on few cores, each child with its own client, restarted one by one under
 * load. Nothing fails, but everything is slow, the server too: now and then it gets no CPU for longer than a command
 * may take. */
#include "tests/fault/fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN_MOST = 240, PAGES = 8, LOAD_MS = 30, TTL_MS = 300, STARVED_MS = 1300 };

struct house { /* what all processes see */
    char url[256];
    _Atomic(bool) closes;
    _Atomic(long) served, loads, local, overlaps, failed;
    _Atomic(int64_t) slowest_ns;
    _Atomic(int) inside[PAGES];
};

static volatile sig_atomic_t asked_to_end;

static void end_soon(int number)
{
    (void)number;
    asked_to_end = 1;
}

static void burn_ms(int64_t ms)
{
    for (int64_t until = hft_true_ns() + ms * HFT_NS_PER_MS; hft_true_ns() < until;)
        ;
}

struct request {
    struct house *house;
    int page;
};

static hf_status render(hf_loading *loading, void *arg)
{
    const struct request *request = arg;
    struct house *house = request->house;
    atomic_fetch_add(&house->loads, 1);
    if (hf_loading_lease(loading) == NULL)
        atomic_fetch_add(&house->local, 1);
    if (atomic_fetch_add(&house->inside[request->page], 1) != 0)
        atomic_fetch_add(&house->overlaps, 1);
    hft_sleep_ms(LOAD_MS);
    atomic_fetch_sub(&house->inside[request->page], 1);
    return hf_loading_set(loading, "page", 4);
}

static void serve(struct house *house, hf_client *client, unsigned *rng)
{
    struct request request = {house, rand_r(rng) % PAGES};
    char key[16];
    hf_value *value;
    (void)snprintf(key, sizeof key, "page%d", request.page);
    int64_t began_ns = hft_true_ns();
    hf_status status = hf_fetch(client, key, HF_FETCH(.load = render, .arg = &request, .ttl_ms = TTL_MS, .wait_ms = 20000), &value,
                                NULL);
    int64_t took_ns = hft_true_ns() - began_ns, slowest_ns = atomic_load(&house->slowest_ns);
    while (took_ns > slowest_ns && !atomic_compare_exchange_weak(&house->slowest_ns, &slowest_ns, took_ns))
        ;
    if (status == HF_OK)
        hf_value_free(value);
    atomic_fetch_add(status == HF_OK ? &house->served : &house->failed, 1);
    burn_ms(20); /* the rest of the request */
}

static int be_a_child(struct house *house, unsigned rng)
{
    struct sigaction action = {.sa_handler = end_soon};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)sigaction(SIGTERM, &action, NULL);
    hf_client *client = hft_open(house->url, HF_CLIENT(.connect_ms = 20000)); /* before there was one, a page was nobody's */
    while (!asked_to_end && !atomic_load(&house->closes))
        serve(house, client, &rng);
    (void)hf_client_close(client, NULL); /* UNKNOWN while the server stands still */
    return 0;
}

static pid_t start_child(struct house *house, unsigned rng)
{
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(be_a_child(house, rng));
    return pid;
}

/* The next child starts when the old one has ended, as in a graceful restart. */
static void restart_child(struct hft_run *run, struct house *house, pid_t *child)
{
    int status;
    (void)kill(*child, SIGTERM);
    (void)waitpid(*child, &status, 0);
    HFT_CHECK(run, WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ended with %d", status);
    *child = start_child(house, (unsigned)hft_roll(run, 1 << 20));
}

static void prefork(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct house *house = mmap(NULL, sizeof *house, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t children[CHILDREN_MOST];
    int count = run->times < CHILDREN_MOST ? run->times : CHILDREN_MOST, restarts = 0;
    if (house == MAP_FAILED)
        exit(1);
    (void)snprintf(house->url, sizeof house->url, "%s", hft_server_url(server));
    for (int i = 0; i < count; i++)
        children[i] = start_child(house, (unsigned)hft_roll(run, 1 << 20));
    int64_t until_ns = hft_true_ns() + (run->full ? 30000 : 3000) * HFT_NS_PER_MS;
    for (int turn = 1; hft_true_ns() < until_ns; turn++) {
        hft_sleep_ms(run->full ? 50 : 100);
        if (turn % 8 == 0) {
            hft_server_freeze(server);
            hft_sleep_ms(STARVED_MS);
            hft_server_thaw(server);
        }
        restart_child(run, house, &children[restarts++ % count]);
    }
    atomic_store(&house->closes, true);
    for (int i = 0; i < count; i++) {
        int status;
        (void)waitpid(children[i], &status, 0);
        HFT_CHECK(run, WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ended with %d", status);
    }
    HFT_CHECK(run, house->served > 0, "nothing was served");
    HFT_CHECK(run, house->failed == 0, "%ld requests failed", house->failed);
    HFT_CHECK(run, house->local == 0, "%ld of %ld pages were loaded without a lease, and the server is there", house->local,
              house->loads);
    HFT_CHECK(run, house->overlaps == 0, "%ld of %ld loads overlapped", house->overlaps, house->loads);
    hft_tally(run, house->served, house->slowest_ns);
    hft_note(run, "%d children, %d restarted, %ld requests, %ld loads, none beside another", count, restarts, house->served,
             house->loads);
    (void)munmap(house, sizeof *house);
    hft_server_stop(server);
}

const struct hft_named hft_prefork_faults[] = {
    {"prefork", "children that are slow and restarted load each page once at a time", prefork, 24, 240, 0},
    {.name = NULL}};
