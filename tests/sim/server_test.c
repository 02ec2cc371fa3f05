/* SPDX-License-Identifier: MIT */
/*
 * server_test.c - the virtual server against a real one: the same random calls of the real scripts, and of the plain
 * commands that lanes send, give the same replies and leave the same keys. Time is an input to both: the scripts take
 * the answer of TIME from their last argument; lifetimes are long and compared with a tolerance.
 */
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

#define CALLS       32000
#define TTL_SLACK   20000 /* ms; every lifetime here is one of a few that differ by more */
#define PIECES_MOST 8

static struct sim_keyspace keys;
static struct hft_server *server;
static uint64_t rng = 7;
static int64_t now_us = INT64_C(1790000000000000);
enum { RECHECK = 8, LOOK, DOWNGRADE, SHARE, PERMITS, BACK, EXTEND, LOOK_PERMITS, BREAK_PERMITS, FORGET_TAG, SCRIPTS };
static char *sources[SCRIPTS];
static const struct hfi_script *const scripts[SCRIPTS] = {
    hfi_script_acquire,     hfi_script_release, hfi_script_renew,  hfi_script_more,
    hfi_script_fence_floor, hfi_script_fill,    hfi_script_forget, hfi_script_break,
    hfi_script_recheck,     hfi_script_look,    hfi_script_downgrade, hfi_script_acquire_shared,
    hfi_script_acquire_permits, hfi_script_release_permits, hfi_script_renew_permits,
    hfi_script_look_permits, hfi_script_break_permits, hfi_script_forget_tag};

static int64_t between(int64_t least, int64_t most)
{
    return least + (int64_t)(hfi_rng_next(&rng) % (uint64_t)(most - least + 1));
}

/* ---- one call on both ---- */

/* Lifetimes pass at different speeds on the two servers, so they are compared with a tolerance; in a text the
 * lifetime is the first number. */
static bool is_near(long long a, long long b)
{
    return a > 1000 && b > 1000 && a < 1000000 && b < 1000000 && llabs(a - b) < TTL_SLACK;
}

static bool is_near_text(const char *a, const char *b)
{
    char *end_a, *end_b;
    long long x = strtoll(a, &end_a, 10), y = strtoll(b, &end_b, 10);
    return strcmp(end_a, end_b) == 0 && is_near(x, y);
}

/* Redis writes a large score with an exponent, from Redis 8 on without one. */
static bool is_same_score(const char *a, const char *b)
{
    char *end_a, *end_b;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return *end_a == 0 && *end_b == 0 && x == y && (strchr(a, 'e') != NULL) != (strchr(b, 'e') != NULL);
}

/* The line of the script in which a command was refused; 0: the error is no script's. */
static int script_line(const redisReply *error)
{
    static const char mark[] = ", on @user_script:";
    const char *at = strstr(error->str, mark);
    return at != NULL ? atoi(at + strlen(mark)) : 0;
}

static bool is_same(const redisReply *a, const redisReply *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == REDIS_REPLY_INTEGER)
        return a->integer == b->integer || is_near(a->integer, b->integer);
    if (a->type == REDIS_REPLY_ERROR) /* errors: the library reads the first word, and the script and line that it
                                       * came from */
        return strcspn(a->str, " ") == strcspn(b->str, " ") &&
               strncmp(a->str, b->str, strcspn(a->str, " ")) == 0 && script_line(a) == script_line(b);
    if (a->type != REDIS_REPLY_ARRAY)
        return a->type == REDIS_REPLY_NIL || (a->len == b->len && memcmp(a->str, b->str, a->len) == 0) ||
               is_near_text(a->str, b->str) || is_same_score(a->str, b->str);
    bool same = a->elements == b->elements;
    for (size_t i = 0; same && i < a->elements; i++)
        same = is_same(a->element[i], b->element[i]);
    return same;
}

