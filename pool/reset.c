/* SPDX-License-Identifier: MIT */
/* reset.c - see reset.h. Every reply is compared with what must come: an answer that a borrower did not read
 * is found here, never by the next one. */
#include "pool/reset.h"
#include "base/buffer.h"
#include "pool/hello.h"
#include "pool/hurry.h"
#include "pool/parser.h"
#include "pool/inside.h"
#include "pool/transport.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <string.h>

#define REPLY_MOST      65536
#define RESET_SINCE     60200 /* the version that knows RESET */
#define REPLIES_WITHOUT 5     /* to the preamble that does without it */

struct talk {
    struct hfi_pool *pool;
    struct hfi_wire wire;
    int64_t until_ns;
    struct redisReader *reader;
    size_t unparsed;
};

static bool wait_ready(const struct talk *talk, short events)
{
    return hfi_hurry_poll(talk->pool, talk->wire.fd, events, talk->until_ns);
}

static bool say(struct talk *talk, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = talk->wire.transport->send(&talk->wire, bytes, size);
        if (sent < 0 && (errno != EAGAIN || !wait_ready(talk, POLLOUT)))
            return false;
        if (sent > 0) {
            bytes += sent;
            size -= (size_t)sent;
        }
    }
    return true;
}

/* The next reply, the caller's to free; NULL: none came, or not one of ours. */
static redisReply *hear(struct talk *talk)
{
    char bytes[4096];
    void *reply = NULL;
    for (;;) {
        if (redisReaderGetReply(talk->reader, &reply) != REDIS_OK)
            return NULL;
        if (reply != NULL) {
            talk->unparsed = talk->reader->len - talk->reader->pos;
            return reply;
        }
        ssize_t got = talk->wire.transport->recv(&talk->wire, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && (errno != EAGAIN || !wait_ready(talk, POLLIN))))
            return NULL;
        if (got > 0) {
            talk->unparsed += (size_t)got;
            if (talk->unparsed > REPLY_MOST || redisReaderFeed(talk->reader, bytes, (size_t)got) != REDIS_OK)
                return NULL;
        }
    }
}

static bool hear_status(struct talk *talk, const char *expected)
{
    redisReply *reply = hear(talk);
    bool is_it = reply != NULL && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, expected) == 0;
    freeReplyObject(reply);
    return is_it;
}

bool hfi_reset_is_quiet(int fd)
{
    struct pollfd ready = {fd, POLLIN, 0};
    return poll(&ready, 1, 0) == 0;
}

static bool talk_begin(struct talk *talk, struct hfi_pool *pool, int fd, int64_t until_ns)
{
    *talk = (struct talk){.pool = pool, .wire = HFI_NO_WIRE, .until_ns = until_ns, .reader = hfi_parser_create(REPLY_MOST)};
    talk->wire.fd = fd;
    return talk->reader != NULL;
}

static bool talk_end(struct talk *talk, bool good)
{
    good = good && talk->reader->pos == talk->reader->len && hfi_reset_is_quiet(talk->wire.fd);
    if (talk->reader != NULL)
        redisReaderFree(talk->reader);
    return good;
}

bool hfi_reset_ping(struct hfi_pool *pool, int fd, int64_t until_ns)
{
    struct talk talk;
    bool good = talk_begin(&talk, pool, fd, until_ns) && say(&talk, "*1\r\n$4\r\nPING\r\n", 14) &&
                hear_status(&talk, "PONG");
    return talk_end(&talk, good);
}

/* RESET of 7.0 leaves CLIENT NO-EVICT as it is. Behind it we are nobody where there is a password, before it perhaps in a
 * transaction or subscribed: once of the two it must have done. */
static bool keeps_no_evict(int version)
{
    return version >= 70000 && version < 70200;
}

static bool say_preamble(struct talk *talk, int version, int database)
{
    const char *evict = keeps_no_evict(version) ? "CLIENT NO-EVICT off\r\n" : "";
    struct hfi_buffer out = {0};
    bool good = version >= RESET_SINCE
                    ? hfi_buffer_print(&out, "%sRESET\r\n%s", evict, evict)
                    : hfi_buffer_print(&out, "DISCARD\r\nHELLO 2\r\nUNWATCH\r\nCLIENT TRACKING off\r\nSELECT %d\r\n", database);
    good = good && say(talk, hfi_buffer_data(&out), hfi_buffer_size(&out));
    hfi_buffer_done(&out);
    return good;
}

/* Where the type or an error may be its answer. */
static bool hear_either(struct talk *talk, int type, const char *error)
{
    redisReply *reply = hear(talk);
    bool good = reply != NULL && (reply->type == type || (reply->type == REDIS_REPLY_ERROR &&
                                                          strncmp(reply->str, error, strlen(error)) == 0));
    freeReplyObject(reply);
    return good;
}

/* False also where the answer was another one. */
static bool hear_evictable(struct talk *talk)
{
    redisReply *reply = hear(talk);
    bool good = reply != NULL && ((reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0) ||
                                  (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOPERM", 6) == 0));
    freeReplyObject(reply);
    return good; /* who has no right to it has not switched it on */
}

static bool hear_preamble(struct talk *talk, int version)
{
    if (version >= RESET_SINCE) {
        bool keeps = keeps_no_evict(version), before = keeps && hear_evictable(talk);
        bool good = hear_status(talk, "RESET");
        bool behind = keeps && good && hear_evictable(talk);
        return good && (!keeps || before || behind);
    }
    /* DISCARD is an error unless there was a MULTI; who has no right to HELLO has not said it. */
    bool good = hear_either(talk, REDIS_REPLY_STATUS, "") && hear_either(talk, REDIS_REPLY_ARRAY, "NOPERM");
    for (int i = 2; good && i < REPLIES_WITHOUT; i++)
        good = hear_status(talk, "OK");
    return good;
}

bool hfi_reset(struct hfi_pool *pool, int fd, int64_t until_ns)
{
    struct hfi_server server;
    struct hfi_hello hello;
    struct talk talk;
    hfi_pool_server(pool, &server);
    hfi_hello_init(&hello, pool, HFI_DIAL_BORROWER, -1);
    /* The first questions leave with the preamble: without a password that is all in one round trip. */
    bool good = talk_begin(&talk, pool, fd, until_ns) && hfi_hello_begin(&hello) &&
                say_preamble(&talk, server.version, pool->settings.place.database);
    bool preamble_heard = false;
    while (good && !(preamble_heard && hello.over)) {
        size_t size = hfi_buffer_size(&hello.out);
        good = say(&talk, hfi_buffer_data(&hello.out), size);
        if (good && size > 0)
            explicit_bzero(hello.out.bytes + hello.out.start, size); /* it may hold the password */
        hfi_buffer_eat(&hello.out, size);
        if (good && !preamble_heard) {
            good = preamble_heard = hear_preamble(&talk, server.version);
        } else if (good) {
            redisReply *reply = hear(&talk);
            good = reply != NULL && hfi_hello_answer(&hello, reply, NULL) == HF_OK;
            freeReplyObject(reply);
        }
    }
    hfi_hello_done(&hello);
    return talk_end(&talk, good);
}
