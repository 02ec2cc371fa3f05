/* SPDX-License-Identifier: MIT */
/* hostile.c - forged messages: an attacker that may PUBLISH and knows all keys and tokens. */
#include "tests/fault/crew.h"

#include "tests/support/fds.h"
#include "tests/support/takers.h"

#include <holdfast/redis.h>

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOCKS = 4, BURST = 50, CHANNEL = 37, ID = 32, SEEN = 24 };

#define LIES 25000 /* in a round */

#ifdef __SANITIZE_ADDRESS__ /* it keeps what was freed for a while */
#define GROWTH_KIB (400L * 1024)
#else
#define GROWTH_KIB (32L * 1024)
#endif

struct liar {
    struct hft_run *run;
    struct hft_server *server;
    pthread_t thread;
    _Atomic(bool) stop;
    unsigned rng;
    _Atomic(long) heard;
    char seen[SEEN][200]; /* tokens that wait, hold, or did */
};

static redisReply *keep(redisReply **slot, redisReply *reply)
{
    if (*slot != NULL)
        freeReplyObject(*slot);
    *slot = reply;
    return reply;
}

/* Finds the token of a waiter (with W's fields) or of a holder, or makes one that only looks like a token. */
static bool find_token(struct liar *me, redisContext *to, char *token, size_t room)
{
    int lock = rand_r(&me->rng) % LOCKS;
    redisReply *reply = NULL;
    const char *found = NULL;
    if (rand_r(&me->rng) % 2 == 0) {
        (void)keep(&reply, redisCommand(to, "GET hf:{crew:%d}", lock));
        if (reply != NULL && reply->type == REDIS_REPLY_STRING)
            found = reply->str;
    } else {
        (void)keep(&reply, redisCommand(to, "HKEYS hf:wait:{crew:%d}:hf:{crew:%d}", lock, lock));
        if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements > 0)
            found = reply->element[(size_t)rand_r(&me->rng) % reply->elements]->str;
    }
    if (found != NULL)
        (void)snprintf(token, room, "%s", found);
    if (reply != NULL)
        freeReplyObject(reply);
    return found != NULL && strncmp(token, "hf1:", 4) == 0 && strlen(token) > 4 + ID;
}

/* Picks one of the tokens found lately, of any client. Some are changed: another number, or another random part, as
 * an operator's break leaves it. */
static void pick_token(struct liar *me, char *token, size_t room)
{
    (void)snprintf(token, room, "%s", me->seen[rand_r(&me->rng) % SEEN]);
    if (*token != 0 && rand_r(&me->rng) % 3 == 0)
        token[4 + ID + 1 + (size_t)rand_r(&me->rng) % 12] = "0123456789abcdef:"[rand_r(&me->rng) % 17];
}

/* What a break of this token could have left. */
static void break_of(struct liar *me, const char *token, char other[200])
{
    (void)snprintf(other, 200, "%s", token);
    char *random = strlen(other) > CHANNEL ? strchr(other + CHANNEL, ':') : NULL;
    if (random != NULL && strlen(random) > 16)
        random[1 + rand_r(&me->rng) % 16] = "0123456789abcdef"[rand_r(&me->rng) % 16];
}

/* An echo near the present, so that it would be a plausible stamp, or the real echo of another client than the
 * token's: with one of its own echoes a G is a grant. */
static int64_t pick_echo(struct liar *me, redisContext *to, const char *token)
{
    struct timespec now;
    char waiter[200];
    long long sent = 0;
    int lock = rand_r(&me->rng) % LOCKS;
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    int64_t echo = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    if (rand_r(&me->rng) % 3 == 0)
        return (int64_t)rand_r(&me->rng) * rand_r(&me->rng);
    if (rand_r(&me->rng) % 2 == 0)
        return echo - rand_r(&me->rng) % 1000000000;
    pick_token(me, waiter, sizeof waiter);
    if (strncmp(waiter, token, 4 + ID) == 0)
        return echo;
    redisReply *reply = redisCommand(to, "HGET hf:wait:{crew:%d}:hf:{crew:%d} %s", lock, lock, waiter);
    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        (void)sscanf(reply->str, "%*s %lld", &sent);
    if (reply != NULL)
        freeReplyObject(reply);
    return sent != 0 ? sent : echo;
}

