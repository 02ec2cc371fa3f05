/* SPDX-License-Identifier: MIT */
/* rules.c - promises about the commands that are sent and the messages that are believed, checked at the server's
 * side. */
#include "tests/fault/fault.h"

#include "core/protocol/scripts.h"
#include "tests/support/takers.h"
#include "tests/support/script_source.h"

#include <holdfast/redis.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens ---- */

struct token {
    char text[200], client[33], random[17];
    unsigned long long grant;
};

static bool read_token(struct hft_server *server, const char *name, struct token *token)
{
    int end = 0;
    hft_held_by(server, name, token->text, sizeof token->text);
    return sscanf(token->text, "hf1:%32[0-9a-f]:%llx:%16[0-9a-f]:%n", token->client, &token->grant,
                  token->random, &end) == 3 &&
           end > 0 && strlen(token->client) == 32 && strlen(token->random) == 16;
}

static void tokens(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *clients[] = {hft_open(hft_server_url(server), NULL), hft_open(hft_server_url(server), NULL)};
    struct token *seen = calloc((size_t)run->times, sizeof *seen);
    for (int i = 0; i < run->times; i++) {
        char name[16];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "token:%d", i % 3);
        if (hf_lock_acquire(clients[i % 2], name, HF_LOCK(.wait_ms = 5000), &lease, NULL) != HF_OK) {
            hft_broken(run, "no lease");
            break;
        }
        HFT_CHECK(run, read_token(server, name, &seen[i]), "the key's value is no token: %s", seen[i].text);
        for (int j = 0; j < i; j++) {
            HFT_CHECK(run, strcmp(seen[i].random, seen[j].random) != 0,
                      "two grants share their random part: %s", seen[i].text);
            HFT_CHECK(run, (strcmp(seen[i].client, seen[j].client) == 0) == (i % 2 == j % 2),
                      "whose is it? %s and %s", seen[i].text, seen[j].text);
            HFT_CHECK(run, i % 2 != j % 2 || seen[i].grant != seen[j].grant, "two grants have one number: %s",
                      seen[i].text);
        }
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "a release failed");
    }
    hft_note(run, "%d tokens", run->times);
    (void)hf_client_close(clients[0], NULL);
    (void)hf_client_close(clients[1], NULL);
    hft_server_stop(server);
    free(seen);
}

/* ---- messages that nobody sent ---- */

static char *ask_text(struct hft_server *server, const char *command, const char *key, const char *field)
{
    redisReply *reply = field != NULL ? hft_server_ask(server, "%s %s %s", command, key, field)
                                      : hft_server_ask(server, "%s %s 0 0", command, key);
    const redisReply *one =
        reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0] : reply;
    char *text = strdup(one->str != NULL ? one->str : "");
    freeReplyObject(reply);
    return text;
}

static int64_t echo_of(struct hft_server *server, const char *token)
{
    long long echo = 0;
    char *record = ask_text(server, "HGET", "hf:wait:{lies}:hf:{lies}", token);
    (void)sscanf(record, "%*s %lld", &echo);
    free(record);
    return echo;
}

static void publish(struct hft_server *server, const char *token, const char *message)
{
    char channel[40];
    (void)snprintf(channel, sizeof channel, "hf:c:%.32s", token + 4);
    freeReplyObject(hft_server_ask(server, "PUBLISH %s %s", channel, message));
}

/* Publishes each forged message before a genuine `R`: when that one has made the waiter act, the forged one has been
 * processed. */
static void lie(struct hft_run *run, struct hft_server *server, const struct hft_taker *waiter,
                const char *token, const char *message)
{
    char honest[256];
    int64_t before = echo_of(server, token);
    publish(server, token, message);
    (void)snprintf(honest, sizeof honest, "R %s", token);
    publish(server, token, honest);
    HFT_UNTIL_TRUE(atomic_load(&waiter->done) || echo_of(server, token) != before);
    HFT_CHECK(run, !atomic_load(&waiter->done), "believed: %s", message);
}

/* Of the same waiter; frees the old one. */
static char *other_token(struct hft_server *server, const struct hft_taker *waiter, char *token)
{
    char *now = NULL;
    do {
        free(now);
        now = ask_text(server, "ZRANGE", "hf:queue:{lies}:hf:{lies}", NULL);
    } while (!atomic_load(&waiter->done) && (*now == 0 || strcmp(now, token) == 0));
    free(token);
    return now;
}