/* The first word of a script's answer or of an error, and renew's word about a lease. Each has to occur in the run. */
static const char *const answers[] = {"GRANTED",   "KEPT",   "QUEUED",
                                      "BUSY",      "LATE",
                                      "VALUE",     "ABSENT",
                                      "FOREIGN lock", "FOREIGN queue", "FOREIGN wait",
                                      "FOREIGN fence", "FOREIGN permits", "FOREIGN data", "FOREIGN absent", "HANDED",
                                      "FREE",      "LEFT",
                                      "GONE",      "FILLED", "MISSING", "FOREIGN tag",
                                      "REFUSED",   "BROKEN",
                                      "DONE",      "HELD", "SHARED", "PERMITS", "OTHERS", "REVOKED",
                                      "WRONGTYPE", "OOM", "ERR",       "renewed 0",
                                      "renewed 1", "renewed 2",
                                      "renewed 3", "renewed 4", "renewed: another token",
                                      "waits",     "asks alone", "heard", "unheard"};
#define ANSWERS (sizeof answers / sizeof answers[0])
static int answered[ANSWERS];

static void count_one(const char *answer)
{
    for (size_t i = 0; i < ANSWERS; i++)
        answered[i] += strcmp(answer, answers[i]) == 0;
}

static void count(const redisReply *reply, const char *script)
{
    char text[40];
    if (reply->type == REDIS_REPLY_ERROR) {
        (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(reply->str, " "), reply->str);
        count_one(text);
    } else if (strcmp(script, "renew") == 0) {
        for (size_t i = 1; i < reply->elements; i++) {
            const redisReply *one = reply->element[i];
            (void)snprintf(text, sizeof text, "renewed %lld", one->integer);
            count_one(one->type == REDIS_REPLY_STRING ? "renewed: another token" : text);
        }
    } else if (strcmp(script, "recheck") == 0) {
        for (size_t i = 1; i < reply->elements; i++)
            count_one(reply->element[i]->type == REDIS_REPLY_STRING ? "waits" : "asks alone");
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[0]->type == REDIS_REPLY_STRING &&
               strcmp(reply->element[0]->str, "FOREIGN") == 0) {
        (void)snprintf(text, sizeof text, "FOREIGN %s", reply->element[2]->str);
        count_one(text);
    } else if (reply->type == REDIS_REPLY_STRING) {
        count_one(reply->str);
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
               reply->element[0]->type == REDIS_REPLY_STRING) {
        count_one(reply->element[0]->str);
        const redisReply *last = reply->element[reply->elements - 1];
        if (strcmp(reply->element[0]->str, "QUEUED") == 0 && last->integer >= 0)
            count_one(last->integer == 1 ? "heard" : "unheard");
    }
}

static void compare(redisContext *real, const struct sim_call *call, const char *what, const char *source)
{
    redisReply *one = sim_call_virtual(&keys, call, source), *other = sim_call_real(real, call, source);
    assert_non_null(other);
    if (!is_same(one, other)) {
        (void)printf("%s", what);
        for (int i = 0; i < call->count; i++)
            (void)printf(" %s", call->text[i]);
        (void)printf("\nvirtual:");
        sim_call_show(one);
        (void)printf("\nreal:");
        sim_call_show(other);
        (void)printf("\n");
    }
    assert_true(is_same(one, other));
    count(one, what);
    freeReplyObject(one);
    freeReplyObject(other);
}

/* ---- random calls ---- */

static void add_token(struct sim_call *call)
{
    sim_call_add(call, "hf1:%032x:%x:%016x:host:1", (unsigned)between(1, 3), (unsigned)between(1, 4), 7u);
}

static int64_t some_ttl(void)
{
    return between(1, 4) * 100000;
}

static void add_keys_before(struct sim_call *call, int name, bool fetches, int tags)
{
    sim_call_add(call, "%d", (fetches ? 6 : 4) + tags);
    sim_call_add(call, "hf:{n%d}", name);
    sim_call_add(call, "hf:queue:{n%d}:hf:{n%d}", name, name);
    sim_call_add(call, "hf:wait:{n%d}:hf:{n%d}", name, name);
    sim_call_add(call, "hf:fence");
    if (fetches) {
        sim_call_add(call, "page%d", name);
        sim_call_add(call, "hf:absent:{page%d}", name);
    }
    for (int tag = 0; tag < tags; tag++)
        sim_call_add(call, "hf:tag:{%d}", tag);
}

