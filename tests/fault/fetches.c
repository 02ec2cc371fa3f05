/* SPDX-License-Identifier: MIT */
/* fetches.c - many threads fetch few keys while loaders fail, calls are canceled and values are thrown away. */
#include "tests/fault/races.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS = 3, BLOCK = 2048 }; /* BLOCK: the fences that one grant may use, from the counter's value at the grant */

struct fetcher {
    struct hft_run *run;
    struct hft_server *server;
    hf_client *client;
    hf_cancel *cancel;
    pthread_t thread;
    unsigned rng;
    long loaded, shared, cached, failed, canceled, absent;
};

static _Atomic(long) fetches_left;
static _Atomic(bool) over;
static _Atomic(long) loads;

/* The loads of a key. A loader with a valid lease is alone, except for a load that was thrown away: until its client
 * has received that message, it may pass its lease to another thread, whose fetch began after the forget; the fence
 * tells them apart. */
static struct {
    pthread_mutex_t mutex; /* for all of it */
    hf_loading *inside[KEYS];
    int64_t  fence[KEYS];     /* of that load's lease */
    int64_t  forgotten[KEYS]; /* the highest fence that had been granted when the last forget returned */
    int      forgetting[KEYS];
} now = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static hf_status load(hf_loading *loading, void *arg)
{
    struct fetcher *me = arg;
    char words[64];
    const char *key = hf_loading_key(loading);
    int at = key[strlen(key) - 1] - '0';
    int64_t fence = hf_lease_fence(hf_loading_lease(loading));
    (void)pthread_mutex_lock(&now.mutex);
    bool other = now.inside[at] != NULL && hf_loading_is_wanted(now.inside[at]);
    bool mine = hf_loading_is_wanted(loading);
    bool forgotten = now.forgetting[at] > 0 || now.fence[at] <= now.forgotten[at] || fence <= now.forgotten[at];
    HFT_CHECK(me->run, !other || !mine || forgotten, "two load %s", key);
    now.inside[at] = loading;
    now.fence[at] = fence;
    (void)pthread_mutex_unlock(&now.mutex);
    hft_random_delay(&me->rng, 200);
    (void)pthread_mutex_lock(&now.mutex);
    if (now.inside[at] == loading)
        now.inside[at] = NULL;
    (void)pthread_mutex_unlock(&now.mutex);
    switch (hft_die(&me->rng, 6)) {
    case 0:
        return hf_loading_fail(loading, ENOENT, "the rng said so");
    case 1:
        return hf_loading_absent(loading);
    default:
        (void)snprintf(words, sizeof words, "%s is %ld", key, atomic_fetch_add(&loads, 1));
        return hf_loading_set(loading, words, strlen(words));
    }
}

static void look_at(struct fetcher *me, const char *key, const hf_value *value)
{
    const char *text = value->data;
    if (value->absent) {
        HFT_CHECK(me->run, value->data == NULL && value->size == 0, "absent, and there");
        me->absent++;
    } else {
        HFT_CHECK(me->run, strlen(text) == value->size && strncmp(text, key, strlen(key)) == 0, "%s: '%s'", key, text);
    }
    me->loaded += value->source == HF_LOADED;
    me->shared += value->source == HF_SHARED;
    me->cached += value->source == HF_CACHED || value->source == HF_STALE;
    HFT_CHECK(me->run, value->source != HF_LOCAL, "loaded without a lease, and the server is there");
}

static void forget(struct fetcher *me, const char *key, int at)
{
    (void)pthread_mutex_lock(&now.mutex);
    now.forgetting[at]++;
    (void)pthread_mutex_unlock(&now.mutex);
    HFT_CHECK(me->run, hf_fetch_forget(me->client, key, NULL) == HF_OK, "forget failed");
    (void)pthread_mutex_lock(&now.mutex);
    now.forgotten[at] = hft_server_ask_integer(me->server, "INCRBY hf:fence 0") + BLOCK - 1;
    now.forgetting[at]--;
    (void)pthread_mutex_unlock(&now.mutex);
}

