/* SPDX-License-Identifier: MIT */
/* pages.c - see pages.h. */
#include "bench/pages.h"

#include "bench/crew.h"

#include <hiredis/hiredis.h>
#include <holdfast/redis.h>
#include <stdlib.h>

hf_status bench_pages_load(hf_loading *loading, void *arg)
{
    struct bench_pages *pages = arg;
    char *bytes = calloc(1, pages->size);
    hf_status status = hf_loading_set(loading, bytes, pages->size);
    free(bytes);
    return status;
}

static long step_fetch(int index, void *arg)
{
    struct bench_pages *pages = arg;
    hf_value *value;
    hf_error error;
    const hf_fetch_options *options = HF_FETCH(.load = bench_pages_load, .arg = pages, .ttl_ms = 600000, .stale_ms = 60000, .early = 1.0,
                                               .near_ms = pages->near_ms);
    bench_must(hf_fetch(pages->client, pages->names[index % pages->keys], options, &value, &error), &error, "fetch");
    if (value->size != pages->size)
        bench_die("that is not the page");
    hf_value_free(value);
    return 1;
}

static long step_get(int index, void *arg)
{
    struct bench_pages *pages = arg;
    redisReply *reply;
    hf_error error;
    bench_must(
        hf_command(pages->client, &reply, &error, "GET %s", pages->names[index % pages->keys]),
        &error, "get");
    if (reply->len != pages->size)
        bench_die("that is not the page");
    freeReplyObject(reply);
    return 1;
}

static long step_plain(int index, void *arg)
{
    struct bench_pages *pages = arg;
    redisContext *context = pages->plain[index];
    redisReply *reply = redisCommand(context, "GET %s", pages->names[index % pages->keys]);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != pages->size)
        bench_die("plain GET: %s", reply != NULL ? "that is not the page" : context->errstr);
    freeReplyObject(reply);
    return 1;
}

void bench_pages_open(struct bench_pages *pages, const char *url, int port, int threads, int keys,
                      size_t size, bool plainly)
{
    *pages = (struct bench_pages){threads, keys, size, 0, bench_client(url, NULL), NULL, NULL};
    pages->names = calloc((size_t)keys, sizeof *pages->names);
    if (pages->names == NULL)
        bench_die("no memory for the names of pages");
    for (int i = 0; i < keys; i++) {
        (void)snprintf(pages->names[i], sizeof pages->names[i], "page:%zu:%d", size, i);
        (void)step_fetch(i, pages);
    }
    if (!plainly)
        return;
    pages->plain = calloc((size_t)threads, sizeof *pages->plain);
    for (int i = 0; i < threads; i++)
        if ((pages->plain[i] = redisConnect("127.0.0.1", port)) == NULL || pages->plain[i]->err != 0)
            bench_die("plain GET: no connection");
}

void bench_pages_close(struct bench_pages *pages)
{
    for (int i = 0; pages->plain != NULL && i < pages->threads; i++)
        redisFree(pages->plain[i]);
    free(pages->plain);
    free(pages->names);
    (void)hf_client_close(pages->client, NULL);
}

double bench_pages_fetch(void *arg, double seconds)
{
    return bench_crew(((struct bench_pages *)arg)->threads, seconds, step_fetch, arg, NULL);
}

double bench_pages_get(void *arg, double seconds)
{
    return bench_crew(((struct bench_pages *)arg)->threads, seconds, step_get, arg, NULL);
}

double bench_pages_plain(void *arg, double seconds)
{
    return bench_crew(((struct bench_pages *)arg)->threads, seconds, step_plain, arg, NULL);
}
