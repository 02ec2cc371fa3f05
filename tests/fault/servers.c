/* SPDX-License-Identifier: MIT */
/* servers.c - faults that a server reports itself: no memory, no disk, a replica, loading, a busy script, no more
 * clients. */
#include "tests/fault/fault.h"

#include "tests/support/takers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HELD 8

static void take(struct hft_run *run, hf_client *client, hf_lease **leases, int64_t lease_ms)
{
    for (int i = 0; i < HELD; i++) {
        char name[48];
        hf_error error;
        (void)snprintf(name, sizeof name, "held:%d", i);
        hf_status status =
            hf_lock_acquire(client, name, HF_LOCK(.lease_ms = lease_ms, .wait_ms = 5000), &leases[i], &error);
        HFT_CHECK(run, status == HF_OK, "acquire %s: %s: %s", name, hf_status_name(status), error.message);
        if (status != HF_OK)
            exit(1);
    }
}

static void check_kept(struct hft_run *run, hf_lease **leases, const char *when)
{
    for (int i = 0; i < HELD; i++)
        HFT_CHECK(run, hf_lease_is_valid(leases[i]), "held:%d was lost %s", i, when);
}

static void release(struct hft_run *run, hf_lease **leases, hf_status expected)
{
    for (int i = 0; i < HELD; i++) {
        hf_error error = {.status = HF_OK};
        hf_status status = hf_lease_release(leases[i], &error);
        HFT_CHECK(run, status == expected, "release of held:%d: %s: %s", i, hf_status_name(status),
                  error.message);
    }
}

/* A try is refused as UNAVAILABLE, in words that hold `word`. */
static void check_refused(struct hft_run *run, hf_client *client, const char *word)
{
    hf_lease *lease;
    hf_error error = {.status = HF_OK};
    hf_status status = hf_lock_acquire(client, "refused", NULL, &lease, &error);
    HFT_CHECK(run, status == HF_UNAVAILABLE, "a try was %s: %s", hf_status_name(status), error.message);
    HFT_CHECK(run, strstr(error.message, word) != NULL || strstr(error.hint, word) != NULL,
              "no word of %s: %s (%s)", word, error.message, error.hint);
    if (status == HF_OK)
        (void)hf_lease_release(lease, NULL);
}

static void check_well(struct hft_run *run, hf_client *client)
{
    hf_lease *lease;
    hf_error error = {.status = HF_OK};
    hf_status status = hf_lock_acquire(client, "well", HF_LOCK(.wait_ms = 8000), &lease, &error);
    HFT_CHECK(run, status == HF_OK, "afterwards an acquire is %s: %s", hf_status_name(status), error.message);
    if (status == HF_OK)
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "afterwards a release fails");
}

static void out_of_memory(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL),
              *other = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD];
        struct hft_taker heir;
        take(run, client, leases, 600);
        hft_take(&heir, other, "held:0", HF_LOCK(.wait_ms = 5000));
        HFT_UNTIL_TRUE(hft_queued(server, "held:0") == 1);
        hft_server_say(server, "CONFIG SET maxmemory 1");
        hft_await_renewals(2, leases, HELD); /* the first may have been under way */
        check_kept(run, leases, "without memory");
        check_refused(run, client, "maxmemory");
        release(run, leases, HF_OK);
        HFT_CHECK(run, hft_taken(&heir) == HF_OK, "no hand-off without memory: %s", heir.error.message);
        hft_server_say(server, "CONFIG SET maxmemory 0");
        if (heir.lease != NULL)
            HFT_CHECK(run, hf_lease_release(heir.lease, NULL) == HF_OK, "the heir's release failed");
        check_well(run, client);
    }
    hft_note(run, "%d leases renewed, released and handed off without memory", run->times * HELD);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(other, NULL);
    hft_server_stop(server);
}

