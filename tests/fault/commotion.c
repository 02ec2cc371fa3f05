/* SPDX-License-Identifier: MIT */
/* commotion.c - every mistake that the callers of a client can make, at once: loaders that misbehave, values thrown
 * away, calls canceled, strange commands, connections returned dirty; meanwhile connections are killed, and clients
 * are closed and opened again. Every answer is true, and every call ends. */
#include "tests/fault/races.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <holdfast/redis.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEYS = 6, LOCKS = 4, CLIENTS = 2, THREADS = 10, MOST = 3000, HUNG_S = 120 };

struct caller {
    struct hft_run *run;
    hf_client *client;
    hf_cancel *cancel; /* the thread's own; it keeps the client's memory until the thread has ended */
    pthread_t thread;
    unsigned rng;
    int depth; /* of loaders within loaders */
    long done, loads, values, stale, local, failed, canceled, closed, lost;
};

static _Atomic(bool) over;

/* ---- values: a reader can tell whether one is whole, and of which key it is ---- */

static unsigned sum_of(const char *text, size_t size)
{
    unsigned sum = 2166136261u;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)text[i]) * 16777619u;
    return sum;
}

static size_t print_value(struct caller *me, const char *key, size_t filling, char *out)
{
    size_t size = (size_t)sprintf(out, "%s|%d|", key, hft_die(&me->rng, 1000000));
    memset(out + size, 'a' + hft_die(&me->rng, 26), filling);
    size += filling;
    return size + (size_t)sprintf(out + size, "|%08x", sum_of(out, size));
}

static bool is_whole(const char *key, const char *data, size_t size)
{
    char sum[16];
    size_t prefix = strlen(key);
    if (size < prefix + 12 || strncmp(data, key, prefix) != 0 || data[prefix] != '|' || data[size] != 0)
        return false;
    (void)snprintf(sum, sizeof sum, "|%08x", sum_of(data, size - 9));
    return strncmp(data + size - 9, sum, 9) == 0;
}

/* ---- what a caller does ---- */

static void fetch(struct caller *me);
static void take(struct caller *me);
static void forget(struct caller *me);

static hf_status load(hf_loading *loading, void *arg)
{
    struct caller *me = arg;
    char value[MOST + 200];
    const char *key = hf_loading_key(loading);
    me->loads++;
    me->depth++;
    if (hft_die(&me->rng, 4) == 0)
        (void)poll(NULL, 0, hft_die(&me->rng, 40));
    int kind = hft_die(&me->rng, 16);
    if (kind == 0 && me->depth < 3)
        fetch(me);
    else if (kind == 1)
        take(me);
    else if (kind == 2)
        forget(me);
    else if (kind == 3)
        HFT_CHECK(me->run, hf_client_close(me->client, NULL) == HF_INVALID, "closed in a loader");
    me->depth--;
    if (hft_die(&me->rng, 8) == 0)
        hf_loading_set_ttl(loading, hft_die(&me->rng, 2) == 0 ? HF_OFF : 1 + hft_die(&me->rng, 50));
    size_t size = print_value(me, key, (size_t)hft_die(&me->rng, hft_die(&me->rng, 8) == 0 ? MOST : 50), value);
    switch (hft_die(&me->rng, 12)) {
    case 0:
        return hf_loading_fail(loading, EIO, "the rng");
    case 1:
        return HF_NOMEM;
    case 2:
        return HF_OK; /* and no answer */
    case 3:
        return hf_loading_absent(loading);
    case 4:
        (void)hf_loading_set(loading, value, size);
        (void)hf_loading_set(loading, "twice", 5);
        return HF_OK;
    case 5:
        return hf_loading_give(loading, memcpy(malloc(size), value, size), size, free);
    default:
        return hf_loading_set(loading, value, size);
    }
}

static void look_at(struct caller *me, const char *key, hf_value *value)
{
    HFT_CHECK(me->run, value->absent ? value->data == NULL : is_whole(key, value->data, value->size), "%s: a wrong value", key);
    me->values++;
    me->stale += value->source == HF_STALE;
    me->local += value->source == HF_LOCAL;
    hf_value_free(value);
}

