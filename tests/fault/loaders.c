/* SPDX-License-Identifier: MIT */
/* loaders.c - a process is killed while its loader threads load and more loads wait for them. */
#include "tests/fault/fault.h"
#include "tests/support/child.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUEUED = 40, LEASE_MS = 20000 };

static _Atomic(int) *inside; /* loaders of the child, in memory that both see */

static hf_status hang(hf_loading *loading, void *arg)
{
    (void)arg;
    atomic_fetch_add(inside, 1);
    while (atomic_load(inside) > 0)
        (void)pause();
    return hf_loading_absent(loading);
}

static hf_status make(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_set(loading, "made", 4);
}

static void key_of(char *key, size_t room, int round, int i)
{
    (void)snprintf(key, room, "queued:%d:%d", round, i);
}

/* Posts them all, says so, and waits for its end. Key 0 is loaded, the rest wait. */
static void post_all(const char *url, int round, int told)
{
    hf_client *client = hft_open(url, HF_CLIENT(.loaders = 1));
    for (int i = 0; i <= QUEUED; i++) {
        char key[32];
        hf_value *value;
        key_of(key, sizeof key, round, i);
        if (hf_fetch(client, key, HF_FETCH(.load = hang, .where = HF_LOAD_ASIDE, .wait_ms = HF_OFF, .lease_ms = LEASE_MS), &value,
                     NULL) != HF_BUSY)
            _exit(1);
        while (i == 0 && atomic_load(inside) == 0)
            (void)poll(NULL, 0, 1);
    }
    (void)!write(told, "x", 1);
    for (;;)
        (void)pause();
}

static void queued_loads(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    int64_t worst_ns = 0;
    inside = mmap(NULL, sizeof *inside, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < run->times; round++) {
        int pipe_of[2];
        char key[32], said;
        hf_value *value;
        atomic_store(inside, 0);
        HFT_CHECK(run, pipe(pipe_of) == 0, "no pipe");
        pid_t child = hft_fork(); /* this process has no client, and no thread, at this moment */
        if (child == 0)
            post_all(hft_server_url(server), round, pipe_of[1]);
        (void)close(pipe_of[1]);
        HFT_CHECK(run, read(pipe_of[0], &said, 1) == 1, "the child has ended by itself");
        (void)close(pipe_of[0]);
        (void)kill(child, SIGKILL);
        (void)waitpid(child, NULL, 0);
        hf_client *client = hft_open(hft_server_url(server), NULL);
        int64_t began_ns = hft_true_ns();
        for (int i = 1; i <= QUEUED; i++) {
            key_of(key, sizeof key, round, i);
            hf_status status = hf_fetch(client, key, HF_FETCH(.load = make, .wait_ms = 3 * LEASE_MS), &value, NULL);
            HFT_CHECK(run, status == HF_OK && value->source == HF_LOADED, "%s: %s", key, hf_status_name(status));
            hf_value_free(value);
        }
        int64_t took_ns = hft_true_ns() - began_ns;
        HFT_CHECK(run, took_ns < LEASE_MS * HFT_NS_PER_MS, "loads that only waited held up the fleet: %lld ms",
                  (long long)(took_ns / HFT_NS_PER_MS));
        key_of(key, sizeof key, round, 0);
        HFT_CHECK(run, hf_fetch(client, key, HF_FETCH(.load = make, .wait_ms = HF_OFF), &value, NULL) == HF_BUSY,
                  "the load that ran had no lease");
        worst_ns = took_ns > worst_ns ? took_ns : worst_ns;
        HFT_CHECK(run, hf_client_close(client, NULL) == HF_OK, "close was not clean");
    }
    hft_tally(run, run->times, worst_ns);
    hft_note(run, "%d loads waited in each killed process", QUEUED);
    (void)munmap(inside, sizeof *inside);
    hft_server_stop(server);
}

const struct hft_named hft_loader_faults[] = {
    {"queued-loads", "a process that is killed holds up the one load that runs, and none that wait for a thread", queued_loads, 2, 20, 0},
    {.name = NULL}};
