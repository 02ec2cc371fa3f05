/* SPDX-License-Identifier: MIT */
/* replicas.c - two servers, of which one is the primary: which one a client uses when they change places. One
 * primary at a time is an assumption of the protocol; these faults keep to it, and lose the writes of a primary that
 * steps down. */
#include "tests/fault/fault.h"

#include "tests/support/takers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static bool info_says(struct hft_server *server, const char *words)
{
    redisReply *info = hft_server_ask(server, "INFO replication");
    bool says = strstr(info->str, words) != NULL;
    freeReplyObject(info);
    return says;
}

static void follow(struct hft_server *server, const struct hft_server *primary)
{
    hft_server_say(server, "REPLICAOF 127.0.0.1 %d", hft_server_port(primary));
    HFT_UNTIL_TRUE(info_says(server, "master_link_status:up"));
}

static struct hft_server *start_fast(void)
{
    return hft_server_start_tcp(
        "repl-diskless-sync yes\nrepl-diskless-sync-delay 0\nrepl-ping-replica-period 1");
}

enum { KNOCKERS = 8, SECOND_MS = 1000, GRANTS = 200000 };

struct knocker { /* acquires a name of its own again and again, and records each grant's time */
    struct hft_run *run;
    hf_client *client;
    int number;
    pthread_t thread;
    _Atomic(bool) *stop;
    _Atomic(int64_t) asked_ns, got_ns; /* of the last grant */
    int64_t (*grants)[2];
    int64_t fence;
    _Atomic(int) count;
    int refused;
};

static void *knock(void *arg)
{
    struct knocker *me = arg;
    char name[48];
    (void)snprintf(name, sizeof name, "knock:%d", me->number);
    while (!atomic_load(me->stop)) {
        hf_lease *lease;
        hf_error error;
        int64_t asked = hft_true_ns();
        hf_status status = hf_lock_acquire(
            me->client, name, HF_LOCK(.lease_ms = 500, .wait_ms = me->number % 2 * 100), &lease, &error);
        int64_t got = hft_true_ns();
        HFT_CHECK(me->run,
                  status == HF_OK || status == HF_UNAVAILABLE || status == HF_TIMEOUT || status == HF_BUSY,
                  "%s: %s: %s", name, hf_status_name(status), error.message);
        me->refused += status == HF_UNAVAILABLE;
        if (status == HF_OK) {
            int at = atomic_load(&me->count);
            int64_t fence = hf_lease_fence(lease);
            HFT_CHECK(me->run, fence > me->fence, "%s: a fence fell from %lld to %lld", name,
                      (long long)me->fence, (long long)fence);
            me->fence = fence;
            if (at < GRANTS) {
                me->grants[at][0] = asked;
                me->grants[at][1] = got;
                atomic_store(&me->count, at + 1);
            }
            (void)hf_lease_release(lease, NULL);
        }
        if (status != HF_OK || me->number % 2 == 0)
            hft_sleep_ms(1);
    }
    return NULL;
}

static int grants_within(const struct knocker *knockers, int64_t from_ns, int64_t to_ns)
{
    int found = 0;
    for (int i = 0; i < KNOCKERS; i++)
        for (int g = 0; g < atomic_load(&knockers[i].count); g++)
            found += knockers[i].grants[g][0] > from_ns && knockers[i].grants[g][1] < to_ns;
    return found;
}

static int grants(const struct knocker *knockers)
{
    int all = 0;
    for (int i = 0; i < KNOCKERS; i++)
        all += atomic_load(&knockers[i].count);
    return all;
}

static void start_knocking(struct hft_run *run, struct knocker *knockers, hf_client *client,
                           _Atomic(bool) *stop)
{
    for (int i = 0; i < KNOCKERS; i++) {
        knockers[i] = (struct knocker){.run = run, .client = client, .number = i, .stop = stop};
        knockers[i].grants = calloc(GRANTS, sizeof *knockers[i].grants);
        if (knockers[i].grants == NULL || pthread_create(&knockers[i].thread, NULL, knock, &knockers[i]) != 0)
            exit(1);
    }
}

/* The client knows one address. The server there becomes a replica of another server, and primary again. */
static void demotions(struct hft_run *run)
{
    struct hft_server *server = start_fast(), *successor = start_fast();
    hf_client *client = hft_open(hft_server_url(server), HF_CLIENT(.command_ms = 500));
    static struct knocker knockers[KNOCKERS];
    _Atomic(bool) stop = false;
    int64_t worst = 0;
    int refused = 0;
    start_knocking(run, knockers, client, &stop);
    for (int round = 0; round < run->times; round++) {
        int before = grants(knockers);
        HFT_UNTIL_TRUE(grants(knockers) > before + 50);
        if (round % 2 == 0) { /* a failover that loses nothing, up to the moment */
            follow(successor, server);
            hft_server_say(successor, "REPLICAOF NO ONE");
        }
        follow(server, successor); /* answered: from here on it is a replica */
        int64_t demoted = hft_true_ns();
        hft_sleep_ms(200 + hft_roll(run, 1500));
        int64_t promoting = hft_true_ns();
        HFT_CHECK(run, hft_server_ask_integer(successor, "EXISTS hf:{knock:0}") <= 1, "cannot ask");
        hft_server_say(server, "REPLICAOF NO ONE");
        int64_t promoted = hft_true_ns();
        int wrong = grants_within(knockers, demoted, promoting);
        HFT_CHECK(run, wrong == 0, "%d leases were granted by a replica", wrong);
        before = grants(knockers);
        while (grants(knockers) == before && hft_true_ns() - promoted < 8000 * HFT_NS_PER_MS)
            hft_sleep_ms(1);
        int64_t took = hft_true_ns() - promoted;
        worst = took > worst ? took : worst;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < KNOCKERS; i++) {
        (void)pthread_join(knockers[i].thread, NULL);
        refused += knockers[i].refused;
        free(knockers[i].grants);
    }
    HFT_CHECK(run, hft_in_time(worst, 2500 * HFT_NS_PER_MS), "back to work %lld ms after the promotion",
              (long long)(worst / HFT_NS_PER_MS));
    hft_tally(run, run->times, worst);
    hft_note(run, "%d refusals, worst_ms is from a promotion to the next grant", refused);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
    hft_server_stop(successor);
}