static void eviction(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    int64_t worst = 0;
    int gone = 0;
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD];
        int64_t since[HELD] = {0};
        take(run, client, leases, 900);
        hft_server_say(server, "CONFIG SET maxmemory-policy allkeys-random");
        hft_server_say(server, "CONFIG SET maxmemory 1");
        freeReplyObject(hft_server_ask(server, "SET filler x"));
        int64_t evicted = hft_true_ns();
        hft_server_say(server, "CONFIG SET maxmemory 0");
        HFT_CHECK(run, hft_server_ask_integer(server, "DBSIZE") == 0, "nothing was evicted");
        for (int left = HELD; left > 0 && hft_true_ns() < evicted + 2000 * HFT_NS_PER_MS; hft_sleep_ms(1))
            for (int i = 0; i < HELD; i++)
                if (since[i] == 0 && !hf_lease_is_valid(leases[i])) {
                    since[i] = hft_true_ns() - evicted;
                    worst = since[i] > worst ? since[i] : worst;
                    gone += hf_lease_reason(leases[i]) == HF_REASON_GONE;
                    left--;
                }
        release(run, leases, HF_LOST);
        hft_server_say(server, "CONFIG SET maxmemory-policy noeviction");
    }
    HFT_CHECK(run, gone == run->times * HELD, "only %d were told GONE", gone);
    HFT_CHECK(run, hft_in_time(worst, 320 * HFT_NS_PER_MS), "GONE came after %lld ms of L/3 = 300",
              (long long)worst / HFT_NS_PER_MS);
    hft_note(run, "%d leases of 900 ms evicted, GONE after at most %.0f ms", gone, (double)worst / 1e6);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

/* A server that refuses all writes: nothing can be renewed, so every lease is lost, on time and with the right
 * event. */
static void refused_writes(struct hft_run *run)
{
    struct hft_server *server = hft_server_start("save 3600 1\n");
    hf_client *client = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD];
        take(run, client, leases, 500);
        hft_server_say(server, "CONFIG SET min-replicas-to-write 1");
        check_refused(run, client, "min-replicas");
        int64_t until = hft_true_ns() + 550 * HFT_NS_PER_MS;
        hft_sleep_until(until);
        for (int i = 0; i < HELD; i++)
            HFT_CHECK(run, !hf_lease_is_valid(leases[i]), "held:%d is valid without a renewal", i);
        release(run, leases, HF_LOST);
        hft_server_say(server, "CONFIG SET min-replicas-to-write 0");
        check_well(run, client);
        /* short refusals are ridden out */
        take(run, client, leases, 3000);
        uint64_t failed = hft_failed_renewals(client);
        hft_server_say(server, "CONFIG SET min-replicas-to-write 1");
        HFT_UNTIL_TRUE(hft_failed_renewals(client) >= failed + HELD || !hft_are_valid(leases, HELD));
        hft_server_say(server, "CONFIG SET min-replicas-to-write 0");
        hft_await_renewals(1, leases, HELD);
        check_kept(run, leases, "by a short refusal");
        release(run, leases, HF_OK);
    }
    hft_note(run, "%d leases lost in time, %d kept", run->times * HELD, run->times * HELD);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

static void misconf(struct hft_run *run)
{
    struct hft_server *server = hft_server_start("save 3600 1\n");
    hf_client *client = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        char path[160];
        (void)snprintf(path, sizeof path, "%s/dump.rdb", hft_server_folder(server));
        freeReplyObject(hft_server_ask(server, "SET filler x"));
        (void)unlink(path);
        (void)mkdir(path, 0700); /* no file can be renamed over it, not even by root */
        freeReplyObject(hft_server_ask(server, "BGSAVE"));
        redisReply *info;
        bool failed = false;
        for (int i = 0; i < 2000 && !failed; i++) {
            info = hft_server_ask(server, "INFO persistence");
            failed = strstr(info->str, "rdb_last_bgsave_status:err") != NULL;
            freeReplyObject(info);
            hft_sleep_ms(1);
        }
        HFT_CHECK(run, failed, "BGSAVE does not fail");
        check_refused(run, client, "disk");
        hft_server_say(server, "CONFIG SET stop-writes-on-bgsave-error no");
        check_well(run, client);
        hft_server_say(server, "CONFIG SET stop-writes-on-bgsave-error yes");
    }
    hft_note(run, "%d times", run->times);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

