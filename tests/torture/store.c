/* SPDX-License-Identifier: MIT */
/* store.c - see store.h. Fences are compared as text: Lua's numbers cannot keep 19 digits. */
#include "tests/torture/store.h"

#include <stdio.h>
#include <unistd.h>

/* A later holder that was refused makes the others stale all the same. */
static const char write_script[] =
    "local seen, latest = redis.call('HGET', KEYS[1], 'fence'), redis.call('HGET', KEYS[1], 'turn') "
    "local stale = latest and tonumber(ARGV[2]) < tonumber(latest) "
    "if not stale then redis.call('HSET', KEYS[1], 'turn', ARGV[2]) end "
    "if seen and (#ARGV[1] < #seen or #ARGV[1] == #seen and ARGV[1] < seen) then return stale and 1 or 3 end "
    "redis.call('HSET', KEYS[1], 'fence', ARGV[1]) "
    "return stale and 2 or 0";

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "torture: the store: %s\n", what);
    _exit(1);
}

static int64_t number_of(redisContext *context, redisReply *reply)
{
    if (reply == NULL || reply->type != REDIS_REPLY_INTEGER)
        give_up(reply == NULL ? context->errstr : reply->str != NULL ? reply->str : "no number");
    int64_t number = reply->integer;
    freeReplyObject(reply);
    return number;
}

void hft_store_open(struct hft_store *store, const char *socket)
{
    store->context = redisConnectUnix(socket);
    if (store->context == NULL || store->context->err != 0)
        give_up("no connection");
}

int64_t hft_store_take_turn(struct hft_store *store, int lock)
{
    return number_of(store->context, redisCommand(store->context, "INCR turn:%d", lock));
}

enum hft_written hft_store_write(struct hft_store *store, int lock, int64_t fence, int64_t turn)
{
    return (enum hft_written)number_of(store->context,
        redisCommand(store->context, "EVAL %s 1 store:%d %lld %lld", write_script, lock, (long long)fence,
                     (long long)turn));
}
