/* SPDX-License-Identifier: MIT */
/* storms.c - a crew at work while the server is flushed, reconfigured, cut off, killed and started again. */
#include "tests/fault/crew.h"

#include "tests/support/takers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct hft_crew_plan usual = {.clients = 3,
                                           .threads = 6,
                                           .locks = 4,
                                           .lease_ms = 1000,
                                           .wait_ms = 3000,
                                           .command_ms = 1000,
                                           .stay_us = 2000};

static struct hft_crew *start_usual(struct hft_run *run, const char *url, int64_t command_ms,
                                    bool fences_only)
{
    struct hft_crew_plan plan = usual;
    plan.url = url;
    plan.command_ms = command_ms;
    plan.fences_only = fences_only;
    /* A process whose key was lost passes its lease on among its threads until it is notified, with fences of its
     * old block: lower than the next holder's, as they should be, but later. So each process has one thread here. */
    if (fences_only) {
        plan.clients = 12;
        plan.threads = 1;
    }
    return hft_crew_start(run, &plan);
}

/* Nothing without an end, after what was held has ended. */
static void check_leftovers(struct hft_run *run, struct hft_server *server)
{
    (void)hft_lock_keys_after(server, 3000);
    redisReply *keys = hft_server_ask(server, "KEYS *");
    for (size_t i = 0; i < keys->elements; i++) {
        const char *key = keys->element[i]->str;
        bool ends = hft_server_ask_integer(server, "PTTL %s", key) != -1;
        HFT_CHECK(run, ends || strcmp(key, "hf:fence") == 0, "%s is left without an end", key);
    }
    freeReplyObject(keys);
}

static void script_flush(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 1000, false);
    for (int i = 0; i < run->times; i++) {
        hft_server_say(server, i % 2 == 0 ? "SCRIPT FLUSH" : "SCRIPT FLUSH ASYNC");
        hft_sleep_ms(10);
    }
    struct hft_crew_result result = hft_crew_end(crew);
    HFT_CHECK(run, result.unavailable == 0 && result.unknown == 0 && result.lost == 0,
              "a flush of scripts was noticed");
    check_leftovers(run, server);
    hft_note(run, "%d flushes", run->times);
    hft_server_stop(server);
}

static void client_kill(struct hft_run *run)
{
    static const char *const kills[] = {"CLIENT KILL TYPE normal SKIPME yes", "CLIENT KILL TYPE pubsub"};
    struct hft_server *server = hft_server_start(NULL);
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 1000, false);
    for (int i = 0; i < run->times; i++) {
        int64_t killed = hft_server_ask_integer(server, kills[hft_roll(run, 3) == 0]);
        (void)killed;
        hft_sleep_ms(5 + hft_roll(run, 60));
    }
    struct hft_crew_result result = hft_crew_end(crew);
    HFT_CHECK(run, result.lost == 0, "%ld leases were lost", result.lost);
    check_leftovers(run, server);
    hft_note(run, "%d kills", run->times);
    hft_server_stop(server);
}

/* Kills one of the server's present connections, but not the one that asks. */
static void kill_one(struct hft_run *run, struct hft_server *server)
{
    enum { MOST = 256 };
    long long ids[MOST], self = hft_server_ask_integer(server, "CLIENT ID");
    int count = 0;
    redisReply *clients = hft_server_ask(server, "CLIENT LIST");
    for (const char *line = clients->str; *line != 0 && count < MOST; line = strchr(line, '\n') + 1) {
        ids[count] = strtoll(line + 3, NULL, 10);
        count += ids[count] != self;
    }
    freeReplyObject(clients);
    if (count > 0)
        freeReplyObject(hft_server_ask(server, "CLIENT KILL ID %lld", ids[hft_roll(run, count)]));
}