static void read_only(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD];
        take(run, client, leases, 2000);
        hft_server_say(server, "REPLICAOF 127.0.0.1 1");
        check_refused(run, client, round % 2 == 0 ? "" : "primary");
        hft_sleep_ms(hft_roll(run, 500));
        hft_server_say(server, "REPLICAOF NO ONE");
        check_well(run, client);
        hft_await_return(leases, HELD);
        check_kept(run, leases, "to a short demotion");
        release(run, leases, HF_OK);
    }
    hft_note(run, "%d demotions", run->times);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

struct later {
    struct hft_server *server;
    pthread_t thread;
    const char *script;
};

static void loading(struct hft_run *run)
{
    struct hft_server *server =
        hft_server_start("appendonly yes\nappendfsync always\nloading-process-events-interval-bytes 1024\n");
    hf_client *client = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD];
        freeReplyObject(hft_server_ask(server, "DEL filler"));
        for (int i = 0; i < 300; i++)
            freeReplyObject(hft_server_ask(server, "SADD filler a%d b%d c%d", i, i, i));
        take(run, client, leases, 5000);
        hft_server_say(server, "CONFIG SET key-load-delay 3000");
        hft_server_say(server, "CONFIG REWRITE");
        struct hft_taker waiter;
        hft_take(&waiter, client, "new", HF_LOCK(.wait_ms = 8000));
        HFT_CHECK(run, hft_taken(&waiter) == HF_OK, "no lease");
        (void)hf_lease_release(waiter.lease, NULL);
        hft_server_kill(server);
        hft_take(&waiter, client, "new", HF_LOCK(.wait_ms = 8000));
        int64_t began = hft_true_ns();
        hft_server_restart(server); /* returns when it has loaded */
        int64_t loaded = hft_true_ns();
        HFT_CHECK(run, hft_taken(&waiter) == HF_OK, "a server that loads was not waited for: %s",
                  waiter.error.message);
        HFT_CHECK(run, (waiter.got_ms * HFT_NS_PER_MS - loaded) < 1500 * HFT_NS_PER_MS,
                  "it came %lld ms after loading", (long long)(waiter.got_ms - loaded / HFT_NS_PER_MS));
        if (waiter.lease != NULL)
            (void)hf_lease_release(waiter.lease, NULL);
        hft_server_say(server, "CONFIG SET key-load-delay 0");
        hft_server_say(server, "CONFIG REWRITE");
        hft_await_return(leases, HELD);
        check_kept(run, leases, "while the server loaded");
        release(run, leases, HF_OK);
        hft_note(run, "loaded for %.0f ms", (double)(loaded - began) / 1e6);
    }
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

static void *run_script(void *arg)
{
    struct later *later = arg;
    struct timeval limit = {20, 0};
    redisContext *context = redisConnectUnixWithTimeout(hft_server_socket(later->server), limit);
    redisReply *reply = redisCommand(context, "EVAL %s 0", later->script);
    if (reply != NULL)
        freeReplyObject(reply);
    redisFree(context);
    return NULL;
}

static void busy_script(struct hft_run *run)
{
    struct hft_server *server = hft_server_start("lua-time-limit 50\n");
    hf_client *client = hft_open(hft_server_url(server), HF_CLIENT(.command_ms = 300));
    hf_client *brief = hft_open(hft_server_url(server), HF_CLIENT(.command_ms = 300));
    struct later later = {.server = server, .script = "while true do end"}; /* until SCRIPT KILL */
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD], *shorter;
        take(run, client, leases, 10000);
        HFT_CHECK(run, hf_lock_acquire(brief, "short", HF_LOCK(.lease_ms = 400), &shorter, NULL) == HF_OK,
                  "no lease");
        (void)pthread_create(&later.thread, NULL, run_script, &later);
        HFT_UNTIL_TRUE(hft_server_refuses(server, "BUSY"));
        int64_t busy_ms = hft_boottime_ms();
        check_refused(run, client, "");
        HFT_CHECK(run, hft_await_end(shorter) < busy_ms + 1000, "400 ms have become 1,000");
        check_kept(run, leases, "to a busy script");
        struct timeval limit = {5, 0};
        redisContext *killer = redisConnectUnixWithTimeout(hft_server_socket(server), limit);
        freeReplyObject(redisCommand(killer, "SCRIPT KILL"));
        redisFree(killer);
        (void)pthread_join(later.thread, NULL);
        HFT_CHECK(run, hf_lease_release(shorter, NULL) == HF_LOST, "a lease outlived its end");
        check_well(run, client);
        release(run, leases, HF_OK);
    }
    hft_note(run, "%d scripts", run->times);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(brief, NULL);
    hft_server_stop(server);
}