/* The next one, or one that is beyond all. */
static int64_t pick_fence(struct liar *me)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (rand_r(&me->rng) % 3 == 0)
        return INT64_C(9000000000000000000) + rand_r(&me->rng);
    return ((int64_t)now.tv_sec * 1000000 + 5000000 + rand_r(&me->rng) % 1000000) * 2048;
}

static void lie(struct liar *me, redisContext *to)
{
    static const char letters[] = "GGGRRFBBBIAZ";
    char channel[CHANNEL + 1], text[700], token[200], other[200], key[32];
    char letter = letters[(size_t)rand_r(&me->rng) % (sizeof letters - 1)];
    pick_token(me, token, sizeof token);
    pick_token(me, other, sizeof other);
    if (rand_r(&me->rng) % 2 == 0)
        break_of(me, token, other);
    (void)snprintf(key, sizeof key, "hf:{crew:%d}", rand_r(&me->rng) % LOCKS);
    (void)snprintf(channel, sizeof channel, "hf:c:%.32s", (rand_r(&me->rng) % 8 == 0 ? other : token) + 4);
    if (letter == 'G')
        (void)snprintf(text, sizeof text, "G %s %" PRId64 " %" PRId64 " %s", token, pick_echo(me, to, token), pick_fence(me),
                       key);
    else if (letter == 'B')
        (void)snprintf(text, sizeof text, "B %s %s", token, rand_r(&me->rng) % 4 == 0 ? "-" : other);
    else if (letter == 'R')
        (void)snprintf(text, sizeof text, "R %s %s", token, key);
    else
        (void)snprintf(text, sizeof text, "%c %s%s", letter, token,
                       rand_r(&me->rng) % 4 == 0 ? " 99999999999999999999999999" : " 1 2 3");
    redisReply *reply = redisCommand(to, "PUBLISH %s %s", channel, text);
    me->heard += reply != NULL && reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
    if (reply != NULL)
        freeReplyObject(reply);
}

static void *lie_all_the_time(void *arg)
{
    struct liar *me = arg;
    struct timeval limit = {20, 0};
    redisContext *to = redisConnectUnixWithTimeout(hft_server_socket(me->server), limit);
    char token[200];
    for (int found = 0; !atomic_load(&me->stop);) {
        if (!find_token(me, to, token, sizeof token)) {
            hft_sleep_ms(1);
            continue;
        }
        (void)snprintf(me->seen[found++ % SEEN], sizeof me->seen[0], "%s", token);
        for (int i = 0; i < BURST && found > SEEN; i++)
            lie(me, to);
    }
    redisFree(to);
    return NULL;
}

static void forged_messages(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    for (int round = 0; round < run->times; round++) {
        struct hft_crew_plan plan = {.url = hft_server_url(server),
                                     .clients = 3,
                                     .threads = 6,
                                     .locks = LOCKS,
                                     .lease_ms = 1000,
                                     .wait_ms = 5000,
                                     .command_ms = 2000,
                                     .stay_us = 3000};
        struct liar liar = {.run = run, .server = server, .rng = run->seed + (unsigned)round};
        struct hft_crew *crew = hft_crew_start(run, &plan);
        HFT_UNTIL_TRUE(hft_crew_acquired(crew) > 50);
        long kib = hft_resident_kib();
        int64_t commands = hft_server_calls(server, "evalsha");
        long before = hft_crew_acquired(crew);
        (void)pthread_create(&liar.thread, NULL, lie_all_the_time, &liar);
        HFT_UNTIL_TRUE(atomic_load(&liar.heard) >= LIES);
        atomic_store(&liar.stop, true);
        (void)pthread_join(liar.thread, NULL);
        long heard = atomic_load(&liar.heard);
        commands = hft_server_calls(server, "evalsha") - commands;
        long acquired = hft_crew_acquired(crew) - before;
        kib = hft_resident_kib() - kib;
        run->note[0] = 0;
        struct hft_crew_result result = hft_crew_end(crew);
        HFT_CHECK(run, result.lost == 0 && result.timeouts == 0 && result.unavailable == 0,
                  "lies cost %ld leases, %ld timeouts, %ld refusals", result.lost, result.timeouts,
                  result.unavailable);
        HFT_CHECK(run, acquired > 0, "nobody was served while there were lies");
        /* A lease costs at most an acquire, a release and some re-checks; a forged message at most one command. */
        HFT_CHECK(run, commands <= heard + 8 * acquired + 500,
                  "%lld scripts for %ld lies and %ld leases", (long long)commands, heard, acquired);
        HFT_CHECK(run, kib < GROWTH_KIB, "%ld kB more for %ld lies", kib, heard);
        hft_note(run, "%ld lies heard, %lld scripts run, %ld kB more", heard, (long long)commands, kib);
    }
    int64_t left = hft_lock_keys_after(server, 3000);
    HFT_CHECK(run, left == 0, "%lld keys are left", (long long)left);
    hft_server_stop(server);
}