/* The sum of the work counts: compared with the same crew in the same time when nothing is killed. */
static void kill_rate(struct hft_run *run)
{
    enum { EVERY_MS = 5, LEAST = 30 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 1000, false);
    HFT_UNTIL_TRUE(hft_crew_acquired(crew) >= 100); /* all are at work */
    long before = hft_crew_acquired(crew);
    hft_sleep_ms(run->times * 1000L);
    long calm = hft_crew_acquired(crew) - before, kills = 0;
    before += calm;
    int64_t until = hft_true_ns() + run->times * 1000 * HFT_NS_PER_MS;
    for (int64_t next = hft_true_ns(); next < until; next += EVERY_MS * HFT_NS_PER_MS, kills++) {
        hft_sleep_until(next);
        kill_one(run, server);
    }
    long stormy = hft_crew_acquired(crew) - before;
    struct hft_crew_result result = hft_crew_end(crew);
    HFT_CHECK(run, result.lost == 0, "%ld leases were lost", result.lost);
    HFT_CHECK(run, stormy * 100 >= calm * LEAST, "%ld acquired while connections were killed, %ld while not", stormy,
              calm);
    check_leftovers(run, server);
    hft_note(run, "%ld kills, %ld of %ld leases (%ld %%)", kills, stormy, calm, calm > 0 ? stormy * 100 / calm : 0);
    hft_server_stop(server);
}

static void config_changes(struct hft_run *run)
{
    static const char *const changes[][2] = {{"notify-keyspace-events", ""},
                                             {"notify-keyspace-events", "KEA"},
                                             {"client-output-buffer-limit", "pubsub 1 1 1"},
                                             {"client-output-buffer-limit", "pubsub 32mb 8mb 60"},
                                             {"timeout", "1"},
                                             {"timeout", "0"},
                                             {"maxmemory-policy", "allkeys-lru"},
                                             {"maxmemory-policy", "noeviction"},
                                             {"hz", "1"},
                                             {"hz", "100"},
                                             {"lua-time-limit", "1"},
                                             {"lua-time-limit", "5000"},
                                             {"maxclients", "200"},
                                             {"maxclients", "4000"},
                                             {"active-expire-effort", "1"},
                                             {"tcp-keepalive", "1"},
                                             {"proto-max-bulk-len", "1mb"},
                                             {"slowlog-log-slower-than", "0"},
                                             {"appendonly", "yes"},
                                             {"appendonly", "no"}};
    struct hft_server *server = hft_server_start(NULL);
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 1000, false);
    for (int i = 0; i < run->times; i++) {
        const char *const *change = changes[hft_roll(run, (int)(sizeof changes / sizeof changes[0]))];
        redisReply *reply = hft_server_ask(server, "CONFIG SET %s %s", change[0], change[1]);
        HFT_CHECK(run, reply->type == REDIS_REPLY_STATUS, "CONFIG SET %s: %s", change[0], reply->str);
        freeReplyObject(reply);
        hft_sleep_ms(hft_roll(run, 30));
    }
    struct hft_crew_result result = hft_crew_end(crew);
    HFT_CHECK(run, result.lost == 0, "%ld leases were lost", result.lost);
    check_leftovers(run, server);
    hft_note(run, "%d changes", run->times);
    hft_server_stop(server);
}

static void freezes(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 100, false);
    for (int i = 0; i < run->times; i++) {
        hft_sleep_ms(hft_roll(run, 100));
        if (hft_roll(run, 3) == 0) {
            hft_server_say(server, "CLIENT PAUSE %d WRITE", 50 + hft_roll(run, 400));
            hft_sleep_ms(hft_roll(run, 500));
        } else {
            hft_server_freeze(server);
            hft_sleep_ms(hft_roll(run, 6) == 0 ? 1500 : hft_roll(run, 300));
            hft_server_thaw(server);
        }
    }
    (void)hft_crew_end(crew);
    check_leftovers(run, server);
    hft_note(run, "%d freezes and pauses", run->times);
    hft_server_stop(server);
}

