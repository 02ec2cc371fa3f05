/* SPDX-License-Identifier: MIT */
/* bare_loop.c - see bare_loop.h. */
#include "bench/bare_loop.h"

#include "bench/harness.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define COMMANDS 4 /* of an acquire: MULTI, SET, INCRBY, EXEC */

struct record {
    char bytes[1024];
    size_t size;
    int sends;
};

struct bench_bare {
    redisContext *context;
    struct record take, give;
    bool is_ahead; /* a batch was sent whose replies are not read */
};

static _Thread_local struct record *recording; /* NULL: nothing is recorded */

/* In front of libc's: a thread that is alone sends its own commands. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    if (recording != NULL && size <= sizeof recording->bytes) {
        memcpy(recording->bytes, bytes, size);
        recording->size = size;
        recording->sends++;
    }
    return sendto(fd, bytes, size, flags, NULL, 0);
}

static void pair(hf_client *client, const char *name, struct record *take, struct record *give)
{
    hf_lock_options options = {.size = sizeof options, .wait_ms = 5000};
    hf_lease *lease;
    hf_error error;
    recording = take;
    hf_status status = hf_lock_acquire(client, name, &options, &lease, &error);
    recording = give;
    if (status == HF_OK)
        status = hf_lease_release(lease, &error);
    recording = NULL;
    bench_must(status, &error, "the pair that is recorded");
}

static bool is_whole(const struct bench_bare *bare)
{
    return bare->take.sends == 1 && bare->give.sends == 1 && memcmp(bare->take.bytes, "*1\r\n$5\r\nMULTI", 13) == 0;
}

/* The first pair is not like the others: what the server lacks is sent with it. Now and then the library's own thread sends. */
static void record(const char *url, const char *name, struct bench_bare *bare)
{
    hf_client *client = bench_client(url, NULL);
    pair(client, name, &(struct record){.size = 0}, &(struct record){.size = 0});
    for (int tries = 0; tries < 100 && !is_whole(bare); tries++) {
        bare->take.sends = bare->give.sends = 0;
        pair(client, name, &bare->take, &bare->give);
    }
    (void)hf_client_close(client, NULL);
    if (!is_whole(bare))
        bench_die("bare loop: %d sends for an acquire, %d for a release", bare->take.sends, bare->give.sends);
}

struct bench_bare *bench_bare_open(const char *url, int port, const char *name)
{
    struct bench_bare *bare = calloc(1, sizeof *bare);
    if (bare == NULL || (bare->context = redisConnect("127.0.0.1", port)) == NULL || bare->context->err != 0)
        bench_die("bare loop: no connection");
    record(url, name, bare);
    return bare;
}

static void list(struct bench_bare *bare, const struct record *record)
{
    if (redisAppendFormattedCommand(bare->context, record->bytes, record->size) != REDIS_OK)
        bench_die("bare loop: %s", bare->context->errstr);
}

/* The last of so many replies is of that type. */
static void read_replies(struct bench_bare *bare, int replies, int type)
{
    redisReply *reply = NULL;
    for (int i = 0; i < replies; i++) {
        if (reply != NULL)
            freeReplyObject(reply);
        if (redisGetReply(bare->context, (void **)&reply) != REDIS_OK)
            bench_die("bare loop: %s", bare->context->errstr);
    }
    if (reply->type != type || (type == REDIS_REPLY_ARRAY && reply->element[0]->type != REDIS_REPLY_STATUS))
        bench_die("bare loop: its own lock is taken");
    freeReplyObject(reply);
}

void bench_bare_pair(struct bench_bare *bare)
{
    list(bare, &bare->take);
    read_replies(bare, COMMANDS, REDIS_REPLY_ARRAY);
    list(bare, &bare->give);
    read_replies(bare, 1, REDIS_REPLY_STRING);
}

void bench_bare_batch(struct bench_bare *bare, int pairs)
{
    int sent = 0;
    for (int i = 0; i < pairs; i++) {
        list(bare, &bare->take);
        list(bare, &bare->give);
    }
    while (!sent)
        if (redisBufferWrite(bare->context, &sent) != REDIS_OK)
            bench_die("bare loop: %s", bare->context->errstr);
    for (int i = 0; bare->is_ahead && i < pairs; i++) {
        read_replies(bare, COMMANDS, REDIS_REPLY_ARRAY);
        read_replies(bare, 1, REDIS_REPLY_STRING);
    }
    bare->is_ahead = true;
}

void bench_bare_close(struct bench_bare *bare)
{
    redisFree(bare->context);
    free(bare);
}
