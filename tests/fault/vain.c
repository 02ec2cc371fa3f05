/* SPDX-License-Identifier: MIT */
/* vain.c - calls that got no lease: half a lease later the server has no key of them. Each uses a name that nobody
 * acquires again, as an acquire clears away what was left there. */
#include "tests/fault/fault.h"

#include "core/protocol/scripts.h"
#include "tests/support/takers.h"
#include "tests/support/script_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKERS = 12, LEASE_MS = 3000, ATTEMPTS_MOST = 20000 };

struct attempt {
    char name[24];
    int64_t ended_ns;
    hf_status status;
};

struct scene {
    struct hft_run *run;
    hf_client *clients[2];
    _Atomic(bool) stop;
    _Atomic(int) begun;
    pthread_mutex_t mutex; /* for what follows */
    struct attempt ended[ATTEMPTS_MOST];
    int count, refused;
};

struct worker {
    struct scene *scene;
    pthread_t thread;
    unsigned rng;
};

static void note(struct scene *scene, const char *name, hf_status status)
{
    (void)pthread_mutex_lock(&scene->mutex);
    struct attempt *attempt = &scene->ended[scene->count++];
    (void)snprintf(attempt->name, sizeof attempt->name, "%s", name);
    attempt->ended_ns = hft_true_ns();
    attempt->status = status;
    scene->refused += status != HF_OK;
    (void)pthread_mutex_unlock(&scene->mutex);
}

/* A holder acquires and releases the name; a waiter waits for about as long. */
static void once(struct worker *me, int number)
{
    struct scene *scene = me->scene;
    struct hft_taker taker;
    char name[24];
    hf_lease *lease;
    (void)snprintf(name, sizeof name, "vain:%d", number);
    if (hf_lock_acquire(scene->clients[number % 2], name, HF_LOCK(.lease_ms = LEASE_MS, .wait_ms = 2000), &lease, NULL) != HF_OK)
        return;
    hft_take(&taker, scene->clients[1 - number % 2], name, HF_LOCK(.lease_ms = LEASE_MS, .wait_ms = rand_r(&me->rng) % 80));
    hft_sleep_ms(rand_r(&me->rng) % 80);
    (void)hf_lease_post_release(lease, NULL);
    hf_status status = hft_taken(&taker);
    if (status == HF_OK)
        (void)hf_lease_release(taker.lease, NULL);
    note(scene, name, status);
}

static void *work(void *arg)
{
    struct worker *me = arg;
    while (!atomic_load(&me->scene->stop)) {
        int number = atomic_fetch_add(&me->scene->begun, 1);
        if (number < ATTEMPTS_MOST)
            once(me, number);
        else
            hft_sleep_ms(10);
    }
    return NULL;
}

/* Checks the calls that ended long enough ago, from `checked` on; returns the first that did not. */
static int look(struct scene *scene, struct hft_server *server, int checked)
{
    for (;; checked++) {
        (void)pthread_mutex_lock(&scene->mutex);
        struct attempt attempt = scene->ended[checked];
        bool is_due = checked < scene->count && attempt.ended_ns + LEASE_MS / 2 * HFT_NS_PER_MS < hft_true_ns();
        (void)pthread_mutex_unlock(&scene->mutex);
        if (!is_due)
            return checked;
        char token[200];
        hft_held_by(server, attempt.name, token, sizeof token);
        HFT_CHECK(scene->run, token[0] == 0, "%s: %s, and %lld ms later the server has %s", attempt.name,
                  hf_status_name(attempt.status), (long long)((hft_true_ns() - attempt.ended_ns) / HFT_NS_PER_MS), token);
    }
}

/* The disturbance of an acquire: a server that has forgotten its script but has the release behind it; no
 * connection; silence. */
static void disturb(struct hft_run *run, struct hft_server *server)
{
    switch (hft_roll(run, 4)) {
    case 0:
        hft_server_say(server, "CLIENT KILL TYPE normal SKIPME yes");
        break;
    case 1:
        hft_server_say(server, "CLIENT KILL TYPE pubsub");
        break;
    default:
        hft_server_say(server, "SCRIPT FLUSH");
        freeReplyObject(hft_server_ask(server, "SCRIPT LOAD %s", hft_script_source(hfi_script_release)));
        hft_server_freeze(server);
        hft_sleep_ms(20 + hft_roll(run, 80));
        hft_server_thaw(server);
        break;
    }
}

static void in_vain(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct scene *scene = calloc(1, sizeof *scene);
    struct worker workers[WORKERS];
    int checked = 0;
    scene->run = run;
    (void)pthread_mutex_init(&scene->mutex, NULL);
    for (int i = 0; i < 2; i++)
        scene->clients[i] = hft_open(hft_server_url(server), NULL);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.scene = scene, .rng = run->seed * 131 + (unsigned)i};
        (void)pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int round = 0; round < run->times; round++) {
        hft_sleep_ms(hft_roll(run, 100));
        disturb(run, server);
        checked = look(scene, server, checked);
    }
    atomic_store(&scene->stop, true);
    for (int i = 0; i < WORKERS; i++)
        (void)pthread_join(workers[i].thread, NULL);
    while (checked < scene->count) {
        hft_sleep_ms(10);
        checked = look(scene, server, checked);
    }
    HFT_CHECK(run, scene->refused > run->times, "only %d calls got nothing", scene->refused);
    hft_tally(run, scene->count, -1);
    hft_note(run, "%d calls, %d of them in vain", scene->count, scene->refused);
    for (int i = 0; i < 2; i++)
        (void)hf_client_close(scene->clients[i], NULL);
    (void)pthread_mutex_destroy(&scene->mutex);
    free(scene);
    hft_server_stop(server);
}

const struct hft_named hft_vain_faults[] = {
    {"in-vain", "half a lease after a call that got nothing the server has nothing of it, whatever was lost under it", in_vain,
     60, 1500, 0},
    {.name = NULL}};