/* Down for less than 0.6 L, the server's start and ours to it among it, and everything is still there. A long lease, for a start takes
 * half a second where the machine is busy. */
static void aof_restart(struct hft_run *run)
{
    struct hft_server *server = hft_server_start("appendonly yes\nappendfsync always\n");
    hf_client *client = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD];
        take(run, client, leases, 4500);
        hft_sleep_ms(hft_roll(run, 1500));
        hft_server_kill(server);
        hft_sleep_ms(1500);
        hft_server_restart(server);
        hft_await_return(leases, HELD);
        check_kept(run, leases, "to a restart");
        release(run, leases, HF_OK);
    }
    hft_note(run, "%d restarts, %d leases kept", run->times, run->times * HELD);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

static void max_clients(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), HF_CLIENT(.connect_ms = 500));
    for (int round = 0; round < run->times; round++) {
        hf_lease *leases[HELD];
        hf_client *none;
        hf_error error = {.status = HF_OK};
        take(run, client, leases, 600);
        hft_await_renewals(1, leases, HELD); /* the connections that it dials by itself are there */
        redisReply *info = hft_server_ask(server, "INFO clients");
        const char *at = strstr(info->str, "connected_clients:");
        int now = at != NULL ? atoi(at + 18) : 10;
        freeReplyObject(info);
        hft_server_say(server, "CONFIG SET maxclients %d", now);
        hf_status status =
            hf_client_open(hft_server_url(server), HF_CLIENT(.connect_ms = 300), &none, &error);
        HFT_CHECK(run, status == HF_UNAVAILABLE, "one client too many was %s", hf_status_name(status));
        HFT_CHECK(run, strstr(error.message, "max") != NULL, "not a word of it: %s", error.message);
        if (status == HF_OK)
            (void)hf_client_close(none, NULL);
        hft_await_renewals(2, leases, HELD); /* the first may have been under way */
        check_kept(run, leases, "with no connection left for others");
        release(run, leases, HF_OK);
        hft_server_say(server, "CONFIG SET maxclients 4000");
        check_well(run, client);
    }
    hft_note(run, "%d times", run->times);
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

const struct hft_named hft_server_faults[] = {
    {"out-of-memory", "a full server renews, releases and hands off, and refuses the rest as UNAVAILABLE",
     out_of_memory, 1, 30, 0},
    {"eviction", "an evicted lock is GONE within L/3", eviction, 1, 30, HFT_MEASURES},
    {"refused-writes",
     "without its replicas a server takes no renewal: leases end in time, short spells cost none",
     refused_writes, 1, 20, 0},
    {"misconf", "a server that cannot save refuses as UNAVAILABLE, and is used again", misconf, 1, 20, 0},
    {"read-only", "a short demotion loses no lease", read_only, 1, 30, 0},
    {"loading", "a server that loads is waited for", loading, 1, 5, 0},
    {"busy-script", "a busy script keeps long leases and ends short ones in time", busy_script, 1, 10, 0},
    {"aof-restart", "leases survive a restart of 0.6 L", aof_restart, 1, 30, 0},
    {"max-clients", "with maxclients reached held leases live on, and new clients are told", max_clients, 1,
     20, 0},
    {.name = NULL}};