static void made_up_messages(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *a = hft_open(hft_server_url(server), NULL), *b = hft_open(hft_server_url(server), NULL);
    const long long fence = 7000000000000000000 / 2048 * 2048;
    for (int round = 0; round < run->times && atomic_load(&run->broken) == 0; round++) {
        struct hft_taker waiter;
        hf_lease *lease;
        char message[400], other[200];
        HFT_CHECK(run, hf_lock_acquire(a, "lies", HF_LOCK(.wait_ms = 5000), &lease, NULL) == HF_OK,
                  "no lease");
        hft_take(&waiter, b, "lies", HF_LOCK(.wait_ms = 15000));
        HFT_UNTIL_TRUE(hft_queued(server, "lies") == 1);
        char *token = ask_text(server, "ZRANGE", "hf:queue:{lies}:hf:{lies}", NULL);
        /* The waiter's own token with a stamp that it never sent; its stamp with a token that is not its own. */
        (void)snprintf(message, sizeof message, "G %s %lld %lld hf:{lies}", token, (long long)hft_true_ns(),
                       fence);
        lie(run, server, &waiter, token, message);
        (void)snprintf(other, sizeof other, "%s", token);
        char *digit = strchr(strchr(other + 4, ':') + 1, ':') + 1; /* the random part's first */
        *digit = *digit == '0' ? '1' : '0';
        (void)snprintf(message, sizeof message, "G %s %lld %lld hf:{lies}", other,
                       (long long)echo_of(server, token), fence);
        publish(server, token, message);
        token = other_token(server, &waiter, token); /* somebody guesses: it waits on with a fresh one */
        HFT_CHECK(run, !atomic_load(&waiter.done), "believed: %s", message);
        (void)snprintf(message, sizeof message, "G %s", token);
        lie(run, server, &waiter, token, message);
        (void)snprintf(message, sizeof message, "F %s", token);
        lie(run, server, &waiter, token, message);
        lie(run, server, &waiter, token, "G");
        HFT_CHECK(run, hf_lease_verify(lease, NULL) == HF_OK, "the holder lost it");
        int64_t before = hf_lease_fence(lease);
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "the holder's release failed");
        HFT_CHECK(run, hft_taken(&waiter) == HF_OK, "the waiter got nothing: %s", waiter.error.message);
        if (waiter.lease != NULL) {
            int64_t after = hf_lease_fence(waiter.lease);
            HFT_CHECK(run, after > before && after < fence, "fence %lld comes after %lld", (long long)after,
                      (long long)before);
            (void)hf_lease_release(waiter.lease, NULL);
        }
        free(token);
    }
    hft_note(run, "%d times 5 messages", run->times);
    (void)hf_client_close(a, NULL);
    (void)hf_client_close(b, NULL);
    hft_server_stop(server);
}

/* ---- who may grant ---- */

static hf_status try(hf_client *client, hf_error *error)
{
    hf_lease *lease;
    *error = (hf_error){.status = HF_OK};
    hf_status status = hf_lock_acquire(client, "fit", NULL, &lease, error);
    if (status == HF_OK)
        (void)hf_lease_release(lease, NULL);
    return status;
}

/* A demoted primary may be a replica that takes writes; only its role tells. */
static void demotions(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *idle = hft_open(hft_server_url(server), NULL), *busy = hft_open(hft_server_url(server), NULL);
    hf_client *fresh = NULL;
    hf_error error;
    for (int round = 0; round < run->times; round++) {
        HFT_UNTIL_TRUE(try(idle, &error) == HF_OK);
        (void)atomic_fetch_add(&hft_preload()->offset_ns, 1100 * HFT_NS_PER_MS); /* it idles for more than a second */
        HFT_UNTIL_TRUE(try(busy, &error) == HF_OK);
        hft_server_say(server, "REPLICAOF 127.0.0.1 1");
        HFT_CHECK(run, try(busy, &error) == HF_UNAVAILABLE, "a try at a replica: %s", error.message);
        hft_server_say(server, "CONFIG SET replica-read-only no");
        HFT_CHECK(run, try(busy, &error) == HF_UNAVAILABLE, "after READONLY a try at the same replica: %s",
                  error.message);
        HFT_CHECK(run, try(idle, &error) == HF_UNAVAILABLE, "a try after idling through a demotion: %s",
                  error.message);
        HFT_CHECK(run, hf_client_open(hft_server_url(server), NULL, &fresh, &error) != HF_OK && fresh == NULL,
                  "a client opens at a replica");
        (void)hf_client_close(fresh, NULL);
        hft_server_say(server, "REPLICAOF NO ONE");
        hft_server_say(server, "CONFIG SET replica-read-only yes");
    }
    HFT_UNTIL_TRUE(try(idle, &error) == HF_OK && try(busy, &error) == HF_OK);
    hft_note(run, "%d demotions", run->times);
    (void)hf_client_close(idle, NULL);
    (void)hf_client_close(busy, NULL);
    hft_server_stop(server);
}

