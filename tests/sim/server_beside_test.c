/* SPDX-License-Identifier: MIT */
/* server_beside_test.c - as server_test.c, for dialects: random calls of their scripts, and of what neighbours send, have the same
 * replies from the virtual server as from a real one, leave the same keys, and raise the same events. */
#include "base/random.h"
#include "core/protocol/scripts.h"
#include "tests/sim/call.h"
#include "tests/sim/lua.h"
#include "tests/support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CALLS 2500 /* of each mark */
#define SLACK 5000 /* ms, of lifetimes, which are some 100000 */

static struct sim_keyspace keys;
static uint64_t rng = 11;
static int64_t now_us = INT64_C(1790000000000000);
static redisContext *listener;
static int granted;
static char *all_sources[HFI_MARK_KINDS][HFI_DIALECT_SCRIPTS]; /* until the end: compiled scripts are known by their place */

static const struct way {
    enum hfi_mark mark;
    const char *key, *side, *parameter;
    const char *looks[5], *sends[10];
} ways[] = {
    {HFI_MARK_COUNTER, "x", "count:", "", {"GET x", "PTTL x"},
     {"INCR x", "DECR x", "INCR x", "DECR x", "GET x", "SET x many", "SET x 0", "DEL x"}},
    {HFI_MARK_REDISSON, "x", "hash:", "", {"HKEYS x", "PTTL x"},
     {"HSET x theirs 1", "DEL x", "PEXPIRE x 200000", "HLEN x", "SET x a", "HDEL x theirs"}},
    {HFI_MARK_SET, "locks:x", "set5:", "locks", {"SISMEMBER locks x", "SCARD locks"},
     {"SADD locks x", "SREM locks x", "SADD locks y z", "SREM locks y z q", "SMISMEMBER locks x y q", "SET locks a", "DEL locks"}},
    {HFI_MARK_SETNX, "x", "", "", {"GET x", "PTTL x"}, {"SETNX x theirs", "PEXPIRE x 200000", "DEL x", "GETSET x other", "SADD x y"}},
    {HFI_MARK_SIGNAL, "lock:x", "", "", {"GET lock:x", "LRANGE lock-signal:x 0 -1", "PTTL lock-signal:x"},
     {"SET lock:x theirs NX PX 200000", "DEL lock:x", "LPOP lock-signal:x", "LPUSH lock-signal:x 1", "DEL lock-signal:x"}},
    {HFI_MARK_STRING, "x", "", "", {"GET x", "PTTL x"}, {"SET x theirs NX PX 200000", "DEL x", "SETNX x theirs", "LPUSH x 1"}},
    {HFI_MARK_TOKENS, "SEMAPHORE:x:AVAILABLE", "list:", "2",
     {"LRANGE SEMAPHORE:x:AVAILABLE 0 -1", "HKEYS SEMAPHORE:x:GRABBED", "HLEN SEMAPHORE:x:GRABBED", "GET SEMAPHORE:x:EXISTS"},
     {"LPOP SEMAPHORE:x:AVAILABLE", "HSET SEMAPHORE:x:GRABBED 0 1.5 1 2.5", "LPUSH SEMAPHORE:x:AVAILABLE 0", "HDEL SEMAPHORE:x:GRABBED 0 1",
      "RPUSH SEMAPHORE:x:AVAILABLE 1", "LRANGE SEMAPHORE:x:AVAILABLE -1 5",
      "DEL SEMAPHORE:x:AVAILABLE SEMAPHORE:x:GRABBED SEMAPHORE:x:EXISTS",
      "GETSET SEMAPHORE:x:EXISTS 1", "SET SEMAPHORE:x:GRABBED a", "LLEN SEMAPHORE:x:AVAILABLE"}},
};

static int64_t between(int64_t least, int64_t most)
{
    return least + (int64_t)(hfi_rng_next(&rng) % (uint64_t)(most - least + 1));
}

