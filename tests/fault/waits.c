/* SPDX-License-Identifier: MIT */
/* waits.c - faults between a waiter and its grant: lost messages, late answers. */
#include "tests/fault/fault.h"
#include "tests/support/quantile.h"
#include "tests/support/takers.h"

#include "core/protocol/scripts.h"

#include <holdfast/redis.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECHECK_NS (440 * HFT_NS_PER_MS) /* 1.1 R */
#define SLACK_NS   (50 * HFT_NS_PER_MS)

static int64_t round_trip_ns(hf_client *client)
{
    int64_t worst = 0;
    for (int i = 0; i < 20; i++) {
        struct redisReply *reply;
        int64_t before = hft_true_ns();
        if (hf_command(client, &reply, NULL, "PING") == HF_OK)
            freeReplyObject(reply);
        int64_t took = hft_true_ns() - before;
        worst = took > worst ? took : worst;
    }
    return worst;
}

struct waiter {
    struct hft_run *run;
    hf_client *client;
    char name[48];
    pthread_t thread;
    _Atomic(int64_t) got_ns;
    _Atomic(bool) asked;
};

static void *wait_for_it(void *arg)
{
    struct waiter *me = arg;
    hf_lease *lease;
    hf_error error;
    atomic_store(&me->asked, true);
    hf_status status =
        hf_lock_acquire(me->client, me->name, HF_LOCK(.wait_ms = 15000, .lease_ms = 5000), &lease, &error);
    atomic_store(&me->got_ns, hft_true_ns());
    HFT_CHECK(me->run, status == HF_OK, "%s: %s: %s", me->name, hf_status_name(status), error.message);
    if (status == HF_OK)
        HFT_CHECK(me->run, hf_lease_release(lease, NULL) != HF_LOST, "%s was lost at once", me->name);
    return NULL;
}

static void begin_waiting(struct hft_run *run, struct waiter *waiter, hf_client *client, const char *name)
{
    waiter->run = run;
    waiter->client = client;
    atomic_store(&waiter->got_ns, 0);
    atomic_store(&waiter->asked, false);
    (void)snprintf(waiter->name, sizeof waiter->name, "%.47s", name);
    if (pthread_create(&waiter->thread, NULL, wait_for_it, waiter) != 0)
        exit(1);
}

