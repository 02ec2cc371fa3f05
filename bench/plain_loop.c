/* SPDX-License-Identifier: MIT */
/* plain_loop.c - see plain_loop.h. At most 80 lines, and not a valid yardstick unless redis-benchmark is hardly
 * faster. */
#include "bench/plain_loop.h"

#include "bench/harness.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

static const char script[] =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

struct bench_plain {
    redisContext *context;
    char sha[41], key[64], token[32];
    char *take, *give; /* formatted once: the loop is to show Redis, not printf */
    int take_size, give_size;
};

static redisReply *run(struct bench_plain *plain, const char *bytes, int size)
{
    void *reply = NULL;
    if (redisAppendFormattedCommand(plain->context, bytes, (size_t)size) != REDIS_OK ||
        redisGetReply(plain->context, &reply) != REDIS_OK)
        bench_die("plain loop: %s", plain->context->errstr);
    return reply;
}

struct bench_plain *bench_plain_open(int port, const char *key)
{
    static _Atomic(int) number;
    struct bench_plain *plain = calloc(1, sizeof *plain);
    if (plain == NULL || (plain->context = redisConnect("127.0.0.1", port)) == NULL ||
        plain->context->err != 0)
        bench_die("plain loop: no connection");
    redisReply *reply = redisCommand(plain->context, "SCRIPT LOAD %s", script);
    (void)snprintf(plain->sha, sizeof plain->sha, "%s", reply != NULL ? reply->str : "");
    freeReplyObject(reply);
    (void)snprintf(plain->key, sizeof plain->key, "%s", key);
    (void)snprintf(plain->token, sizeof plain->token, "%08d-0123456789abcdef", ++number);
    plain->take_size = redisFormatCommand(&plain->take, "SET %s %s NX PX 10000", plain->key, plain->token);
    plain->give_size =
        redisFormatCommand(&plain->give, "EVALSHA %s 1 %s %s", plain->sha, plain->key, plain->token);
    return plain;
}

bool bench_plain_take(struct bench_plain *plain)
{
    redisReply *reply = run(plain, plain->take, plain->take_size);
    bool taken = reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return taken;
}

void bench_plain_give(struct bench_plain *plain)
{
    freeReplyObject(run(plain, plain->give, plain->give_size));
}

void bench_plain_ping(struct bench_plain *plain)
{
    freeReplyObject(run(plain, "*1\r\n$4\r\nPING\r\n", 14));
}

const char *bench_plain_sha(const struct bench_plain *plain)
{
    return plain->sha;
}

void bench_plain_close(struct bench_plain *plain)
{
    redisFree(plain->context);
    redisFreeCommand(plain->take);
    redisFreeCommand(plain->give);
    free(plain);
}
