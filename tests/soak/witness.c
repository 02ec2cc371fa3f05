/* SPDX-License-Identifier: MIT */
/* witness.c - one client that lives as long as the soak beside it: it takes, keeps, gives back and fetches, loses its
 * connections now and then, and must neither grow nor lose a lease. It says its process id and then, on SIGTERM or when
 * its standard input ends, what it did. */
#include <holdfast/holdfast.h>

#include "tests/support/server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <stdint.h>
#include <unistd.h>

#define KEPT     32    /* leases that are held all the time */
#define LEASE_MS 10000
#define TAKERS   3
#define CUT_S    20 /* so often all connections are killed */

static hf_client *client;
static _Atomic(bool) stop;
static _Atomic(long) taken, fetched, lost, failed;

static void pause_ms(long ms)
{
    struct timespec length = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&length, NULL);
}

static void count_end(hf_status status)
{
    if (status == HF_LOST)
        atomic_fetch_add(&lost, 1);
    else if (status != HF_OK && status != HF_UNKNOWN) /* UNKNOWN: the connection was cut under it */
        atomic_fetch_add(&failed, 1);
}

/* Some names come back all the time, others never: neither may leave anything. */
static void *take(void *arg)
{
    unsigned rng = (unsigned)(uintptr_t)arg;
    for (long i = 0; !atomic_load(&stop); i++) {
        char name[48];
        hf_lease *lease;
        if (rand_r(&rng) % 2 == 0)
            (void)snprintf(name, sizeof name, "witness:%d", rand_r(&rng) % 4);
        else
            (void)snprintf(name, sizeof name, "witness:%u:%ld", (unsigned)(uintptr_t)arg, i);
        hf_status status = hf_lock_acquire(client, name, HF_LOCK(.wait_ms = 20000, .event_fd = rand_r(&rng) % 2 == 0),
                                           &lease, NULL);
        if (status == HF_OK) {
            pause_ms(rand_r(&rng) % 4);
            count_end(rand_r(&rng) % 2 == 0 ? hf_lease_release(lease, NULL) : hf_lease_post_release(lease, NULL));
            atomic_fetch_add(&taken, 1);
        } else {
            atomic_fetch_add(&failed, 1);
        }
        pause_ms(2);
    }
    return NULL;
}

static hf_status load(hf_loading *loading, void *arg)
{
    (void)arg;
    return hf_loading_set(loading, "page", 4);
}

static void *fetch(void *arg)
{
    unsigned rng = 1;
    (void)arg;
    while (!atomic_load(&stop)) {
        char key[32];
        hf_value *value = NULL;
        (void)snprintf(key, sizeof key, "page:%d", rand_r(&rng) % 50);
        hf_status status = hf_fetch(client, key, HF_FETCH(.ttl_ms = 2000, .load = load), &value, NULL);
        hf_value_free(value);
        atomic_fetch_add(status == HF_OK ? &fetched : &failed, 1);
        pause_ms(5);
    }
    return NULL;
}

static void on_term(int number)
{
    (void)number;
    atomic_store(&stop, true);
}

static void live(struct hft_server *server)
{
    struct pollfd end = {.fd = 0, .events = POLLIN};
    time_t cut = time(NULL) + CUT_S;
    while (!atomic_load(&stop)) {
        if (poll(&end, 1, 500) > 0)
            atomic_store(&stop, true); /* whoever started us is gone */
        if (time(NULL) < cut)
            continue;
        cut = time(NULL) + CUT_S;
        freeReplyObject(hft_server_ask(server, "CLIENT KILL TYPE normal SKIPME yes"));
        freeReplyObject(hft_server_ask(server, "CLIENT KILL TYPE pubsub"));
    }
}

int main(void)
{
    hf_error error;
    hf_lease *kept[KEPT];
    pthread_t threads[TAKERS + 1];
    struct sigaction action = {.sa_handler = on_term};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C is the soak's, which ends us */
    struct hft_server *server = hft_server_start(NULL);
    if (hf_client_open(hft_server_url(server), HF_CLIENT(.lease_ms = LEASE_MS), &client, &error) != HF_OK) {
        (void)fprintf(stderr, "witness: %s\n", error.message);
        return 1;
    }
    for (int i = 0; i < KEPT; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "kept:%d", i);
        if (hf_lock_acquire(client, name, NULL, &kept[i], &error) != HF_OK)
            return 1;
    }
    for (int i = 0; i < TAKERS; i++)
        (void)pthread_create(&threads[i], NULL, take, (void *)(uintptr_t)(i + 1));
    (void)pthread_create(&threads[TAKERS], NULL, fetch, NULL);
    (void)printf("witness %d\n", (int)getpid());
    (void)fflush(stdout);
    live(server);
    for (int i = 0; i <= TAKERS; i++)
        (void)pthread_join(threads[i], NULL);
    for (int i = 0; i < KEPT; i++)
        count_end(hf_lease_release(kept[i], NULL));
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
    (void)printf("summary witness operations=%ld faults=0 violations=0 false_losses=%ld failed=%ld\n",
                 atomic_load(&taken) + atomic_load(&fetched), atomic_load(&lost), atomic_load(&failed));
    return 0;
}