/* ---- which way ---- */

struct ways {
    pthread_mutex_t mutex;
    uint64_t lock, user; /* connections; 0: none yet */
    int asked, mixed;    /* commands of the lock; those that came another way */
    bool shared;
};

/* The commands of one name: its native acquire and its scripts of four keys; a renewal has the lock key alone. */
static void note_way(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    struct ways *ways = arg;
    (void)judgement;
    bool user = hft_request_is(request, "PING", NULL);
    bool ours = hft_request_is(request, "SET", "hf:{way}") ||
                ((hft_request_is(request, "EVALSHA", NULL) || hft_request_is(request, "EVAL", NULL)) &&
                 request->words > 3 && request->size[2] == 1 && request->word[2][0] == '4' &&
                 request->size[3] == 8 && memcmp(request->word[3], "hf:{way}", 8) == 0);
    if (request->class != HFT_COMMANDS || (!user && !ours))
        return;
    (void)pthread_mutex_lock(&ways->mutex);
    uint64_t *way = user ? &ways->user : &ways->lock;
    ways->asked += ours;
    ways->mixed += ours && *way != 0 && *way != request->connection;
    if (*way == 0)
        *way = request->connection;
    ways->shared = ways->shared || (ways->lock != 0 && ways->lock == ways->user);
    (void)pthread_mutex_unlock(&ways->mutex);
}

static void one_way(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    struct ways ways = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    hf_client *holder = hft_open(hft_server_url(server), NULL);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.lanes = 1));
    hft_proxy_judge(proxy, note_way, &ways);
    for (int round = 0; round < run->times; round++) {
        struct hft_taker waiter;
        struct redisReply *reply;
        hf_lease *lease;
        HFT_CHECK(run, hf_lock_acquire(holder, "way", HF_LOCK(.wait_ms = 5000), &lease, NULL) == HF_OK,
                  "no lease");
        hft_take(&waiter, client, "way", HF_LOCK(.wait_ms = 15000));
        HFT_UNTIL_TRUE(hft_queued(server, "way") == 1);
        if (hf_command(client, &reply, NULL, "PING") == HF_OK)
            freeReplyObject(reply);
        (void)hf_lease_release(lease, NULL);
        HFT_CHECK(run, hft_taken(&waiter) == HF_OK, "no hand-off: %s", waiter.error.message);
        if (waiter.lease != NULL)
            (void)hf_lease_release(waiter.lease, NULL);
    }
    hft_proxy_judge(proxy, NULL, NULL);
    HFT_CHECK(run, ways.asked >= 3 * run->times && ways.user != 0, "only %d commands were seen", ways.asked);
    HFT_CHECK(run, ways.mixed == 0, "%d of %d commands of a name came another way", ways.mixed, ways.asked);
    HFT_CHECK(run, !ways.shared, "a user's command rode with a lock's");
    hft_note(run, "%d commands of one name", ways.asked);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(holder, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- who listens to keys ---- */

static size_t watched_keys(struct hft_server *server)
{
    redisReply *reply = hft_server_ask(server, "PUBSUB CHANNELS __key*");
    size_t count = reply->elements;
    freeReplyObject(reply);
    return count;
}

static void quiet_waiters(struct hft_run *run)
{
    enum { CLIENTS = 5, WATCHERS = 3 };
    struct hft_server *server = hft_server_start(NULL);
    hf_client *holder = hft_open(hft_server_url(server), NULL), *clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        struct hft_taker waiters[CLIENTS];
        bool foreign = round % 2 == 1;
        hf_lease *lease = NULL;
        if (foreign)
            hft_server_say(server, "SET hf:{quiet} another-program PX 60000");
        else
            HFT_CHECK(run, hf_lock_acquire(holder, "quiet", HF_LOCK(.wait_ms = 5000), &lease, NULL) == HF_OK,
                      "no lease");
        for (int i = 0; i < CLIENTS; i++) {
            hft_take(&waiters[i], clients[i], "quiet", HF_LOCK(.wait_ms = 15000));
            HFT_UNTIL_TRUE(hft_queued(server, "quiet") == i + 1);
        }
        int64_t asked = hft_server_calls(server, "evalsha"); /* twice each: whoever would subscribe has */
        HFT_UNTIL_TRUE(hft_server_calls(server, "evalsha") >= asked + 2 * CLIENTS);
        int64_t heard = hft_server_ask_integer(server, "PUBLISH __keyspace@0__:hf:{quiet} nothing");
        HFT_CHECK(run, foreign ? heard == WATCHERS : watched_keys(server) == 0,
                  "%lld of %d waiters listen to the key of %s holder", (long long)heard, CLIENTS,
                  foreign ? "a foreign" : "our own");
        if (foreign)
            hft_server_say(server, "DEL hf:{quiet}");
        else
            (void)hf_lease_release(lease, NULL);
        for (int i = 0; i < CLIENTS; i++) /* one after the other: each hands on to the next */
            if (hft_taken(&waiters[i]) == HF_OK)
                (void)hf_lease_release(waiters[i].lease, NULL);
            else
                hft_broken(run, "waiter %d: %s", i, waiters[i].error.message);
    }
    hft_note(run, "%d waiters behind one holder", CLIENTS);
    for (int i = 0; i < CLIENTS; i++)
        (void)hf_client_close(clients[i], NULL);
    (void)hf_client_close(holder, NULL);
    hft_server_stop(server);
}