/* Every write is on the disk before it is answered: no promise is weaker across a kill. */
static void aof_kills(struct hft_run *run)
{
    struct hft_server *server = hft_server_start("appendonly yes\nappendfsync always\n");
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 300, false);
    for (int i = 0; i < run->times; i++) {
        hft_sleep_ms(100 + hft_roll(run, 400));
        hft_server_kill(server);
        hft_sleep_ms(hft_roll(run, 100));
        hft_server_restart(server);
    }
    (void)hft_crew_end(crew);
    hft_note(run, "%d kills", run->times);
    hft_server_stop(server);
}

/* Nothing survives but the clock. */
static void kills(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 300, true);
    int64_t slowest = 0;
    for (int i = 0; i < run->times; i++) {
        hft_sleep_ms(50 + hft_roll(run, 300));
        hft_server_kill(server);
        hft_sleep_ms(hft_roll(run, 200));
        hft_server_restart(server);
        int64_t back = hft_true_ns();
        long before = hft_crew_acquired(crew);
        while (hft_crew_acquired(crew) == before && hft_true_ns() - back < 5000 * HFT_NS_PER_MS)
            hft_sleep_ms(1);
        int64_t took = hft_true_ns() - back;
        slowest = took > slowest ? took : slowest;
    }
    HFT_CHECK(run, slowest < 2500 * HFT_NS_PER_MS, "back to work after %lld ms",
              (long long)slowest / HFT_NS_PER_MS);
    (void)hft_crew_end(crew);
    hft_note(run, "%d kills, back to work in at most %.0f ms", run->times, (double)slowest / 1e6);
    hft_server_stop(server);
}

/* The fence counter and the lock keys are evicted while leases are held. */
static void evictions(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_crew *crew = start_usual(run, hft_server_url(server), 1000, true);
    for (int i = 0; i < run->times; i++) {
        int die = hft_roll(run, 8);
        if (die == 0)
            hft_server_say(server, "FLUSHALL");
        else if (die < 4)
            freeReplyObject(hft_server_ask(server, "DEL hf:fence"));
        else
            freeReplyObject(hft_server_ask(server, "DEL hf:{crew:%d}", hft_roll(run, usual.locks)));
        hft_sleep_ms(hft_roll(run, 30));
    }
    (void)hft_crew_end(crew);
    hft_note(run, "%d keys or all of them gone", run->times);
    hft_server_stop(server);
}

static uint64_t sent_by(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.remote_commands;
}

/* After a lost subscription every name may have missed a message. The names are re-checked in batches, not one by
 * one: ten thousand single commands would keep the server busy until the connections time out again. */
static void return_of_many(struct hft_run *run)
{
    enum { NAMES = 320, A_SCRIPT = 32 };
    static struct hft_taker takers[NAMES];
    static hf_lease *leases[NAMES];
    static char names[NAMES][16];
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *owner = hft_open(hft_server_url(server), NULL), *client = hft_open(hft_proxy_url(proxy), NULL);
    hf_cancel *cancel;
    long worst = 0;
    HFT_CHECK(run, hf_cancel_open(client, &cancel, NULL) == HF_OK, "no cancel");
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(names[i], sizeof names[i], "many:%d", i);
        HFT_CHECK(run, hf_lock_acquire(owner, names[i], NULL, &leases[i], NULL) == HF_OK, "no lease");
        hft_take(&takers[i], client, names[i], HF_LOCK(.wait_ms = HF_FOREVER, .cancel = cancel));
    }
    for (int i = 0; i < NAMES; i++)
        HFT_UNTIL_TRUE(hft_queued(server, names[i]) == 1);
    uint64_t asked = sent_by(client);
    HFT_UNTIL_TRUE(sent_by(client) >= asked + NAMES / A_SCRIPT); /* re-checks: they are all known to wait */
    for (int round = 0; round < run->times; round++) {
        uint64_t before = sent_by(client);
        hft_proxy_cut(proxy, round % 2 == 1);
        HFT_UNTIL_TRUE(sent_by(client) >= before + NAMES / A_SCRIPT); /* they ask, and from then on */
        hft_sleep_ms(400);                                            /* so long it is counted */
        long sent = (long)(sent_by(client) - before);
        worst = sent > worst ? sent : worst;
        HFT_CHECK(run, sent < NAMES / 2, "%ld commands for %d names after their connections came back", sent, NAMES);
    }
    hft_tally(run, run->times, -1);
    hft_note(run, "%d times %d names, %ld commands at most", run->times, NAMES, worst);
    hf_cancel_fire(cancel);
    for (int i = 0; i < NAMES; i++) {
        HFT_CHECK(run, hft_taken(&takers[i]) == HF_CANCELED, "%s: %s", names[i], hf_status_name(takers[i].status));
        HFT_CHECK(run, hf_lease_release(leases[i], NULL) == HF_OK, "%s was lost", names[i]);
    }
    hf_cancel_close(cancel);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(owner, NULL);
    check_leftovers(run, server);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* The network delays, drips, holds back and cuts, at random. */