static void add_keys(struct sim_call *call, int name, bool fetches)
{
    add_keys_before(call, name, fetches, 0);
}

static void acquire(struct sim_call *call, int name, bool fetches, bool shares)
{
    add_keys(call, name, fetches);
    add_token(call);
    sim_call_add(call, "%lld", (long long)some_ttl());
    sim_call_add(call, "%lld", (long long)(now_us + between(-1, 20) * 1000000));
    sim_call_add(call, "%s", between(0, 2) == 0 ? "try" : "wait");
    sim_call_add(call, "%lld", (long long)between(1, 1000000000));
    sim_call_add(call, "%lld", between(0, 3) == 0 ? (long long)(now_us - between(0, 1000000)) : 0LL);
    sim_call_add(call, "%lld%s", (long long)some_ttl(), shares ? " s" : "");
    sim_call_add(call, "%lld", (long long)between(-1, 5) * 500000);
    if (fetches)
        sim_call_add(call, "%lld", (long long)between(0, 1) * 250000);
}

static void recheck(struct sim_call *call)
{
    sim_call_add(call, "6");
    for (int i = 0; i < 2; i++) {
        sim_call_add(call, "hf:{n%d}", i);
        sim_call_add(call, "hf:queue:{n%d}:hf:{n%d}", i, i);
        sim_call_add(call, "hf:wait:{n%d}:hf:{n%d}", i, i);
    }
    sim_call_add(call, "%lld", (long long)(now_us + between(-1, 20) * 1000000));
    sim_call_add(call, "%lld", (long long)between(0, 5) * 500000);
    sim_call_add(call, "%lld", (long long)between(1, 1000000000));
    sim_call_add(call, "%lld%s", (long long)some_ttl(), between(0, 2) == 0 ? " s" : "");
    add_token(call);
    add_token(call);
}

static void add_semaphore(struct sim_call *call, int name)
{
    sim_call_add(call, "4");
    sim_call_add(call, "hf:sem:{n%d}", name);
    sim_call_add(call, "hf:queue:{n%d}:hf:sem:{n%d}", name, name);
    sim_call_add(call, "hf:wait:{n%d}:hf:sem:{n%d}", name, name);
    sim_call_add(call, "hf:fence");
    add_token(call);
}

/* Ends are counted by one clock, so they need no slack. */
static void acquire_permits(struct sim_call *call, int name)
{
    add_semaphore(call, name);
    sim_call_add(call, "%lld", (long long)some_ttl());
    sim_call_add(call, "%lld", (long long)(now_us + between(-1, 20) * 1000000));
    sim_call_add(call, "%s", between(0, 2) == 0 ? "try" : "wait");
    sim_call_add(call, "%lld", (long long)between(1, 1000000000));
    sim_call_add(call, "%lld", between(0, 3) == 0 ? (long long)(now_us - between(0, 1000000)) : 0LL);
    sim_call_add(call, "%lld %d %d", (long long)some_ttl(), (int)between(1, 3), (int)between(3, 5));
    sim_call_add(call, "%lld", (long long)between(-1, 5) * 500000);
    sim_call_add(call, "%d", (int)between(1, 4));
}

static void extend_permits(struct sim_call *call)
{
    sim_call_add(call, "2");
    sim_call_add(call, "hf:sem:{n0}");
    sim_call_add(call, "hf:sem:{n1}");
    for (int i = 0; i < 2; i++) {
        add_token(call);
        sim_call_add(call, "%lld", (long long)some_ttl());
        sim_call_add(call, "hf:queue:{n%d}:hf:sem:{n%d}", i, i);
        sim_call_add(call, "%d", (int)between(1, 3));
    }
}