/* A message that was published before the subscription began is lost, so a new subscriber repeats its acquire once
 * (P9). A wait that is shorter than a re-check has a second acquire only because of that. */
static void count_questions(const struct hft_request *request, struct hft_judgement *judgement, void *arg)
{
    _Atomic(int) *questions = arg;
    (void)judgement;
    if (hft_request_is(request, "EVALSHA", hfi_script_acquire->sha1))
        atomic_fetch_add(questions, 1);
}

static void watchers(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), NULL);
    _Atomic(int) questions = 0;
    hf_lease *lease;
    hft_proxy_judge(proxy, count_questions, &questions);
    hft_server_say(server, "SET hf:{watched} another-program PX 60000");
    for (int round = 0; round < run->times; round++) {
        hf_status status = hf_lock_acquire(client, "watched", HF_LOCK(.wait_ms = 300), &lease, NULL);
        HFT_CHECK(run, status == HF_TIMEOUT, "a wait behind another program: %s", hf_status_name(status));
    }
    int asked = atomic_load(&questions);
    HFT_CHECK(run, asked > run->times, "%d waits asked %d times: nobody asks after subscribing", run->times,
              asked);
    hft_note(run, "%d questions in %d waits", asked, run->times);
    hft_proxy_judge(proxy, NULL, NULL);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- scripts with a token that does not hold ---- */

#define SIDE_KEYS "hf:queue:{mine}:hf:{mine} hf:wait:{mine}:hf:{mine} hf:fence"

/* Runs a script; true: it moved the fence counter, or failed. In one transaction: a handshake under way may move the counter, too. */
static bool takes_fences(struct hft_server *server, const char *format, const char *script)
{
    hft_server_say(server, "MULTI");
    freeReplyObject(hft_server_ask(server, "INCRBY hf:fence 0"));
    freeReplyObject(hft_server_ask(server, format, script));
    freeReplyObject(hft_server_ask(server, "INCRBY hf:fence 0"));
    redisReply *replies = hft_server_ask(server, "EXEC");
    bool moved = replies->elements != 3 || replies->element[1]->type == REDIS_REPLY_ERROR ||
                 replies->element[0]->integer != replies->element[2]->integer;
    freeReplyObject(replies);
    return moved;
}