/* ---- a thousand words a second ---- */

#define FLOOD_MS   1000
#define WORDS_ONCE 16 /* in one send */

static uint64_t sent_by(const hf_client *client)
{
    hf_stats stats;
    hf_client_stats(client, &stats);
    return stats.remote_commands;
}

/* Who stands in the queue, as whoever can read it knows it. */
static void read_waiter(redisContext *to, char *token, size_t room)
{
    redisReply *reply = redisCommand(to, "ZRANGE hf:queue:{flooded}:hf:{flooded} 0 0");
    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1)
        (void)snprintf(token, room, "%s", reply->element[0]->str);
    if (reply != NULL)
        freeReplyObject(reply);
}

struct flood {
    char letter;
    enum { THE_WAITERS, OF_ITS_GRANT, NOBODYS } token; /* the waiter's; with another random part; one of another grant */
    bool foreign, refused;
    /* Commands of one turn: a given-up token and an unknown one are each released, and once more when in doubt. */
    int  for_each;
    const char *key, *what;
};

/* Publishes it about that token for a second. Returns how often it was received. */
static long flood(struct hft_server *server, const struct flood *it)
{
    char letter = it->letter;
    struct timeval limit = {20, 0};
    redisContext *to = redisConnectUnixWithTimeout(hft_server_socket(server), limit);
    char token[200] = "", channel[64], text[300];
    long heard = 0;
    for (int64_t until = hft_true_ns() + FLOOD_MS * HFT_NS_PER_MS; hft_true_ns() < until;) {
        read_waiter(to, token, sizeof token);
        (void)snprintf(channel, sizeof channel, "hf:c:%.32s", token + 4);
        char *random = strchr(token + 4 + ID + 1, ':'), *other = it->token == NOBODYS ? token + 4 + ID : random;
        if (random != NULL && it->token != THE_WAITERS)
            other[1] = other[1] == '1' ? '2' : '1';
        (void)snprintf(text, sizeof text, letter == 'G' ? "%c %s 12345 3700000000000000000 %s" : "%c %s %s", letter, token,
                       it->key);
        if (letter == 'K') {
            (void)strcpy(channel, "__keyspace@0__:hf:{flooded}");
            (void)strcpy(text, "del");
        }
        for (int i = 0; i < WORDS_ONCE; i++)
            (void)redisAppendCommand(to, "PUBLISH %s %s", channel, text);
        for (int i = 0; i < WORDS_ONCE; i++) {
            void *reply = NULL;
            if (redisGetReply(to, &reply) == REDIS_OK && reply != NULL)
                heard += (long)((redisReply *)reply)->integer;
            if (reply != NULL)
                freeReplyObject(reply);
        }
    }
    redisFree(to);
    return heard;
}

/* The last messages of a flood may be on their way for long on a busy machine, so the rate is counted over the time
 * that it really lasted, and a turn more at each end and one that was due before. */
static void check_paced(struct hft_run *run, const char *what, long commands, int for_each, long heard, int64_t lasted_ms)
{
    HFT_CHECK(run, heard > 1000, "only %ld words were heard: %s", heard, what);
    HFT_CHECK(run, commands <= for_each * (lasted_ms / 10 + 3) + 30, "%ld commands for %ld words in %lld ms: %s", commands, heard,
              (long long)lasted_ms, what);
    hft_note(run, "%s: %ld for %ld", what, commands, heard);
}