static void fill(struct sim_call *call, int name)
{
    static const char *const kinds[] = {"value", "value", "same", "absent", "nothing"};
    int tags = (int)between(0, 2);
    add_keys_before(call, name, true, tags);
    add_token(call);
    const char *kind = kinds[between(0, 4)];
    sim_call_add(call, "%s", kind);
    sim_call_add(call, "%lld", (long long)some_ttl());
    int number = (int)between(1, 100);
    if (strcmp(kind, "same") == 0) /* whenever it ends: that is counted by two clocks */
        sim_call_add(call, "%d,%s,9000000000000", number < 50 ? 7 : 8, number % 5 == 0 ? "8000000000000" : "0");
    else
        sim_call_add(call, "value %d", number);
    if (tags > 0) /* from before the last marks, or not */
        sim_call_add(call, "%lld", (long long)(now_us + between(-5, 5) * 1000000) * 2048);
}

static void script_call(struct sim_call *call, int which, int name, bool fetches)
{
    switch (which) {
    case PERMITS:
        acquire_permits(call, name);
        break;
    case BACK:
        add_semaphore(call, name);
        sim_call_add(call, "%d", between(0, 2) > 0 ? 0 : (int)between(1, 2));
        break;
    case LOOK_PERMITS:
        sim_call_add(call, "2");
        sim_call_add(call, "hf:sem:{n%d}", name);
        sim_call_add(call, "hf:queue:{n%d}:hf:sem:{n%d}", name, name);
        break;
    case BREAK_PERMITS:
        add_semaphore(call, name);
        call->count--; /* no token */
        sim_call_add(call, "ffffffff%08x", (unsigned)between(1, 1000));
        sim_call_add(call, "%s", between(0, 1) == 0 ? "force" : "");
        break;
    case EXTEND:
        extend_permits(call);
        break;
    case RECHECK:
        recheck(call);
        break;
    case LOOK:
        sim_call_add(call, "2");
        sim_call_add(call, "hf:{n%d}", name);
        sim_call_add(call, "hf:queue:{n%d}:hf:{n%d}", name, name);
        break;
    case DOWNGRADE:
        add_keys(call, name, false);
        add_token(call);
        sim_call_add(call, "500000"); /* more than is left: that is counted by two clocks */
        break;
    case 0:
        acquire(call, name, fetches, false);
        break;
    case SHARE:
        acquire(call, name, false, true);
        break;
    case 2:
        sim_call_add(call, "2");
        sim_call_add(call, "hf:{n0}");
        sim_call_add(call, "hf:{n1}");
        for (int i = 0; i < 2; i++) {
            add_token(call);
            sim_call_add(call, "%lld", (long long)some_ttl());
            sim_call_add(call, "hf:queue:{n%d}:hf:{n%d}", i, i);
        }
        break;
    case 4:
        sim_call_add(call, "1");
        sim_call_add(call, "hf:fence");
        sim_call_add(call, "%lld", between(0, 1) == 0 ? 0LL : (long long)(now_us + between(-5, 5) * 1000000) * 2048);
        sim_call_add(call, "%lld", between(0, 1) == 0 ? 0LL : (long long)(now_us + between(-50000, 50000)));
        break;
    case 5:
        fill(call, name);
        break;
    case FORGET_TAG:
        sim_call_add(call, "2");
        sim_call_add(call, "hf:tag:{%d}", (int)between(0, 1));
        sim_call_add(call, "hf:fence");
        break;
    case 6:
        add_keys(call, name, true);
        break;
    case 7:
        add_keys(call, name, false);
        sim_call_add(call, "ffffffff%08x", (unsigned)between(1, 1000));
        break;
    default: /* release, more */
        add_keys(call, name, fetches);
        add_token(call);
        if (which == 3) {
            sim_call_add(call, "%lld", (long long)some_ttl());
            sim_call_add(call, "%d", 2048 * (int)between(1, 16));
        }
    }
    sim_call_add(call, "%lld %lld", (long long)(now_us / 1000000), (long long)(now_us % 1000000));
}