static void strangers(struct hft_run *run)
{
    static const char token[] = "hf1:00000000000000000000000000000000:1:0000000000000000:nowhere:1";
    const struct {
        const char *name, *words;
        const struct hfi_script *script;
    } tries[] = {
        {"release", "4 hf:{mine} " SIDE_KEYS, hfi_script_release},
        {"more", "4 hf:{mine} " SIDE_KEYS, hfi_script_more},
        {"downgrade", "4 hf:{mine} " SIDE_KEYS, hfi_script_downgrade},
        {"renew", "1 hf:{mine}", hfi_script_renew},
        {"fill", "6 hf:{mine} " SIDE_KEYS " page absent", hfi_script_fill},
    };
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        char format[300], before[200], after[200];
        hf_lease *lease;
        HFT_CHECK(run,
                  hf_lock_acquire(client, "mine", HF_LOCK(.lease_ms = 60000, .wait_ms = 5000), &lease,
                                  NULL) == HF_OK,
                  "no lease");
        hft_held_by(server, "mine", before, sizeof before);
        /* release: the token. more: ttl, size. downgrade: ttl. renew: ttl, queue. fill: what, ttl, value. */
        (void)snprintf(format, sizeof format, "EVAL %%s %s %s %s", tries[i].words, token,
                       i == 4 ? "value 90000 stolen" : "90000 2048");
        HFT_CHECK(run, !takes_fences(server, format, hft_script_source(tries[i].script)), "%s by a stranger takes fences",
                  tries[i].name);
        hft_held_by(server, "mine", after, sizeof after);
        HFT_CHECK(run, strcmp(before, after) == 0, "%s by a stranger: the key held %s, and now %s",
                  tries[i].name, before, after);
        int64_t ttl = hft_server_ask_integer(server, "PTTL hf:{mine}"); /* the holder may have renewed: 60 s and guard */
        HFT_CHECK(run, ttl < 75000, "%s by a stranger lengthens the lease to %lld ms", tries[i].name, (long long)ttl);
        HFT_CHECK(run, hft_server_ask_integer(server, "EXISTS page") == 0, "%s by a stranger stores",
                  tries[i].name);
        HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "the holder's release failed");
        freeReplyObject(hft_server_ask(server, format, hft_script_source(tries[i].script)));
        HFT_CHECK(run, hft_lock_exists(server, "mine") == 0, "%s by a stranger makes a key", tries[i].name);
    }
    hft_note(run, "5 scripts");
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

/* ---- dates ---- */

/* V is never further away than the lease less the time that its answer took (P1). */
static void slow_replies(struct hft_run *run)
{
    enum { LEASE_MS = 900, SLOW_MS = 200 };
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), HF_CLIENT(.lease_ms = LEASE_MS));
    struct hft_way slow = {.delay_ns = SLOW_MS * HFT_NS_PER_MS};
    struct hft_network network = {.to_client = {slow, slow}};
    int64_t least = LEASE_MS, most = 0;
    hft_proxy_network(proxy, &network);
    for (int round = 0; round < run->times; round++) {
        hf_lease *lease;
        hf_error error;
        if (hf_lock_acquire(client, "dated", HF_LOCK(.wait_ms = 15000), &lease, &error) != HF_OK) {
            hft_broken(run, "no lease: %s", error.message);
            break;
        }
        for (int64_t until = hft_true_ns() + 3 * LEASE_MS * HFT_NS_PER_MS; hft_true_ns() < until;
             hft_sleep_ms(1)) {
            int64_t left = hf_lease_remaining_ms(lease);
            most = left > most ? left : most;
            least = left < least ? left : least;
        }
        (void)hf_lease_release(lease, NULL);
    }
    HFT_CHECK(run, most <= LEASE_MS - SLOW_MS, "%lld ms of %d are left after an answer that took %d",
              (long long)most, LEASE_MS, SLOW_MS);
    hft_note(run, "%lld to %lld ms left of %d, answers take %d", (long long)least, (long long)most, LEASE_MS,
             SLOW_MS);
    (void)hf_client_close(client, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

static void short_renewals(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL);
    hf_lease *lease;
    char token[200], format[300];
    HFT_CHECK(run, hf_lock_acquire(client, "long", HF_LOCK(.lease_ms = 60000), &lease, NULL) == HF_OK,
              "no lease");
    hft_held_by(server, "long", token, sizeof token);
    for (int ttl = 1; ttl <= 32000; ttl *= 2) {
        int64_t before = hft_server_ask_integer(server, "PTTL hf:{long}");
        (void)snprintf(format, sizeof format, "EVAL %%s 1 hf:{long} %s %d hf:queue:{long}:hf:{long}", token, ttl);
        freeReplyObject(hft_server_ask(server, format, hft_script_source(hfi_script_renew)));
        HFT_CHECK(run, hft_server_ask_integer(server, "PTTL hf:{long}") > before - 10000,
                  "a renewal for %d ms shortens a lease of 60 s", ttl);
    }
    HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "the release failed");
    (void)hf_client_close(client, NULL);
    hft_server_stop(server);
}