static void bad_network(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start_tcp(server);
    struct hft_crew *crew = start_usual(run, hft_proxy_url(proxy), 150, false);
    for (int i = 0; i < run->times; i++) {
        struct hft_network network = {.accept_nobody = hft_roll(run, 10) == 0};
        for (int class = 0; class < 2; class ++) {
            struct hft_way *ways[] = {&network.to_server[class], &network.to_client[class]};
            for (int w = 0; w < 2; w++) {
                int die = hft_roll(run, 8);
                ways[w]->delay_ns = die == 0 ? hft_roll(run, 200) * HFT_NS_PER_MS : 0;
                ways[w]->jitter_ns = die == 1 ? 40 * HFT_NS_PER_MS : 0;
                ways[w]->drip_bytes = die == 2 ? 1 + hft_roll(run, 20) : 0;
                ways[w]->drip_ns = HFT_NS_PER_MS;
                ways[w]->hole = die == 3;
                ways[w]->stall = die == 4;
                ways[w]->cut_after = die == 5 ? 1 + hft_roll(run, 3000) : 0;
                ways[w]->cut_by_reset = hft_roll(run, 2) == 0;
            }
        }
        hft_proxy_network(proxy, &network);
        hft_sleep_ms(50 + hft_roll(run, 250));
        hft_proxy_network(proxy, NULL);
        int die = hft_roll(run, 4);
        if (die < 2)
            hft_proxy_cut(proxy, die == 0);
        hft_sleep_ms(hft_roll(run, 100));
    }
    (void)hft_crew_end(crew);
    hft_proxy_stop(proxy);
    check_leftovers(run, server);
    hft_note(run, "%d spells", run->times);
    hft_server_stop(server);
}

const struct hft_named hft_storm_faults[] = {
    {"script-flush", "scripts that are flushed every 10 ms are no caller's business", script_flush, 100, 3000,
     0},
    {"client-kill", "connections that are killed all the time lose no lease", client_kill, 40, 1000, 0},
    {"kill-rate", "with a connection killed every 5 ms, 30 % of the work is done all the same", kill_rate, 3, 60, 0},
    {"config-changes", "CONFIG SET of what we rely on least loses no lease", config_changes, 100, 3000, 0},
    {"freezes", "a server that freezes or pauses never lets two in", freezes, 5, 300, 0},
    {"aof-kills", "a server that loses nothing can be killed at any moment: never two in", aof_kills, 4, 100,
     0},
    {"kills", "a server that forgets all is served by fences, and everybody works again soon", kills, 5, 200,
     0},
    {"evictions", "keys and counter lost under a holder: fences rise all the same", evictions, 120, 3000, 0},
    {"return-of-many", "when connections come back all names ask together", return_of_many, 3, 100, 0},
    {"bad-network", "delay, drip, silence and cuts in any mixture never let two in", bad_network, 6, 400, 0},
    {.name = NULL}};
