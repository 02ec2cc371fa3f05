/* SPDX-License-Identifier: MIT */
/* network.c - faults of the network: wrong bytes, half-closed connections, idle and broken connections. */
#include "tests/fault/crew.h"

#include "tests/support/takers.h"

#include <holdfast/redis.h>

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCKS = 4 };

/* A lease of 20 s that nobody gave back would be seen here. */
static void check_released(struct hft_run *run, struct hft_server *server, int64_t within_ms)
{
    int64_t until = hft_true_ns() + within_ms * HFT_NS_PER_MS;
    int left;
    do {
        left = 0;
        for (int i = 0; i < LOCKS; i++) {
            char name[48];
            (void)snprintf(name, sizeof name, "crew:%d", i);
            left += hft_lock_exists(server, name) != 0;
        }
    } while (left > 0 && hft_true_ns() < until && (hft_sleep_ms(5), true));
    HFT_CHECK(run, left == 0, "%d locks were not given back", left);
}

static void spoiled_replies(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    for (int round = 0; round < run->times; round++) {
        struct hft_crew_plan plan = {.url = hft_proxy_url(proxy),
                                     .clients = 3,
                                     .threads = 8,
                                     .locks = LOCKS,
                                     .lease_ms = 20000,
                                     .wait_ms = 1000,
                                     .command_ms = 500,
                                     .stay_us = 500,
                                     .overlaps_only = true};
        struct hft_network wrong = {.to_client = {{.spoil_one_in = 20 + hft_roll(run, 200)},
                                                  {.spoil_one_in = 5 + hft_roll(run, 100)}}};
        struct hft_crew *crew = hft_crew_start(run, &plan);
        hft_proxy_network(proxy, &wrong);
        hft_sleep_ms(2000);
        hft_proxy_network(proxy, NULL);
        long before = hft_crew_acquired(crew);
        int64_t healed = hft_true_ns(), work = healed;
        while (hft_crew_acquired(crew) < before + 20 && work - healed < 10000 * HFT_NS_PER_MS) {
            hft_sleep_ms(5);
            work = hft_true_ns();
        }
        HFT_CHECK(run, work - healed < 10000 * HFT_NS_PER_MS, "nobody works again");
        hft_crew_stop(crew);
        check_released(run, server, 5000); /* a dial backs off for a second, and what is owed then is asked for again */
        run->note[0] = 0;
        (void)hft_crew_end(crew);
    }
    HFT_CHECK(run, hft_proxy_spoiled(proxy) > 0, "no reply was spoiled");
    hft_note(run, "%ld replies and messages spoiled", hft_proxy_spoiled(proxy));
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

static void half_close(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start_tcp(server);
    struct hft_crew_plan plan = {.url = hft_proxy_url(proxy),
                                 .clients = 3,
                                 .threads = 6,
                                 .locks = LOCKS,
                                 .lease_ms = 20000,
                                 .wait_ms = 3000,
                                 .command_ms = 500,
                                 .stay_us = 2000};
    struct hft_crew *crew = hft_crew_start(run, &plan);
    for (int i = 0; i < run->times; i++) {
        hft_sleep_ms(20 + hft_roll(run, 80));
        hft_proxy_half_close(proxy);
    }
    long before = hft_crew_acquired(crew);
    int64_t quiet = hft_true_ns(), took = 0;
    while (hft_crew_acquired(crew) < before + 100 && took < 8000 * HFT_NS_PER_MS) {
        hft_sleep_ms(1);
        took = hft_true_ns() - quiet;
    }
    /* An orphaned token blocks its name for 1.1 R and a little; four locks may have one at the same time. */
    HFT_CHECK(run, hft_in_time(took, 1000 * HFT_NS_PER_MS), "a hundred acquires took %lld ms afterwards",
              (long long)(took / HFT_NS_PER_MS));
    struct hft_crew_result result = hft_crew_end(crew);
    HFT_CHECK(run, result.lost == 0, "%ld leases were lost", result.lost);
    check_released(run, server, 1000);
    hft_note(run, "%d half-closes", run->times);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- nobody reads ---- */

enum { TALKERS = 8, TALK = 200000, KEPT = 8 };

struct talker {
    struct hft_run *run;
    hf_client *client;
    pthread_t thread;
    _Atomic(bool) *stop;
    int64_t longest_ns;
    long calls;
};

static void *talk(void *arg)
{
    struct talker *me = arg;
    char *much = malloc(TALK + 1);
    memset(much, 'x', TALK);
    much[TALK] = 0;
    while (!atomic_load(me->stop)) {
        struct redisReply *reply;
        hf_error error;
        int64_t before = hft_true_ns();
        hf_status status = hf_command(me->client, &reply, &error, "ECHO %s", much);
        int64_t took = hft_true_ns() - before;
        me->longest_ns = took > me->longest_ns ? took : me->longest_ns;
        me->calls++;
        HFT_CHECK(me->run, status == HF_OK || status == HF_UNKNOWN || status == HF_UNAVAILABLE,
                  "ECHO: %s: %s", hf_status_name(status), error.message);
        if (status == HF_OK) {
            HFT_CHECK(me->run, reply->len == TALK && strcmp(reply->str, much) == 0, "not what was said");
            freeReplyObject(reply);
        } else {
            hft_sleep_ms(1);
        }
    }
    free(much);
    return NULL;
}

static void take_all(struct hft_run *run, hf_client *client, const char *what, int64_t lease_ms,
                     hf_lease **leases, int count)
{
    for (int i = 0; i < count; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%s:%d", what, i);
        hf_status status =
            hf_lock_acquire(client, name, HF_LOCK(.lease_ms = lease_ms, .wait_ms = 8000), &leases[i], NULL);
        HFT_CHECK(run, status == HF_OK, "no lease: %s", hf_status_name(status));
        if (status != HF_OK)
            exit(1);
    }
}

static void check_all_end(struct hft_run *run, hf_client *client, struct hft_proxy *proxy, int round)
{
    struct hft_network stalled = {.accept_nobody = false};
    hf_lease *leases[KEPT];
    take_all(run, client, "stalled", 700, leases, KEPT);
    for (int class = 0; class < 2; class ++) {
        stalled.to_server[class].stall = round % 2 == 0;
        stalled.to_client[class].stall = round % 2 == 1;
    }
    hft_proxy_network(proxy, &stalled);
    int64_t silent_ms = hft_boottime_ms();
    for (int i = 0; i < KEPT; i++)
        HFT_CHECK(run, hft_await_end(leases[i]) < silent_ms + 1500, "a lease of 700 ms is valid after 1,500 ms of silence");
    for (int i = 0; i < KEPT; i++)
        HFT_CHECK(run, hf_lease_release(leases[i], NULL) == HF_LOST, "its release is not LOST");
    hft_proxy_network(proxy, NULL);
    hf_lease *again;
    int64_t healed = hft_true_ns();
    hf_status status = hf_lock_acquire(client, "stalled", HF_LOCK(.wait_ms = 8000), &again, NULL);
    hft_tally(run, 1, hft_true_ns() - healed);
    HFT_CHECK(run, status == HF_OK, "afterwards: %s", hf_status_name(status));
    if (status == HF_OK)
        (void)hf_lease_release(again, NULL);
}

static void stalls(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start_tcp(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 300));
    struct talker talkers[TALKERS];
    _Atomic(bool) stop = false;
    int64_t longest = 0;
    long calls = 0;
    for (int i = 0; i < TALKERS; i++) {
        talkers[i] = (struct talker){.run = run, .client = client, .stop = &stop};
        (void)pthread_create(&talkers[i].thread, NULL, talk, &talkers[i]);
    }
    for (int round = 0; round < run->times; round++)
        check_all_end(run, client, proxy, round);
    atomic_store(&stop, true);
    for (int i = 0; i < TALKERS; i++) {
        (void)pthread_join(talkers[i].thread, NULL);
        longest = talkers[i].longest_ns > longest ? talkers[i].longest_ns : longest;
        calls += talkers[i].calls;
    }
    /* 200 kB through a proxy: three hops, a buffer of 64 kB at a time. */
    HFT_CHECK(run, hft_in_time_of(12, longest, 350 * HFT_NS_PER_MS), "a call of 300 ms took %lld ms",
              (long long)(longest / HFT_NS_PER_MS));
    hft_note(run, "%ld calls of 200 kB in at most %.0f ms, worst_ms is the first acquire afterwards", calls,
             (double)longest / 1e6);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- all pools at once ---- */

enum {
    POOLS = 20,
    EACH = 16,
    CONNECTIONS = 4 /* of a pool: two lanes, the renewals', a subscriber */,
    DIALS = 8000
};

struct patient {
    hf_client *client;
    int number;
    pthread_t thread;
    _Atomic(bool) *stop;
    _Atomic(int64_t) served_ns;
};

static void *be_patient(void *arg)
{
    struct patient *me = arg;
    char name[48];
    (void)snprintf(name, sizeof name, "patient:%d", me->number);
    while (!atomic_load(me->stop)) {
        hf_lease *lease;
        if (hf_lock_acquire(me->client, name, HF_LOCK(.wait_ms = 500), &lease, NULL) == HF_OK) {
            (void)hf_lease_release(lease, NULL);
            atomic_store(&me->served_ns, hft_true_ns());
        }
        hft_sleep_ms(2);
    }
    return NULL;
}

/* The most sends in any window of window_ns. */
static int densest(const int64_t *at, int count, int64_t from_ns, int64_t window_ns)
{
    int most = 0;
    for (int first = 0, last = 0; last < count; last++) {
        while (at[first] < at[last] - window_ns || at[first] < from_ns)
            if (first++ == last)
                break;
        most = last - first + 1 > most ? last - first + 1 : most;
    }
    return most;
}

static void judge_dials(struct hft_run *run, const int64_t *at, int count, int64_t down_ns)
{
    const int64_t second = 1000 * HFT_NS_PER_MS;
    int first = densest(at, count, down_ns, second), later = densest(at, count, down_ns + 2 * second, second);
    int bunch = densest(at, count, down_ns + 2 * second, 50 * HFT_NS_PER_MS);
    int all = POOLS * CONNECTIONS;
    /* Dials at once, then after 50, 100, 200, 400 ms; then 1.25 a second at most, with the jitter. */
    HFT_CHECK(run, first <= all * 6, "%d dials in one second", first);
    HFT_CHECK(run, later <= all * 5 / 4 + all / 10, "%d dials a second after two seconds", later);
    /* A machine that wakes the threads a tenth of a second late wakes many of them together. */
    bool stalled = hft_in_time(450 * HFT_NS_PER_MS, 50 * HFT_NS_PER_MS);
    HFT_CHECK(run, bunch <= all / 2 || stalled, "%d of %d pools' connections dial within the same 50 ms", bunch, all);
    hft_note(run, "at most %d dials in a second, later %d, %d of these in 50 ms", first, later, bunch);
}

static void dial_storm(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    static struct patient patients[POOLS * EACH];
    static int64_t dials[DIALS];
    hf_client *clients[POOLS];
    _Atomic(bool) stop = false;
    for (int p = 0; p < POOLS; p++)
        clients[p] = hft_open(hft_proxy_url(proxy), HF_CLIENT(.connect_ms = 8000));
    for (int i = 0; i < POOLS * EACH; i++) {
        patients[i] = (struct patient){.client = clients[i / EACH], .number = i, .stop = &stop};
        (void)pthread_create(&patients[i].thread, NULL, be_patient, &patients[i]);
    }
    for (int round = 0; round < run->times; round++) {
        for (int i = 0; i < POOLS * EACH; i++)
            HFT_UNTIL_TRUE(atomic_load(&patients[i].served_ns) != 0);
        (void)hft_proxy_dials(proxy, dials, DIALS);
        int64_t down = hft_true_ns(), worst = 0;
        hft_server_kill(server);
        hft_sleep_ms(5000);
        hft_server_restart(server);
        int64_t up = hft_true_ns();
        judge_dials(run, dials, hft_proxy_dials(proxy, dials, DIALS), down);
        for (int i = 0; i < POOLS * EACH; i++) {
            HFT_UNTIL_TRUE(atomic_load(&patients[i].served_ns) > up);
            int64_t took = atomic_load(&patients[i].served_ns) - up;
            worst = took > worst ? took : worst;
        }
        int again = hft_proxy_dials(proxy, dials, DIALS);
        HFT_CHECK(run, again <= POOLS * CONNECTIONS * 2, "%d dials to a server that is back", again);
        HFT_CHECK(run, hft_in_time(worst, 2500 * HFT_NS_PER_MS), "the last one was served after %lld ms",
                  (long long)(worst / HFT_NS_PER_MS));
        hft_tally(run, POOLS * EACH, worst);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < POOLS * EACH; i++)
        (void)pthread_join(patients[i].thread, NULL);
    for (int p = 0; p < POOLS; p++)
        (void)hf_client_close(clients[p], NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- a narrow line ---- */

struct hauler {
    struct hft_run *run;
    hf_client *client;
    int number;
    _Atomic(bool) *over;
    pthread_t thread;
    long done;
};

static void *haul(void *arg)
{
    struct hauler *me = arg;
    char name[48];
    (void)snprintf(name, sizeof name, "hauled:%d", me->number);
    while (!atomic_load(me->over)) {
        hf_lease *lease;
        hf_status status = hf_lock_acquire(me->client, name, HF_LOCK(.wait_ms = 2000), &lease, NULL);
        HFT_CHECK(me->run, status == HF_OK || status == HF_TIMEOUT || status == HF_UNAVAILABLE, "an acquire: %s",
                  hf_status_name(status));
        me->done += status == HF_OK;
        if (status == HF_OK)
            (void)hf_lease_release(lease, NULL);
    }
    return NULL;
}

#define BYTE_NS 125000 /* 64 kbit/s */
static const struct hft_network narrow = {.to_server = {{.byte_ns = BYTE_NS}, {.byte_ns = BYTE_NS}},
                                          .to_client = {{.byte_ns = BYTE_NS}, {.byte_ns = BYTE_NS}}};

/* A value's lane goes by its name, so these need all of them. */
static void dial_value_lanes(struct hft_run *run, hf_client *client)
{
    for (int i = 0; i < 100; i++) {
        char key[48];
        (void)snprintf(key, sizeof key, "other:%d", i);
        HFT_CHECK(run, hf_fetch_forget(client, key, NULL) == HF_OK, "%s cannot be forgotten", key);
    }
}

/* Until there were so many, in `dials`, which has room for `most`. Returns their number. */
static int await_dials(struct hft_proxy *proxy, int64_t *dials, int enough, int most)
{
    int count = 0;
    HFT_UNTIL_TRUE((count += hft_proxy_dials(proxy, dials + count, most - count)) >= enough);
    return count;
}

/* Twenty connections share the line, and all are lost at once: their handshakes together take longer than a lease, and
 * a renewal must not have to wait for them. */
static void renewals_first(struct hft_run *run)
{
    enum { LANES = 16, LEASES = 4, LEASE_MS = 2000, MOST = 100 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.lanes = LANES));
    hf_lease *leases[LEASES];
    int64_t dials[MOST];
    dial_value_lanes(run, client);
    take_all(run, client, "kept", LEASE_MS, leases, LEASES);
    hft_proxy_network(proxy, &narrow);
    for (int round = 0; round < run->times; round++) {
        hft_await_renewals(3, leases, LEASES); /* by then they have told how slow the road is */
        (void)hft_proxy_dials(proxy, dials, MOST);
        hft_proxy_cut(proxy, false);
        hft_await_renewals(3, leases, LEASES); /* while the other lanes come back */
        int count = await_dials(proxy, dials, LANES, MOST), crowd = densest(dials, count, 0, 20 * HFT_NS_PER_MS);
        /* A handshake takes longer than that, and only a few may be under way. */
        HFT_CHECK(run, crowd <= LANES / 2, "round %d: %d of %d dials within 20 ms", round, crowd, count);
        for (int i = 0; i < LEASES; i++)
            HFT_CHECK(run, hf_lease_is_valid(leases[i]), "round %d: a lease is lost", round);
    }
    hft_proxy_network(proxy, NULL);
    for (int i = 0; i < LEASES; i++)
        (void)hf_lease_release(leases[i], NULL);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* A road that is long and wide: the lanes must not have to wait for each other. Two round trips make a connection, for
 * the proxy accepts at once. The reserved lane's and a subscriber's are the first, then 2, 3, 5 and 8 are made at a time:
 * the last one begins after eight round trips or so. Two at a time would take eighteen. */
static void far_return(struct hft_run *run)
{
    enum { LANES = 16, ALL = LANES + 4, RTT_MS = 200, MOST = 100 }; /* two are lock lanes */
    const struct hft_way way = {.delay_ns = RTT_MS * HFT_NS_PER_MS / 2};
    const struct hft_network far = {.to_server = {way, way}, .to_client = {way, way}};
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.lanes = LANES));
    hf_lease *kept;
    int64_t dials[MOST];
    dial_value_lanes(run, client);
    take_all(run, client, "kept", 3000, &kept, 1);
    hft_proxy_network(proxy, &far);
    for (int round = 0; round < run->times; round++) {
        hft_await_renewals(3, &kept, 1); /* by then they have told how long the road is */
        (void)hft_proxy_dials(proxy, dials, MOST);
        int64_t cut = hft_true_ns();
        hft_proxy_cut(proxy, false);
        int count = await_dials(proxy, dials, ALL, MOST);
        int64_t took = dials[ALL - 1] - cut;
        HFT_CHECK(run, hft_in_time(took, 12 * RTT_MS * HFT_NS_PER_MS), "round %d: %d connections after %lld ms", round, ALL,
                  (long long)(took / HFT_NS_PER_MS));
        HFT_CHECK(run, hf_lease_is_valid(kept), "round %d: the lease is lost", round);
        hft_tally(run, count, took);
    }
    hft_proxy_network(proxy, NULL);
    (void)hf_lease_release(kept, NULL);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* Two clients, each at the end of a narrow line of its own, keep their leases and get some work done; then all their
 * connections are lost once more. */
static void narrow_line(struct hft_run *run)
{
    enum { CLIENTS = 2, THREADS = 4, LEASES = 8, LEASE_MS = 4000 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxies[CLIENTS];
    hf_client *clients[CLIENTS];
    hf_lease *leases[CLIENTS][LEASES];
    struct hauler haulers[CLIENTS][THREADS];
    _Atomic(bool) over = false;
    for (int c = 0; c < CLIENTS; c++) {
        char what[32];
        proxies[c] = hft_proxy_start(server);
        hft_proxy_network(proxies[c], &narrow);
        clients[c] = hft_open(hft_proxy_url(proxies[c]), NULL);
        (void)snprintf(what, sizeof what, "kept:%d", c);
        take_all(run, clients[c], what, LEASE_MS, leases[c], LEASES);
        for (int t = 0; t < THREADS; t++) {
            haulers[c][t] = (struct hauler){.run = run, .client = clients[c], .number = c * THREADS + t, .over = &over};
            if (pthread_create(&haulers[c][t].thread, NULL, haul, &haulers[c][t]) != 0)
                exit(1);
        }
    }
    for (int round = 0; round < run->times; round++) {
        for (int c = 0; c < CLIENTS; c++)
            hft_await_renewals(3, leases[c], LEASES);
        for (int c = 0; c < CLIENTS; c++)
            hft_proxy_cut(proxies[c], false);
        for (int c = 0; c < CLIENTS; c++)
            hft_await_renewals(3, leases[c], LEASES);
    }
    atomic_store(&over, true);
    for (int c = 0; c < CLIENTS; c++) {
        long done = 0;
        for (int t = 0; t < THREADS; t++) {
            (void)pthread_join(haulers[c][t].thread, NULL);
            done += haulers[c][t].done;
        }
        hft_proxy_network(proxies[c], NULL);
        for (int i = 0; i < LEASES; i++)
            HFT_CHECK(run, hf_lease_release(leases[c][i], NULL) != HF_LOST, "client %d lost its lease %d", c, i);
        HFT_CHECK(run, done >= run->times * THREADS, "client %d obtained %ld leases", c, done);
        hft_tally(run, done, -1);
        (void)hf_client_close(clients[c], NULL);
        hft_proxy_stop(proxies[c]);
    }
    hft_server_stop(server);
}

/* The scripts alone take 0.7 s, with an open that may not wait that long for an answer. */
static void scripts_take_their_time(struct hft_run *run)
{
    const struct hft_way way = {.byte_ns = 50000};
    const struct hft_network slow = {.to_server = {way, way}, .to_client = {way, way}};
    for (int round = 0; round < run->times; round++) {
        struct hft_server *server = hft_server_start(NULL);
        struct hft_proxy *proxy = hft_proxy_start(server);
        hf_client *client;
        hf_error error = {0};
        hft_proxy_network(proxy, &slow);
        int64_t before = hft_true_ns();
        hf_status status = hf_client_open(hft_proxy_url(proxy), HF_CLIENT(.connect_ms = 600), &client, &error);
        int64_t took = hft_true_ns() - before;
        HFT_CHECK(run, status == HF_OK, "open: %s", error.message);
        HFT_CHECK(run, took > 600 * HFT_NS_PER_MS, "the scripts took no time: %lld ms", (long long)(took / HFT_NS_PER_MS));
        hft_tally(run, 1, took);
        (void)hf_client_close(client, NULL);
        hft_proxy_stop(proxy);
        hft_server_stop(server);
    }
    hft_note(run, "worst_ms is the open");
}

/* ---- close ---- */

/* Requests to the server take long and replies come at once: the last posted command is still under way when close
 * has to end. */
static void close_reads_on(struct hft_run *run)
{
    enum { COUNT = 200 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start_tcp(server);
    for (int round = 0; round < run->times; round++) {
        hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.close_ms = 3000, .command_ms = 5000));
        hf_lease *leases[COUNT];
        take_all(run, client, "posted", 60000, leases, COUNT);
        struct hft_network slow = {.to_server = {{.delay_ns = (100 + hft_roll(run, 400)) * HFT_NS_PER_MS,
                                                  .drip_bytes = 1000,
                                                  .drip_ns = HFT_NS_PER_MS}}};
        hft_proxy_network(proxy, &slow);
        for (int i = 0; i < COUNT; i++)
            if (i % 2 == 0) /* the others are given back by close itself */
                HFT_CHECK(run, hf_lease_post_release(leases[i], NULL) == HF_OK, "a posted release failed");
        int64_t before = hft_true_ns();
        hf_status status = hf_client_close(client, NULL);
        int64_t took = hft_true_ns() - before;
        HFT_CHECK(run, status == HF_OK, "close: %s", hf_status_name(status));
        for (int i = 1; i < COUNT; i += 2)
            (void)hf_lease_release(leases[i], NULL);
        int64_t left = hft_lock_keys(server);
        HFT_CHECK(run, left == 0, "%lld of %d releases were dropped", (long long)left, COUNT);
        hft_tally(run, COUNT, took);
        hft_proxy_network(proxy, NULL);
        freeReplyObject(hft_server_ask(server, "FLUSHALL"));
    }
    hft_note(run, "worst_ms is the close");
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- far away ---- */

static bool note_label(const hf_holder *holder, void *arg)
{
    (void)snprintf(arg, 32, "%s", holder->label);
    return true;
}

/* A question reaches the holder through the server, and the answer returns that way: two round trips, each possibly longer
 * than a near holder's time to answer. */
static void far_holders(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *holder = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 5000));
    hf_client *asking = hft_open(hft_proxy_url(proxy), HF_CLIENT(.command_ms = 5000));
    hf_lease *lease;
    for (int64_t channels = 0; channels < 2; hft_sleep_ms(1)) {
        redisReply *reply = hft_server_ask(server, "PUBSUB CHANNELS hf:c:*");
        channels = (int64_t)reply->elements;
        freeReplyObject(reply);
    }
    hf_status status = hf_lock_acquire(holder, "far", HF_LOCK(.lease_ms = 60000, .owner_label = "far away"), &lease, NULL);
    HFT_CHECK(run, status == HF_OK, "acquire: %s", hf_status_name(status));
    for (int i = 0; i < run->times; i++) {
        struct hft_way late = {.delay_ns = (150 + hft_roll(run, 50)) * HFT_NS_PER_MS};
        struct hft_network far = {.to_server = {late, late}, .to_client = {late, late}};
        char label[32] = "";
        hft_proxy_network(proxy, &far);
        status = hf_lock_info(asking, "far", note_label, label, NULL);
        HFT_CHECK(run, status == HF_OK && strcmp(label, "far away") == 0, "the holder's label is \"%s\" (%s)", label,
                  hf_status_name(status));
        hft_proxy_network(proxy, NULL);
    }
    (void)hf_lease_release(lease, NULL);
    (void)hf_client_close(asking, NULL);
    (void)hf_client_close(holder, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

const struct hft_named hft_network_faults[] = {
    {"spoiled-replies",
     "wrong bytes in replies: never a grant that is none, and all is given back in the end", spoiled_replies,
     1, 60, 0},
    {"half-close", "servers that say their last word but still listen: no lease is lost, none is left over",
     half_close, 20, 600, HFT_MEASURES},
    {"stalls", "a road on which nobody reads: every call ends in time, every lease too", stalls, 2, 40,
     HFT_MEASURES},
    {"dial-storm", "twenty pools lose their server: they dial in moderation, and are all served soon after",
     dial_storm, 1, 20, HFT_MEASURES},
    {"narrow-line", "two busy clients at 64 kbit/s keep their leases, also when all connections are lost", narrow_line, 1,
     8, 0},
    {"narrow-open", "the scripts travel for longer than connect_ms, and the client opens", scripts_take_their_time, 1, 10,
     HFT_MEASURES},
    {"renewals-first", "over a narrow line the renewals' connection is the first to be made again", renewals_first, 1, 20,
     0},
    {"far-return", "over a long and wide road lost lanes do not wait for each other", far_return, 1, 20, HFT_MEASURES},
    {"close-reads-on", "a close over a slow road: every posted release is executed", close_reads_on, 2, 50,
     0},
    {"far-holders", "a holder that is far away is asked, and its answer waited for", far_holders, 3, 50, 0},
    {.name = NULL}};