static void *fetch_on(void *arg)
{
    struct fetcher *me = arg;
    while (atomic_fetch_sub(&fetches_left, 1) > 0) {
        char key[32];
        hf_value *value;
        hf_error error;
        hf_cancel *cancel = hft_die(&me->rng, 2) == 0 ? me->cancel : NULL;
        int at = hft_die(&me->rng, KEYS);
        (void)snprintf(key, sizeof key, "fetched:%d", at);
        hf_load_where where = (hf_load_where)hft_die(&me->rng, 3);
        hf_status status = hf_fetch(me->client, key,
                                    HF_FETCH(.load = load, .arg = me, .arg_size = sizeof *me, .ttl_ms = 1 + hft_die(&me->rng, 3),
                                             .stale_ms = hft_die(&me->rng, 2), .negative_ttl_ms = 1, .wait_ms = 20000,
                                             .where = where, .soft_ms = where == HF_LOAD_HERE ? 0 : hft_die(&me->rng, 2),
                                             .retry_ms = 1, .jitter = 0.5, .cancel = cancel),
                                    &value, &error);
        if (status == HF_OK) {
            look_at(me, key, value);
            hf_value_free(value);
        } else if (status == HF_LOAD_FAILED) {
            me->failed++;
            HFT_CHECK(me->run, error.os_errno == ENOENT && strstr(error.message, "the rng said so") != NULL,
                      "a failed load says: %s", error.message);
        } else if (status == HF_CANCELED && cancel != NULL) {
            me->canceled++;
        } else {
            hft_broken(me->run, "fetch: %s: %s", hf_status_name(status), error.message);
        }
        if (hft_die(&me->rng, 50) == 0)
            forget(me, key, at);
        if (cancel != NULL)
            hf_cancel_reset(cancel);
    }
    return NULL;
}

struct firing {
    struct fetcher *fetchers;
    int count;
    unsigned rng;
};

static void *fire_all(void *arg)
{
    struct firing *me = arg;
    while (!atomic_load(&over)) {
        hft_random_delay(&me->rng, 300);
        hf_cancel_fire(me->fetchers[hft_die(&me->rng, me->count)].cancel);
    }
    return NULL;
}

static void fetch_races(struct hft_run *run)
{
    enum { CLIENTS = 2, THREADS = 8 };
    static struct fetcher all[THREADS];
    struct firing firing = {.fetchers = all, .count = THREADS, .rng = run->rng + 100};
    struct hft_server *server = hft_server_start(NULL);
    hf_client *clients[CLIENTS];
    pthread_t thread;
    long loaded = 0, shared = 0, cached = 0, failed = 0, canceled = 0, absent = 0;
    atomic_store(&fetches_left, run->times);
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = hft_open(hft_server_url(server), NULL);
    for (int i = 0; i < THREADS; i++) {
        all[i] = (struct fetcher){
            .run = run, .server = server, .client = clients[i % CLIENTS], .rng = run->rng + (unsigned)i};
        HFT_CHECK(run, hf_cancel_open(all[i].client, &all[i].cancel, NULL) == HF_OK, "no cancel");
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_create(&all[i].thread, NULL, fetch_on, &all[i]);
    (void)pthread_create(&thread, NULL, fire_all, &firing);
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(all[i].thread, NULL);
        loaded += all[i].loaded;
        shared += all[i].shared;
        cached += all[i].cached;
        failed += all[i].failed;
        canceled += all[i].canceled;
        absent += all[i].absent;
    }
    atomic_store(&over, true);
    (void)pthread_join(thread, NULL);
    HFT_CHECK(run, loaded > 0 && shared > 0 && failed > 0 && canceled > 0 && absent > 0, "not all of it has happened");
    hft_check_quiet(run, server, clients, CLIENTS);
    for (int i = 0; i < THREADS; i++)
        hf_cancel_close(all[i].cancel);
    for (int i = 0; i < CLIENTS; i++)
        HFT_CHECK(run, hf_client_close(clients[i], NULL) == HF_OK, "close was not clean");
    hft_note(run, "%ld loaded, %ld shared, %ld from the cache, %ld failed, %ld canceled, %ld absent", loaded, shared,
             cached, failed, canceled, absent);
    hft_server_stop(server);
}

const struct hft_named hft_fetch_faults[] = {
    {"fetch-races", "fetches, loader threads, failing loaders, cancels and forgets at once: each has a true answer", fetch_races, 10000,
     200000, 0},
    {.name = NULL}};