/* A waiter and a holder under a flood; in the end the waiter gets what the holder releases. */
static void flooded_waiters(struct hft_run *run)
{
#define HERE "hf:{flooded}"
    static const struct flood floods[] = {
        {'R', THE_WAITERS, false, false, 1, HERE, "R"},      {'G', THE_WAITERS, false, false, 1, HERE, "G"},
        {'F', THE_WAITERS, false, false, 1, HERE, "F"},      {'B', THE_WAITERS, false, false, 3, HERE, "B"},
        {'R', OF_ITS_GRANT, false, false, 6, HERE, "doubt"}, {'K', THE_WAITERS, true, false, 1, HERE, "key events"},
        {'R', NOBODYS, false, false, 1, HERE, "nobody's"},   {'R', NOBODYS, false, true, 1, HERE, "refused"},
        {'R', NOBODYS, false, false, 1, "hf:fetch:{idle}", "a fetch's"}};
    for (int round = 0; round < run->times; round++) {
        for (size_t i = 0; i < sizeof floods / sizeof floods[0]; i++) {
            struct hft_server *server = hft_server_start(NULL);
            hf_client *owner = hft_open(hft_server_url(server), NULL), *client = hft_open(hft_server_url(server), NULL);
            struct hft_taker waiter;
            hf_lease *lease = NULL;
            if (floods[i].foreign)
                freeReplyObject(hft_server_ask(server, "SET hf:{flooded} theirs PX 60000"));
            else
                HFT_CHECK(run, hf_lock_acquire(owner, "flooded", NULL, &lease, NULL) == HF_OK, "no lease");
            hft_take(&waiter, client, "flooded", HF_LOCK(.wait_ms = 20000));
            HFT_UNTIL_TRUE(hft_queued(server, "flooded") == 1);
            long commands = (long)sent_by(client);
            int64_t since = hft_true_ns();
            if (floods[i].refused)
                freeReplyObject(hft_server_ask(server, "CONFIG SET min-replicas-to-write 1"));
            long heard = flood(server, &floods[i]);
            freeReplyObject(hft_server_ask(server, "CONFIG SET min-replicas-to-write 0"));
            commands = (long)sent_by(client) - commands;
            check_paced(run, floods[i].what, commands, floods[i].for_each, heard, (hft_true_ns() - since) / HFT_NS_PER_MS);
            int64_t freed = hft_true_ns();
            if (floods[i].foreign)
                freeReplyObject(hft_server_ask(server, "DEL hf:{flooded}"));
            else
                HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "%s: the owner lost it", floods[i].what);
            HFT_CHECK(run, hft_taken(&waiter) == HF_OK, "%s: %s", floods[i].what, waiter.error.message);
            int64_t waited = waiter.got_ms * HFT_NS_PER_MS - freed;
            HFT_CHECK(run, hft_in_time(waited, 460 * HFT_NS_PER_MS), "%s: it came %lld ms after it was free", floods[i].what,
                      (long long)(waited / HFT_NS_PER_MS));
            hft_tally(run, heard, waited);
            if (waiter.lease != NULL)
                HFT_CHECK(run, hf_lease_release(waiter.lease, NULL) == HF_OK, "%s: the release fails", floods[i].what);
            (void)hf_client_close(client, NULL);
            (void)hf_client_close(owner, NULL);
            HFT_CHECK(run, hft_lock_keys(server) == 0, "%s: %lld keys are left", floods[i].what,
                      (long long)hft_lock_keys(server));
            hft_server_stop(server);
        }
    }
}

const struct hft_named hft_hostile_faults[] = {
    {"forged-messages", "made-up grants, revokes and fills cost a delay: nobody holds by them, nobody hangs",
     forged_messages, 1, 60, 0},
    {"flooded-waiters", "whatever is said to a waiter, and however often: it asks a hundred times a second at most",
     flooded_waiters, 1, 20, HFT_MEASURES},
    {.name = NULL}};