static void fetch(struct caller *me)
{
    static const int64_t waits[] = {HF_OFF, 1, 20, 300, 2000};
    char key[16];
    hf_value *value;
    hf_error error = {.status = HF_OK};
    (void)snprintf(key, sizeof key, "page:%d", hft_die(&me->rng, KEYS));
    hf_status status = hf_fetch(me->client, key,
                                HF_FETCH(.load = load, .arg = me, .ttl_ms = 1 + hft_die(&me->rng, 30),
                                         .stale_ms = hft_die(&me->rng, 2) * hft_die(&me->rng, 200),
                                         .early = hft_die(&me->rng, 2), .negative_ttl_ms = hft_die(&me->rng, 3),
                                         .wait_ms = waits[hft_die(&me->rng, 5)], .lease_ms = 100 + hft_die(&me->rng, 400),
                                         .max_load_ms = 5 + hft_die(&me->rng, 60),
                                         .when_down = hft_die(&me->rng, 4) == 0 ? HF_FAIL : HF_LOAD_LOCALLY,
                                         .cancel = hft_die(&me->rng, 3) == 0 ? me->cancel : NULL),
                                &value, &error);
    switch ((int)status) {
    case HF_OK:
        look_at(me, key, value);
        break;
    case HF_LOAD_FAILED:
    case HF_NOMEM:
    case HF_INVALID: /* answered twice */
        me->failed++;
        break;
    case HF_CANCELED:
        me->canceled++;
        break;
    case HF_CLOSED:
        me->closed++;
        break;
    case HF_DEADLOCK:
        HFT_CHECK(me->run, me->depth > 0, "a deadlock outside of loaders");
        break;
    case HF_TIMEOUT:
    case HF_BUSY:
    case HF_UNAVAILABLE:
    case HF_LIMIT: /* another client's limit is higher */
        break;
    default:
        hft_broken(me->run, "fetch: %s: %s", hf_status_name(status), error.message);
    }
    HFT_CHECK(me->run, status == HF_OK || error.message[0] != 0, "fetch says %s without words", hf_status_name(status));
}

static void forget(struct caller *me)
{
    char key[16];
    hf_error error;
    (void)snprintf(key, sizeof key, "page:%d", hft_die(&me->rng, KEYS));
    hf_status status = hf_fetch_forget(me->client, key, &error);
    HFT_CHECK(me->run, status == HF_OK || status == HF_CLOSED || status == HF_UNKNOWN || status == HF_UNAVAILABLE,
              "forget: %s: %s", hf_status_name(status), error.message);
}

static void hear(hf_lease *lease, const hf_event *event, void *arg)
{
    struct hft_run *run = arg;
    HFT_CHECK(run, event->kind != HF_EVENT_LOST || !hf_lease_is_valid(lease), "LOST, and valid");
}

static void take(struct caller *me)
{
    char name[16];
    hf_lease *lease;
    hf_error error;
    (void)snprintf(name, sizeof name, "lock:%d", hft_die(&me->rng, LOCKS));
    hf_status status = hf_lock_acquire(me->client, name,
                                       HF_LOCK(.wait_ms = hft_die(&me->rng, 2) * hft_die(&me->rng, 100), .lease_ms = 300,
                                               .on_event = hear, .arg = me->run, .reentrant = true,
                                               .linger_ms = hft_die(&me->rng, 3) * 5,
                                               .cancel = hft_die(&me->rng, 3) == 0 ? me->cancel : NULL),
                                       &lease, &error);
    HFT_CHECK(me->run,
              status == HF_OK || status == HF_BUSY || status == HF_TIMEOUT || status == HF_CANCELED || status == HF_CLOSED ||
                  status == HF_UNAVAILABLE,
              "acquire: %s: %s", hf_status_name(status), error.message);
    if (status != HF_OK)
        return;
    hft_random_delay(&me->rng, 300);
    if (hft_die(&me->rng, 8) == 0)
        (void)hf_lease_verify(lease, NULL);
    status = hft_die(&me->rng, 2) == 0 ? hf_lease_release(lease, &error) : hf_lease_post_release(lease, &error);
    HFT_CHECK(me->run, status == HF_OK || status == HF_LOST || status == HF_UNKNOWN || status == HF_CLOSED, "release: %s: %s",
              hf_status_name(status), error.message);
    me->lost += status == HF_LOST;
}