static void silent_subscribers(struct hft_run *run)
{
    enum { MOST = 256 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *a = hft_open(hft_proxy_url(proxy), NULL), *b = hft_open(hft_proxy_url(proxy), NULL);
    int names = run->full ? MOST : 48;
    int64_t *took = calloc((size_t)run->times * MOST, sizeof *took), released[MOST];
    static struct waiter waiters[MOST];
    struct hft_network deaf = {.to_client = {[HFT_SUBSCRIBER] = {.hole = true}}};
    int count = 0;
    hft_proxy_network(proxy, &deaf);
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[MOST];
        for (int i = 0; i < names; i++) {
            char name[48];
            (void)snprintf(name, sizeof name, "deaf:%d", i);
            HFT_CHECK(run, hf_lock_acquire(a, name, HF_LOCK(.wait_ms = 5000), &leases[i], NULL) == HF_OK,
                      "no lease");
            begin_waiting(run, &waiters[i], b, name);
        }
        for (int i = 0; i < names; i++)
            HFT_UNTIL_TRUE(hft_queued(server, waiters[i].name) == 1);
        int64_t limit = RECHECK_NS + SLACK_NS + round_trip_ns(a);
        for (int i = 0; i < names; i++) {
            hft_sleep_ms(hft_roll(run, run->full ? 5 : 20));
            HFT_CHECK(run, hf_lease_release(leases[i], NULL) == HF_OK, "release failed");
            released[i] = hft_true_ns();
        }
        for (int i = 0; i < names; i++) {
            (void)pthread_join(waiters[i].thread, NULL);
            int64_t length = atomic_load(&waiters[i].got_ns) - released[i];
            HFT_CHECK(run, hft_in_time(length, limit), "round %d, %s: a hand-off took %lld ms", round,
                      waiters[i].name, (long long)(length / HFT_NS_PER_MS));
            took[count++] = length;
        }
    }
    hft_tally(run, count, hft_quantile(took, count, 1));
    hft_note(run, "hand-offs from release to grant, p50 %.1f ms", (double)hft_quantile(took, count, 0.5) / 1e6);
    free(took);
    (void)hf_client_close(a, NULL);
    (void)hf_client_close(b, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

struct delayer {
    unsigned rng;
    int least_ms, most_ms;
};

static void delay_grants(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    struct delayer *delayer = arg;
    if (!hft_request_is(request, "EXEC", NULL) &&
        !hft_request_is(request, "EVALSHA", hfi_script_acquire->sha1))
        return;
    judgement->sentence = HFT_LATE_REPLY;
    judgement->delay_ns =
        (delayer->least_ms + rand_r(&delayer->rng) % (delayer->most_ms - delayer->least_ms)) * HFT_NS_PER_MS;
}

struct late {
    struct hft_run *run;
    hf_client *client;
    char name[48];
    int64_t wait_ms;
    pthread_t thread;
    _Atomic(bool) held;
};

static void *come_late(void *arg)
{
    struct late *me = arg;
    hf_lease *lease;
    hf_error error;
    hf_status status = hf_lock_acquire(me->client, me->name, HF_LOCK(.lease_ms = 200, .wait_ms = me->wait_ms),
                                       &lease, &error);
    atomic_store(&me->held, status == HF_OK);
    HFT_CHECK(me->run,
              status == HF_OK || status == HF_TIMEOUT || status == HF_UNAVAILABLE || status == HF_BUSY,
              "%s: %s: %s", me->name, hf_status_name(status), error.message);
    HFT_CHECK(me->run, status != HF_UNAVAILABLE || strstr(error.message, "when the lease was over") != NULL,
              "%s: %s says nothing of a late answer", me->name, error.message);
    if (status == HF_OK) {
        HFT_CHECK(me->run, false, "%s was returned as held, %lld ms before its end", me->name,
                  (long long)hf_lease_remaining_ms(lease));
        (void)hf_lease_release(lease, NULL);
    }
    return NULL;
}

static void late_acquire(struct hft_run *run)
{
    enum { NAMES = 32 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    struct delayer delayer = {run->seed, 201, 450};
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 2000));
    hft_proxy_judge(proxy, delay_grants, &delayer);
    for (int round = 0; round < run->times; round++) {
        struct late all[NAMES] = {0};
        for (int i = 0; i < NAMES; i++) {
            all[i] = (struct late){.run = run, .client = client, .wait_ms = i % 2 == 0 ? 0 : 300 + 10 * i};
            (void)snprintf(all[i].name, sizeof all[i].name, "late:%d:%d", round, i);
            (void)pthread_create(&all[i].thread, NULL, come_late, &all[i]);
        }
        for (int i = 0; i < NAMES; i++)
            (void)pthread_join(all[i].thread, NULL);
        int64_t left = hft_lock_keys_after(server, 1000);
        HFT_CHECK(run, left == 0, "%lld keys were not given back", (long long)left);
    }
    hft_note(run, "%d acquires answered after their lease", run->times * NAMES);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

static void orphans(struct hft_run *run)
{
    enum { NAMES = 16 };
    struct hft_server *server = hft_server_start(NULL);
    hf_client *b = hft_open(hft_server_url(server), HF_CLIENT(.command_ms = 10000));
    int64_t *took = calloc((size_t)run->times * NAMES, sizeof *took);
    int count = 0;
    int64_t limit = RECHECK_NS + SLACK_NS + 2 * round_trip_ns(b);
    for (int round = 0; round < run->times; round++) {
        hf_client *a = hft_open(hft_server_url(server), HF_CLIENT(.command_ms = 100));
        struct waiter waiters[NAMES] = {0};
        struct hft_taker givers[NAMES];
        char names[NAMES][48];
        hft_server_freeze(server);
        for (int i = 0; i < NAMES; i++) {
            (void)snprintf(names[i], sizeof names[i], "orphan:%d:%d", round, i);
            hft_take(&givers[i], a, names[i], HF_LOCK(.wait_ms = i % 2 == 0 ? 0 : 150));
        }
        for (int i = 0; i < NAMES; i++)
            HFT_CHECK(run, hft_taken(&givers[i]) != HF_OK, "%s: a frozen server grants", names[i]);
        for (int i = 0; i < NAMES; i++)
            begin_waiting(run, &waiters[i], b, names[i]);
        hft_sleep_ms(hft_roll(run, run->full ? 1000 : 200));
        int64_t thawed = hft_true_ns();
        hft_server_thaw(server);
        for (int i = 0; i < NAMES; i++) {
            (void)pthread_join(waiters[i].thread, NULL);
            int64_t length = atomic_load(&waiters[i].got_ns) - thawed;
            HFT_CHECK(run, hft_in_time(length, limit), "%s: an orphan blocked for %lld ms", names[i],
                      (long long)(length / HFT_NS_PER_MS));
            took[count++] = length;
        }
        /* No answer has said that its acquires will not be executed any more. */
        HFT_CHECK(run, hf_client_close(a, NULL) == HF_UNKNOWN, "A's close claims to have given everything back");
    }
    HFT_CHECK(run, hf_client_close(b, NULL) == HF_OK, "B's close was not clean"); /* with the last posted releases */
    HFT_CHECK(run, hft_lock_keys(server) == 0, "%lld keys are left", (long long)hft_lock_keys(server));
    hft_tally(run, count, hft_quantile(took, count, 1));
    hft_note(run, "orphans, from the thaw to the next holder, p50 %.1f ms",
             (double)hft_quantile(took, count, 0.5) / 1e6);
    free(took);
    hft_server_stop(server);
}

const struct hft_named hft_wait_faults[] = {
    {"silent-subscribers", "no message ever comes: a hand-off takes at most 1.1 R + a round trip + 50 ms",
     silent_subscribers, 2, 20, HFT_MEASURES},
    {"late-acquire", "a grant answered after its lease is never returned as held, and given back",
     late_acquire, 1, 32, 0},
    {"orphans",
     "an acquire given up while the server was frozen blocks nobody beyond 1.1 R + 2 round trips + 50 ms",
     orphans, 3, 70, HFT_MEASURES},
    {.name = NULL}};