static void replica(struct hft_run *run)
{
    struct hft_server *primary = start_fast(), *server = start_fast();
    follow(server, primary);
    for (int round = 0; round < run->times; round++) {
        hf_client *client = NULL;
        hf_error error = {.status = HF_OK};
        hf_status status =
            hf_client_open(hft_server_url(server), HF_CLIENT(.connect_ms = 500), &client, &error);
        HFT_CHECK(run, status == HF_UNAVAILABLE && strstr(error.message, "primary") != NULL,
                  "open at a replica: %s: %s", hf_status_name(status), error.message);
        if (status == HF_OK)
            (void)hf_client_close(client, NULL);
        client = hft_open(hft_server_url(server), HF_CLIENT(.lazy = true, .connect_ms = 300));
        for (int i = 0; i < 4; i++) {
            hf_lease *lease = NULL;
            status = hf_lock_acquire(client, "replica", HF_LOCK(.wait_ms = i % 2 * 400), &lease, &error);
            HFT_CHECK(run, status == HF_UNAVAILABLE || (i % 2 == 1 && status == HF_TIMEOUT),
                      "acquire at a replica: %s: %s", hf_status_name(status), error.message);
        }
        HFT_CHECK(run, hft_lock_exists(server, "replica") == 0, "a key at a replica");
        (void)hf_client_close(client, NULL);
    }
    HFT_CHECK(run, hft_server_calls(server, "multi") == 0 && hft_server_calls(server, "evalsha") == 0,
              "a replica was asked for a lock");
    hft_server_stop(server);
    hft_server_stop(primary);
}

static int64_t connections(struct hft_server *server)
{
    redisReply *info = hft_server_ask(server, "INFO stats");
    const char *at = strstr(info->str, "total_connections_received:");
    int64_t count = at != NULL ? strtoll(at + 27, NULL, 10) : -1;
    freeReplyObject(info);
    return count;
}

/* An idle connection may live through a demotion, and through a promotion of a server that lost all data. */
static void idle_through_promotion(struct hft_run *run)
{
    struct hft_server *server = start_fast(), *other = start_fast();
    hf_client *client = hft_open(hft_server_url(server), NULL);
    int asked = 0, redialled = 0;
    for (int round = 0; round < run->times; round++) {
        hf_lease *lease;
        hf_error error;
        HFT_CHECK(run, hf_lock_acquire(client, "idle", HF_LOCK(.wait_ms = 5000), &lease, &error) == HF_OK,
                  "no lease: %s", error.message);
        int64_t fence = hf_lease_fence(lease);
        (void)hf_lease_release(lease, NULL);
        int64_t quiet = hft_true_ns(), roles = hft_server_calls(server, "role"), before = connections(server);
        if (round % 2 == 0) {
            follow(server, other);
            hft_server_say(server, "REPLICAOF NO ONE");
        }
        hft_sleep_until(quiet + 1300 * HFT_NS_PER_MS);
        hf_status status = hf_lock_acquire(client, "idle", HF_LOCK(.wait_ms = 5000), &lease, &error);
        HFT_CHECK(run, status == HF_OK, "after idling: %s: %s", hf_status_name(status), error.message);
        if (status != HF_OK)
            continue;
        HFT_CHECK(run, hft_server_calls(server, "role") > roles,
                  "nobody asked for the role after 1.3 s of idling");
        HFT_CHECK(run, hf_lease_fence(lease) > fence, "a fence fell from %lld to %lld", (long long)fence,
                  (long long)hf_lease_fence(lease));
        asked += hft_server_calls(server, "role") > roles;
        redialled += connections(server) > before;
        (void)hf_lease_release(lease, NULL);
    }
    hft_note(run, "%d times asked, %d times on a new connection", asked, redialled);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
    hft_server_stop(other);
}

const struct hft_named hft_replica_faults[] = {
    {"demotions", "a primary that becomes a replica of another one grants nothing until it is primary again",
     demotions, 2, 60, HFT_MEASURES},
    {"replica", "a client that was pointed at a replica never gets a lease", replica, 1, 20, 0},
    {"idle-promotion", "after idling through a demotion and a promotion the role is asked first, fences rise",
     idle_through_promotion, 2, 40, 0},
    {.name = NULL}};