static void ask_strangely(struct caller *me)
{
    static const struct {
        const char *script;
        hf_status status;
    } all[] = {{"return redis.error_reply('DENIED by a script')", HF_OK},
               {"return redis.error_reply('READONLY, says a script')", HF_OK},
               {"return string.rep('x', 200000)", HF_LIMIT},
               {"local t = {} for i = 1, 30000 do t[i] = i end return t", HF_LIMIT},
               {"return {{{{{{{{{{1}}}}}}}}}}", HF_LIMIT},
               {"return 7", HF_OK}};
    int at = hft_die(&me->rng, sizeof all / sizeof all[0]);
    redisReply *reply;
    hf_error error;
    hf_status status = hf_command(me->client, &reply, &error, "EVAL %s 0", all[at].script);
    HFT_CHECK(me->run,
              status == all[at].status || status == HF_CLOSED || status == HF_UNKNOWN || status == HF_UNAVAILABLE,
              "%s: %s: %s", all[at].script, hf_status_name(status), error.message);
    if (status != HF_OK)
        return;
    HFT_CHECK(me->run, (at == 5) == (reply->type == REDIS_REPLY_INTEGER && reply->integer == 7), "another one's reply");
    freeReplyObject(reply);
    HFT_CHECK(me->run, hf_command(me->client, &reply, NULL, "POST /") != HF_OK, "POST was carried");
}

static void borrow(struct caller *me)
{
    static const char *const dirt[] = {"MULTI", "WATCH x", "SUBSCRIBE c", "CLIENT NO-EVICT on", "SELECT 3", "CLIENT REPLY OFF"};
    hf_conn *conn;
    hf_error error;
    int done = 0;
    hf_status status = hf_conn_borrow(me->client, hft_die(&me->rng, 3) * 10, &conn, &error);
    HFT_CHECK(me->run,
              status == HF_OK || status == HF_BUSY || status == HF_TIMEOUT || status == HF_CLOSED || status == HF_UNAVAILABLE,
              "borrow: %s: %s", hf_status_name(status), error.message);
    if (status != HF_OK)
        return;
    redisContext *context = hf_conn_context(conn);
    redisReply *reply = redisCommand(context, "CLIENT GETNAME"); /* NULL: it was killed meanwhile */
    HFT_CHECK(me->run, reply == NULL || (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "commotion") == 0),
              "a connection is not as new");
    if (reply != NULL)
        freeReplyObject(reply);
    int what = hft_die(&me->rng, 9);
    if (what < 6 && context->err == 0)
        (void)redisAppendCommand(context, dirt[what]);
    while (what < 6 && context->err == 0 && done == 0 && redisBufferWrite(context, &done) == REDIS_OK)
        ;
    if (what == 6)
        (void)shutdown(context->fd, 2);
    if (hft_die(&me->rng, 4) == 0)
        hf_conn_discard(conn);
    else
        hf_conn_return(conn);
}

static void *go_on(void *arg)
{
    struct caller *me = arg;
    while (!atomic_load(&over) && me->closed == 0) {
        int what = hft_die(&me->rng, 20);
        if (what < 11)
            fetch(me);
        else if (what < 14)
            take(me);
        else if (what < 16)
            ask_strangely(me);
        else if (what < 18)
            borrow(me);
        else
            forget(me);
        me->done++;
        hf_cancel_reset(me->cancel);
    }
    return NULL;
}

/* ---- from outside ---- */

static void strike(struct hft_run *run, struct hft_server *server, struct caller *all)
{
    int64_t frozen = hft_roll(run, 12) == 0 ? hft_roll(run, 40) : -1;
    hf_cancel_fire(all[hft_roll(run, THREADS)].cancel);
    switch (hft_roll(run, 8)) {
    case 0:
        freeReplyObject(hft_server_ask(server, "CLIENT KILL TYPE normal SKIPME yes"));
        break;
    case 1:
        freeReplyObject(hft_server_ask(server, "CLIENT KILL TYPE pubsub"));
        break;
    case 2:
        freeReplyObject(hft_server_ask(server, "SCRIPT FLUSH"));
        break;
    case 3:
        freeReplyObject(hft_server_ask(server, "DEL hf:{lock:%d} hf:fetch:{page:%d}", hft_roll(run, LOCKS), hft_roll(run, KEYS)));
        break;
    }
    if (frozen >= 0) {
        hft_server_freeze(server);
        hft_sleep_ms(frozen);
        hft_server_thaw(server);
    }
    hft_sleep_ms(hft_roll(run, 20));
}

