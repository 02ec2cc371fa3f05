/* SPDX-License-Identifier: MIT */
/* call.c - see call.h. */
#include "tests/sim/call.h"
#include "pool/script.h"
#include "tests/sim/lua.h"
#include "tests/support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const char asks_time[] = "redis.call('TIME')";
static const char is_told[] = "{string.match(ARGV[#ARGV], '(%d+) (%d+)')}";

char *sim_call_source(const struct hfi_script *script)
{
    char *source = hfi_script_source(script);
    for (const char *at; source != NULL && (at = strstr(source, asks_time)) != NULL;) {
        size_t before = (size_t)(at - source), size = strlen(source) + sizeof is_told;
        char *told = malloc(size);
        assert_non_null(told);
        (void)snprintf(told, size, "%.*s%s%s", (int)before, source, is_told, at + sizeof asks_time - 1);
        free(source);
        source = told;
    }
    assert_non_null(source);
    return source;
}

void sim_call_add(struct sim_call *call, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    (void)vsnprintf(call->text[call->count++], sizeof call->text[0], format, values);
    va_end(values);
}

redisReply *sim_call_virtual(struct sim_keyspace *keys, const struct sim_call *call, const char *source)
{
    struct sim_words words = {.count = 0};
    struct hfi_buffer bytes = {0};
    void *reply = NULL;
    struct timespec clock;
    (void)clock_gettime(CLOCK_REALTIME, &clock);
    keys->now_us = (int64_t)clock.tv_sec * 1000000 + clock.tv_nsec / 1000;
    for (int i = 0; i < call->count; i++) {
        words.text[i] = call->text[i];
        words.size[i] = strlen(call->text[i]);
    }
    words.count = call->count;
    keys->wrote = false;
    if (source != NULL)
        sim_lua_run(keys, source, &words, 0, &bytes);
    else
        (void)sim_keyspace_run(keys, &words, &bytes);
    redisReader *reader = redisReaderCreate();
    assert_int_equal(redisReaderFeed(reader, hfi_buffer_data(&bytes), hfi_buffer_size(&bytes)), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    hfi_buffer_done(&bytes);
    return reply;
}

redisReply *sim_call_real(redisContext *real, const struct sim_call *call, const char *source)
{
    const char *words[32] = {"EVAL", source};
    int count = source != NULL ? 2 : 0;
    for (int i = 0; i < call->count; i++)
        words[count++] = call->text[i];
    return redisCommandArgv(real, count, words, NULL);
}

void sim_call_show(const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ARRAY)
        for (size_t i = 0; i < reply->elements; i++)
            sim_call_show(reply->element[i]);
    else if (reply->type == REDIS_REPLY_INTEGER)
        (void)printf(" %lld", reply->integer);
    else
        (void)printf(" %s", reply->str != NULL ? reply->str : "nil");
}