/* ---- V and its release ---- */

static void answer_releases_late(const struct hft_request *request, struct hft_judgement *judgement,
                                 void *arg)
{
    (void)arg;
    if (!hft_request_is(request, "EVALSHA", hfi_script_release->sha1))
        return;
    judgement->sentence = HFT_LATE_REPLY;
    judgement->delay_ns = 500 * HFT_NS_PER_MS;
}

struct giver {
    pthread_t thread;
    hf_lease *lease;
    _Atomic(bool) over;
};

static void *give(void *arg)
{
    struct giver *giver = arg;
    (void)hf_lease_release(giver->lease, NULL);
    atomic_store(&giver->over, true);
    return NULL;
}

/* While a thread waits for the answer to its release, another process has the lock: V must be over (P3). */
static void withdrawals(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    struct hft_proxy *proxy = hft_proxy_start(server);
    hf_client *client = hft_open(hft_proxy_url(proxy), NULL), *other = hft_open(hft_server_url(server), NULL);
    int looked = 0;
    hft_proxy_judge(proxy, answer_releases_late, NULL);
    for (int round = 0; round < run->times; round++) {
        struct giver giver = {.lease = NULL};
        hf_lease *next = NULL;
        hf_status status = hf_lock_acquire(client, "given", HF_LOCK(.wait_ms = 5000), &giver.lease, NULL);
        if (status != HF_OK) {
            hft_broken(run, "no lease: %s", hf_status_name(status));
            break;
        }
        (void)pthread_create(&giver.thread, NULL, give, &giver);
        status = hf_lock_acquire(other, "given", HF_LOCK(.wait_ms = 5000), &next, NULL);
        HFT_CHECK(run, status == HF_OK, "no hand-off: %s", hf_status_name(status));
        bool both = hf_lease_is_valid(giver.lease) && hf_lease_is_valid(next);
        bool alive = !atomic_load(&giver.over); /* else its handle may be gone, and what it said is nothing */
        looked += alive;
        HFT_CHECK(run, !alive || !both, "two valid leases while one is being released");
        (void)hf_lease_release(next, NULL);
        (void)pthread_join(giver.thread, NULL);
    }
    HFT_CHECK(run, looked > 0, "no release took long enough to look at its lease");
    hft_note(run, "%d releases under way", looked);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(other, NULL);
    hft_proxy_stop(proxy);
    hft_server_stop(server);
}

/* ---- what nobody remembers ---- */

/* An acquire that a server executes long after the client gave it up leaves such a key (P5). */
static void healing(struct hft_run *run)
{
    struct hft_server *server = hft_server_start(NULL);
    hf_client *client = hft_open(hft_server_url(server), NULL),
              *other = hft_open(hft_server_url(server), NULL);
    hf_lease *lease = NULL;
    char token[200], forgotten[300];
    HFT_CHECK(run, hf_lock_acquire(client, "known", HF_LOCK(.wait_ms = 5000), &lease, NULL) == HF_OK,
              "no lease");
    hft_held_by(server, "known", token, sizeof token);
    for (int round = 0; round < run->times; round++) {
        hf_lease *next = NULL;
        (void)snprintf(forgotten, sizeof forgotten, "hf1:%.32s:fff%d:0123456789abcdef%s", token + 4,
                       round % 10, strchr(strchr(strchr(token + 4, ':') + 1, ':') + 1, ':'));
        hft_server_say(server, "SET hf:{forgotten} %s PX 60000", forgotten);
        hf_status status = hf_lock_acquire(other, "forgotten", HF_LOCK(.wait_ms = 5000), &next, NULL);
        HFT_CHECK(run, status == HF_OK, "the key of a forgotten token is not given back: %s",
                  hf_status_name(status));
        (void)hf_lease_release(next, NULL);
    }
    HFT_CHECK(run, hf_lease_release(lease, NULL) == HF_OK, "what is remembered was lost");
    hft_server_say(server, "SET hf:{known} %s PX 60000", token); /* as a failover brings it back */
    HFT_CHECK(run, hf_lock_acquire(other, "known", HF_LOCK(.wait_ms = 5000), &lease, NULL) == HF_OK,
              "what was released and came back is not given back again");
    (void)hf_lease_release(lease, NULL);
    (void)hf_client_close(client, NULL);
    (void)hf_client_close(other, NULL);
    hft_server_stop(server);
}