/* Nothing without an end, when what was held has ended. */
static void check_leftovers(struct hft_run *run, struct hft_server *server)
{
    int64_t until = hft_true_ns() + 5000 * HFT_NS_PER_MS;
    const char *left = "local n = 0 for _, k in ipairs(redis.call('KEYS', 'hf:*')) do "
                       "if k ~= 'hf:fence' and redis.call('PTTL', k) == -1 then n = n + 1 end end return n";
    while (hft_server_ask_integer(server, "EVAL %s 0", left) != 0 && hft_true_ns() < until)
        hft_sleep_ms(10);
    HFT_CHECK(run, hft_server_ask_integer(server, "EVAL %s 0", left) == 0, "a key is left without an end");
}

static void fetch_storm(struct hft_run *run)
{
    enum { STRIKES = 12, CLOSE_MS = 500 };
    static struct caller all[THREADS];
    struct hft_server *server = hft_server_start(NULL);
    (void)signal(SIGPIPE, SIG_IGN); /* hiredis 0.14 raises it for a borrower */
    long done = 0, loads = 0, values = 0, stale = 0, local = 0, failed = 0, canceled = 0, closed = 0, lost = 0;
    for (int round = 0; round < run->times; round++) {
        hf_client *clients[CLIENTS];
        hft_doing("round %d of seed %u", round, run->seed);
        (void)alarm(HUNG_S);
        atomic_store(&over, false);
        for (int i = 0; i < CLIENTS; i++)
            clients[i] = hft_open(hft_server_url(server),
                                  HF_CLIENT(.command_ms = 300, .close_ms = CLOSE_MS, .max_value_bytes = MOST, .client_name = "commotion",
                                            .local_bytes = hft_roll(run, 4) == 0 ? HF_OFF : 20000, .max_connections = 3));
        for (int i = 0; i < THREADS; i++) {
            all[i] = (struct caller){.run = run, .client = clients[i % CLIENTS], .rng = run->rng + (unsigned)(round * 100 + i)};
            HFT_CHECK(run, hf_cancel_open(all[i].client, &all[i].cancel, NULL) == HF_OK, "no cancel");
            (void)pthread_create(&all[i].thread, NULL, go_on, &all[i]);
        }
        for (int i = 0; i < STRIKES; i++)
            strike(run, server, all);
        for (int i = 0; i < CLIENTS; i++) { /* in the middle of it */
            hf_status status = hf_client_close(clients[i], NULL);
            HFT_CHECK(run, status == HF_OK || status == HF_UNKNOWN, "close: %s", hf_status_name(status));
        }
        atomic_store(&over, true);
        for (int i = 0; i < THREADS; i++) {
            (void)pthread_join(all[i].thread, NULL);
            hf_cancel_close(all[i].cancel);
            done += all[i].done, loads += all[i].loads, values += all[i].values, stale += all[i].stale;
            local += all[i].local, failed += all[i].failed, canceled += all[i].canceled;
            closed += all[i].closed, lost += all[i].lost;
        }
    }
    check_leftovers(run, server);
    HFT_CHECK(run, loads > 0 && values > 0 && failed > 0 && canceled > 0, "not all of it has happened");
    hft_tally(run, done, -1);
    hft_note(run, "%d rounds, %ld values, %ld loads, %ld stale, %ld local, %ld failed, %ld canceled, %ld closed, %ld leases lost",
             run->times, values, loads, stale, local, failed, canceled, closed, lost);
    hft_server_stop(server);
}

const struct hft_named hft_commotion_faults[] = {
    {"fetch-storm", "whatever callers do wrong at once, what is answered is true, and everything ends", fetch_storm, 12, 2000, 0},
    {.name = NULL}};