/* A side key is another program's for a while. */
static void spoil_or_mend(struct sim_call *call, int name)
{
    int which = (int)between(0, 7), how = (int)between(0, 3);
    sim_call_add(call, "%s", how > 1 ? "DEL" : how == 1 ? "SET" : "ZADD");
    if (which < 2)
        sim_call_add(call, "hf:%s:{n%d}:hf:{n%d}", which == 0 ? "queue" : "wait", name, name);
    else if (which < 4)
        sim_call_add(call, "%spage%d%s", which == 2 ? "hf:absent:{" : "", name, which == 2 ? "}" : "");
    else if (which > 5)
        sim_call_add(call, which == 6 ? "hf:sem:{n%d}" : "hf:tag:{%d}", name);
    else
        sim_call_add(call, which == 4 ? "hf:fence" : "hf:held:{n%d}:hf:{n%d}", name, name);
    if (how == 0)
        sim_call_add(call, "1");
    if (how < 2)
        sim_call_add(call, "theirs");
}

static void plain_call(struct sim_call *call, int name)
{
    int64_t die = between(0, 14);
    if (die >= 10) {
        spoil_or_mend(call, name);
    } else if (die == 0) { /* the native acquire's half that may be refused */
        sim_call_add(call, "SET");
        sim_call_add(call, "hf:{n%d}", name);
        add_token(call);
        sim_call_add(call, "NX");
        sim_call_add(call, "PX");
        sim_call_add(call, "%lld", (long long)some_ttl());
    } else if (die == 1) {
        sim_call_add(call, "INCRBY");
        sim_call_add(call, "hf:fence");
        sim_call_add(call, "2048");
    } else if (die == 2) { /* another program's key, of another type */
        sim_call_add(call, "ZADD");
        sim_call_add(call, "hf:{n%d}", name);
        sim_call_add(call, "1");
        sim_call_add(call, "foreign");
    } else if (die == 3) {
        sim_call_add(call, "SET");
        sim_call_add(call, "page%d", name);
        sim_call_add(call, "theirs");
    } else if (die == 4) {
        sim_call_add(call, "DEL");
        sim_call_add(call, "hf:fence");
    } else if (die == 5) {
        sim_call_add(call, "DEL");
        sim_call_add(call, "page%d", name);
        sim_call_add(call, "hf:{n%d}", name);
    } else {
        sim_call_add(call, "%s", die < 8 ? "GET" : "PTTL");
        sim_call_add(call, die % 2 == 0 ? "hf:{n%d}" : "page%d", name);
    }
}

/* Whatever the calls have left. */
static void compare_keys(redisContext *real)
{
    static const char *const looks[][PIECES_MOST] = {
        {"GET", "hf:{n0}"},
        {"GET", "hf:{n1}"},
        {"GET", "page0"},
        {"GET", "page1"},
        {"GET", "hf:fence"},
        {"PTTL", "hf:{n0}"},
        {"PTTL", "hf:queue:{n0}:hf:{n0}"},
        {"PTTL", "hf:wait:{n1}:hf:{n1}"},
        {"PTTL", "page1"},
        {"PTTL", "hf:absent:{page0}"},
        {"PTTL", "hf:fence"},
        {"PTTL", "hf:held:{n0}:hf:{n0}"},
        {"ZRANGE", "hf:held:{n0}:hf:{n0}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:held:{n1}:hf:{n1}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:sem:{n0}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:sem:{n1}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:tag:{0}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:tag:{1}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:queue:{n0}:hf:sem:{n0}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:queue:{n0}:hf:{n0}", "0", "-1", "WITHSCORES"},
        {"ZRANGE", "hf:queue:{n1}:hf:{n1}", "0", "-1", "WITHSCORES"}};
    for (size_t i = 0; i < sizeof looks / sizeof looks[0]; i++) {
        struct sim_call call = {.count = 0};
        for (int j = 0; j < PIECES_MOST && looks[i][j] != NULL; j++)
            sim_call_add(&call, "%s", looks[i][j]);
        compare(real, &call, "afterwards", NULL);
    }
}