/* ---- closing ---- */

static void closes(struct hft_run *run)
{
    enum { LEASES = 400 };
    struct hft_server *server = hft_server_start_tcp(NULL);
    hf_client *heirs = hft_open(hft_server_url(server), NULL);
    for (int round = 0; round < run->times; round++) {
        hf_client *client = hft_open(hft_server_url(server), NULL);
        hf_lease *leases[LEASES];
        struct hft_taker heir;
        hf_error error = {.status = HF_OK};
        int held = 0;
        for (; held < LEASES; held++) {
            char name[24];
            (void)snprintf(name, sizeof name, "closes:%d", held);
            if (hf_lock_acquire(client, name, HF_LOCK(.lease_ms = 60000, .wait_ms = 5000), &leases[held],
                                NULL) != HF_OK)
                break;
        }
        HFT_CHECK(run, held == LEASES, "only %d leases", held);
        hft_take(&heir, heirs, "closes:0", HF_LOCK(.wait_ms = 15000));
        HFT_UNTIL_TRUE(hft_queued(server, "closes:0") == 1);
        for (int i = held / 2; i < held; i++)
            (void)hf_lease_post_release(leases[i], NULL);
        hf_status status = hf_client_close(client, &error);
        HFT_CHECK(run, status == HF_OK, "close says %s: %s", hf_status_name(status), error.message);
        HFT_CHECK(run, hft_taken(&heir) == HF_OK, "nothing was handed on: %s", heir.error.message);
        if (heir.lease != NULL)
            (void)hf_lease_release(heir.lease, NULL);
        int64_t left = hft_lock_keys(server);
        HFT_CHECK(run, left == 0, "%lld keys are left behind", (long long)left);
        for (int i = 0; i < held / 2; i++) {
            HFT_CHECK(run, !hf_lease_is_valid(leases[i]), "a lease outlives its client");
            (void)hf_lease_release(leases[i], NULL);
        }
    }
    hft_note(run, "%d times %d leases", run->times, LEASES);
    (void)hf_client_close(heirs, NULL);
    hft_server_stop(server);
}

const struct hft_named hft_rule_faults[] = {
    {"tokens", "every grant has a token of its own that says whose it is and that nobody can guess", tokens,
     64, 1000, 0},
    {"made-up-messages", "messages that nobody sent cost a question, never the lock", made_up_messages, 3,
     200, 0},
    {"slow-replies", "what is answered late is good from when it was asked for, not from its answer",
     slow_replies, 1, 20, 0},
    {"withdrawals", "a lease is over before its release can let anybody in", withdrawals, 3, 100, 0},
    {"short-renewals", "a renewal only moves the end of a key forward", short_renewals, 1, 1, 0},
    {"strangers", "scripts with the token of somebody who does not hold change nothing", strangers, 1, 1, 0},
    {"close-with-leases", "a close gives everything back, and says so", closes, 3, 100, 0},
    {"writable-replica", "a replica grants nothing, whether it says so or has to be asked", demotions, 1, 20,
     HFT_PRELOADED},
    {"one-way", "all about a name goes one way, and users' commands go another", one_way, 20, 500, 0},
    {"quiet-waiters", "only behind a foreign holder do waiters listen to a key, and only the first three",
     quiet_waiters, 2, 20, 0},
    {"watchers", "whoever has subscribed to a key asks once more before it sleeps", watchers, 5, 50, 0},
    {"healing", "a key that only a forgotten token holds is given back as soon as somebody wants it", healing,
     3, 100, 0},
    {.name = NULL}};