static void add_words(struct sim_call *call, const char *command)
{
    char text[160];
    (void)snprintf(text, sizeof text, "%s", command);
    for (char *rest = NULL, *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        sim_call_add(call, "%s", word);
}

/* ---- on both ---- */

static char events[2000]; /* of one call, at the virtual server */

static void changed(void *self, const char *event, const char *key, const char *value)
{
    size_t size = strlen(events);
    (void)self;
    (void)value;
    (void)snprintf(events + size, sizeof events - size, "%s %s;", event, key);
}

static bool is_same(const redisReply *a, const redisReply *b)
{
    bool numbers = a->type == REDIS_REPLY_INTEGER && b->type == REDIS_REPLY_INTEGER;
    if (numbers && a->integer > 1000 && a->integer < 1000000)
        return llabs(a->integer - b->integer) < SLACK;
    if (a->type != b->type || a->elements != b->elements || (numbers && a->integer != b->integer))
        return false;
    if (a->type == REDIS_REPLY_ERROR)
        return strncmp(a->str, b->str, strcspn(a->str, " ")) == 0;
    if (a->type != REDIS_REPLY_ARRAY)
        return a->str == NULL || strcmp(a->str, b->str) == 0;
    bool same = true;
    for (size_t i = 0; same && i < a->elements; i++)
        same = is_same(a->element[i], b->element[i]);
    return same;
}

static void compare(redisContext *real, const struct sim_call *call, const char *source)
{
    events[0] = 0;
    redisReply *one = sim_call_virtual(&keys, call, source), *other = sim_call_real(real, call, source);
    assert_non_null(other);
    if (!is_same(one, other)) {
        for (int i = 0; i < call->count; i++)
            print_message(" %s", call->text[i]);
        print_message("\nvirtual:");
        sim_call_show(one);
        print_message("\nreal:");
        sim_call_show(other);
        fail_msg(" are not the same");
    }
    granted += one->type == REDIS_REPLY_ARRAY && one->elements > 0 && one->element[0]->str != NULL &&
               strcmp(one->element[0]->str, "GRANTED") == 0;
    freeReplyObject(one);
    freeReplyObject(other);
}

/* Of what who waits listens to; the virtual server knows no others' names. */
static bool is_heard_of(const char *event)
{
    static const char *const all[] = {"del", "srem", "sadd", "incrby", "lpush", "rpush", "lpop"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        is_one = is_one || strcmp(all[i], event) == 0;
    return is_one;
}

static void compare_events(redisContext *real, const struct sim_call *call)
{
    char rest_of[2000], *rest = NULL;
    (void)snprintf(rest_of, sizeof rest_of, "%s", events);
    redisReply *reply = redisCommand(real, "PUBLISH __keyevent@0__:end end");
    freeReplyObject(reply);
    for (char *one = strtok_r(rest_of, ";", &rest);; one = strtok_r(NULL, ";", &rest)) {
        char event[64] = "end", own[200], told[200];
        while (one != NULL && sscanf(one, "%63s", event) == 1 && !is_heard_of(event))
            one = strtok_r(NULL, ";", &rest);
        (void)snprintf(own, sizeof own, "%s", one != NULL ? one : "end end");
        do {
            assert_int_equal(redisGetReply(listener, (void **)&reply), REDIS_OK);
            (void)sscanf(reply->element[2]->str, "__keyevent@0__:%63s", event);
            (void)snprintf(told, sizeof told, "%s %s", event, reply->element[3]->str);
            freeReplyObject(reply);
        } while (!is_heard_of(event) && strcmp(event, "end") != 0);
        if (strcmp(own, told) != 0)
            fail_msg("%s %s raises %s, here %s", call->text[0], call->text[1], told, own);
        if (one == NULL)
            return;
    }
}

/* ---- random calls ---- */

static void script_call(struct sim_call *call, const struct way *way, enum hfi_dialect_script which)
{
    sim_call_add(call, "5");
    sim_call_add(call, "%s", way->key);
    sim_call_add(call, "hf:queue:%s{%s}:%s", way->side, way->key, way->key);
    sim_call_add(call, "hf:wait:%s{%s}:%s", way->side, way->key, way->key);
    sim_call_add(call, "hf:fence");
    sim_call_add(call, "hf:lease:%s{%s}:%s", way->side, way->key, way->key);
    if (which == HFI_DIALECT_BREAK)
        sim_call_add(call, "ffffffff%08x", 7u);
    else if (which != HFI_DIALECT_LOOK)
        sim_call_add(call, "hf1:%032x:%x:%016x:host:1", (unsigned)between(1, 2), (unsigned)between(1, 2), 7u);
    if (which == HFI_DIALECT_BREAK)
        sim_call_add(call, "force");
    else if (which == HFI_DIALECT_ACQUIRE || which == HFI_DIALECT_MORE || which == HFI_DIALECT_RENEW)
        sim_call_add(call, "%d", (int)between(2, 4) * 100000);
    if (which == HFI_DIALECT_ACQUIRE) {
        sim_call_add(call, "%lld", (long long)(now_us + 1000000));
        sim_call_add(call, "%s", between(0, 2) == 0 ? "try" : "wait");
        sim_call_add(call, "12345");
        sim_call_add(call, "0");
        sim_call_add(call, "200000");
        sim_call_add(call, "1500000");
    } else if (which == HFI_DIALECT_MORE) {
        sim_call_add(call, "2048");
    }
    sim_call_add(call, "x");
    sim_call_add(call, "%s", way->parameter);
    sim_call_add(call, "%lld %06lld", (long long)(now_us / 1000000), (long long)(now_us % 1000000));
}

static int64_t one_subscribes(void *self, const char *channel, size_t size)
{
    (void)self;
    return size == 37 && channel[36] == '1';
}

static int64_t one_hears(void *self, const char *channel, size_t channel_size, const char *message, size_t size)
{
    (void)message;
    (void)size;
    return one_subscribes(self, channel, channel_size);
}

static void run(redisContext *real, const struct way *way)
{
    char **sources = all_sources[way->mark];
    sim_keyspace_clear(&keys);
    freeReplyObject(redisCommand(real, "FLUSHALL"));
    granted = 0;
    for (int i = 0; i < HFI_DIALECT_SCRIPTS; i++)
        sources[i] = sim_call_source(hfi_dialect_scripts[way->mark][i]);
    for (int i = 0; i < CALLS; i++) {
        struct sim_call call = {.count = 0};
        int die = (int)between(0, 9), which = die < 4 ? HFI_DIALECT_ACQUIRE : (int)between(0, HFI_DIALECT_SCRIPTS - 1);
        now_us += between(0, 1000) == 0 ? 300000000 : between(0, 400000);
        if (die >= 7) {
            int count = 0;
            while (count < 10 && way->sends[count] != NULL)
                count++;
            add_words(&call, way->sends[between(0, count - 1)]);
        } else {
            script_call(&call, way, (enum hfi_dialect_script)which);
        }
        compare(real, &call, die >= 7 ? NULL : sources[which]);
        compare_events(real, &call);
        for (int j = 0; j < 5 && way->looks[j] != NULL; j++) {
            struct sim_call look = {.count = 0};
            add_words(&look, way->looks[j]);
            compare(real, &look, NULL);
        }
    }
    assert_true(granted > CALLS / 100);
}

static void neighbours_and_we_get_the_same_replies(void **state)
{
    (void)state;
    struct hft_server *server = hft_server_start(NULL);
    redisContext *real = redisConnectUnix(hft_server_socket(server)), *subscriber = redisConnectUnix(hft_server_socket(server));
    listener = redisConnectUnix(hft_server_socket(server));
    assert_true(real != NULL && real->err == 0 && subscriber != NULL && subscriber->err == 0 && listener != NULL && listener->err == 0);
    freeReplyObject(redisCommand(real, "CONFIG SET notify-keyspace-events Eg$sl"));
    freeReplyObject(redisCommand(subscriber, "SUBSCRIBE hf:c:%s", "00000000000000000000000000000001"));
    freeReplyObject(redisCommand(listener, "PSUBSCRIBE __keyevent@0__:*"));
    keys.publish = one_hears;
    keys.subscribers = one_subscribes;
    keys.changed = changed;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        print_message("  %s, mark %d\n", ways[i].key, (int)ways[i].mark);
        run(real, &ways[i]);
    }
    sim_keyspace_clear(&keys);
    for (int i = 0; i < HFI_MARK_KINDS * HFI_DIALECT_SCRIPTS; i++)
        free(all_sources[i / HFI_DIALECT_SCRIPTS][i % HFI_DIALECT_SCRIPTS]);
    redisFree(real);
    redisFree(subscriber);
    redisFree(listener);
    hft_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(neighbours_and_we_get_the_same_replies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