/* As the real server's one subscriber does. */
static int64_t one_subscribes(void *self, const char *channel, size_t channel_size)
{
    (void)self;
    return channel_size == 37 && channel[36] == '1';
}

/* And one that listens to everything. */
static int64_t two_hear(void *self, const char *channel, size_t channel_size, const char *message, size_t size)
{
    (void)message;
    (void)size;
    return 1 + one_subscribes(self, channel, channel_size);
}

/* Sets memory limits: whether a script may still write depends on what it has written before. */
static void limit(redisContext *real, bool full)
{
    redisReply *reply = redisCommand(real, "CONFIG SET maxmemory %d", full ? 1 : 0);
    assert_true(reply != NULL && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    keys.refuses = full ? SIM_NO_MEMORY : SIM_TAKES_ALL;
}

/* Takes a right away for a hundred of every thousand calls, and only a right that no plain call needs. */
static void forbid(redisContext *real, int call)
{
    static const char *const commands[] = {"HDEL", "EXISTS", "ZCARD", "PUBSUB"};
    const char *command = commands[call / 1000 % 4];
    bool forbidden = call % 1000 == 600;
    redisReply *reply = redisCommand(real, "ACL SETUSER default %s%s", forbidden ? "-" : "+", command);
    assert_true(reply != NULL && reply->type == REDIS_REPLY_STATUS);
    freeReplyObject(reply);
    keys.forbidden = forbidden ? command : NULL;
}

static void the_same_calls_give_the_same_replies(void **state)
{
    (void)state;
    server = hft_server_start(NULL);
    redisContext *real = redisConnectUnix(hft_server_socket(server));
    redisContext *listener = redisConnectUnix(hft_server_socket(server));
    assert_true(real != NULL && real->err == 0 && listener != NULL && listener->err == 0);
    redisReply *listens = redisCommand(listener, "SUBSCRIBE hf:c:%s", "00000000000000000000000000000001");
    assert_non_null(listens);
    freeReplyObject(listens);
    redisContext *monitor = redisConnectUnix(hft_server_socket(server));
    listens = redisCommand(monitor, "PSUBSCRIBE *");
    assert_non_null(listens);
    freeReplyObject(listens);
    keys.publish = two_hear;
    keys.subscribers = one_subscribes;
    for (int i = 0; i < SCRIPTS; i++)
        sources[i] = sim_call_source(scripts[i]);
    for (int i = 0; i < CALLS; i++) {
        struct sim_call call = {.count = 0};
        int name = (int)between(0, 1), die = (int)between(0, 50);
        now_us += between(0, 200000);
        if (i % 100 == 0)
            limit(real, i % 500 == 400);
        if (i % 1000 == 600 || i % 1000 == 700)
            forbid(real, i);
        if (die >= 31 && die <= 34) {
            plain_call(&call, name);
            compare(real, &call, "", NULL);
        } else {
            int which = die < 9 ? 0 : die < 13 ? 1 : die < 21 ? die - 11 : die < 24 ? RECHECK : die < 28 ? DOWNGRADE : SHARE;
            which = die > 46 ? (die == 47 ? FORGET_TAG : 5) : die >= 43 ? EXTEND : die >= 40 ? BACK : die >= 35 ? PERMITS : which;
            if (die == 46)
                which = between(0, 2) == 0 ? BREAK_PERMITS : LOOK_PERMITS;
            script_call(&call, which, name, between(0, 2) == 0);
            compare(real, &call, hfi_script_name(scripts[which]), sources[which]);
        }
        if (i % 50 == 0)
            compare_keys(real);
    }
    compare_keys(real);
    for (size_t i = 0; i < ANSWERS; i++) {
        if (answered[i] < 10)
            (void)printf("%s was answered %d times only\n", answers[i], answered[i]);
        assert_true(answered[i] >= 10);
    }
    for (int i = 0; i < SCRIPTS; i++)
        free(sources[i]);
    redisFree(real);
    redisFree(listener);
    redisFree(monitor);
    hft_server_stop(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_calls_give_the_same_replies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
