/* SPDX-License-Identifier: MIT */
/* reset.c - see reset.h. Every reply is compared with the expected one: a reply that a borrower left unread is found
 * here, never by the next borrower. */
#include "pool/reset.h"
#include "base/buffer.h"
#include "pool/handshake.h"
#include "pool/hurry.h"
#include "pool/parser.h"
#include "pool/peer.h"
#include "pool/transport.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <string.h>
#include <strings.h>

#define REPLY_MOST      65536
#define RESET_SINCE     60200 /* the first version with RESET */
#define OKS_WITHOUT     3     /* the last replies to the preamble without RESET */

struct talk {
    struct hfi_deployment *deployment;
    struct hfi_connection *connection;
    int64_t until_ns;
    struct redisReader *reader;
    size_t unparsed;
};

static bool wait_ready(const struct talk *talk, short events)
{
    return hfi_hurry_poll(talk->deployment, talk->connection->fd, events, talk->until_ns);
}

static bool say(struct talk *talk, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t sent = talk->connection->transport->send(talk->connection, bytes, size);
        if (sent < 0 && (errno != EAGAIN || !wait_ready(talk, POLLOUT)))
            return false;
        if (sent > 0) {
            bytes += sent;
            size -= (size_t)sent;
        }
    }
    return true;
}

/* The next reply; the caller frees it. NULL: none came, or what came is not acceptable. */
static redisReply *receive_one(struct talk *talk)
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
        ssize_t got = talk->connection->transport->recv(talk->connection, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && (errno != EAGAIN || !wait_ready(talk, POLLIN))))
            return NULL;
        if (got > 0) {
            talk->unparsed += (size_t)got;
            if (talk->unparsed > REPLY_MOST || redisReaderFeed(talk->reader, bytes, (size_t)got) != REDIS_OK)
                return NULL;
        }
    }
}

static bool receive_status(struct talk *talk, const char *expected)
{
    redisReply *reply = receive_one(talk);
    bool is_it = reply != NULL && reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, expected) == 0;
    freeReplyObject(reply);
    return is_it;
}

/* Not by poll(), which does not see what TLS has decrypted, and sees what it says to itself. */
bool hfi_reset_is_quiet(struct hfi_connection *connection)
{
    char byte;
    return connection->transport->recv(connection, &byte, 1) < 0 && errno == EAGAIN;
}

static bool talk_begin(struct talk *talk, struct hfi_deployment *deployment, struct hfi_connection *connection, int64_t until_ns)
{
    *talk = (struct talk){.deployment = deployment,
                          .connection = connection,
                          .until_ns = until_ns,
                          .reader = hfi_parser_create(REPLY_MOST)};
    return talk->reader != NULL;
}

static bool talk_end(struct talk *talk, bool good)
{
    good = good && talk->reader->pos == talk->reader->len && hfi_reset_is_quiet(talk->connection);
    if (talk->reader != NULL)
        redisReaderFree(talk->reader);
    return good;
}

bool hfi_reset_ping(struct hfi_peer *peer, struct hfi_connection *connection, int64_t until_ns)
{
    struct talk talk;
    bool good = talk_begin(&talk, peer->deployment, connection, until_ns) && say(&talk, "*1\r\n$4\r\nPING\r\n", 14) &&
                receive_status(&talk, "PONG");
    return talk_end(&talk, good);
}

/* Commands for the state that RESET does not clear, or did not before 7.2. They go in front of everything: SCRIPT DEBUG
 * must come first, and after RESET the connection is not authenticated if there is a password. In a transaction or a
 * subscription that has no effect: then they are sent once more at the end. */
static const char *leftovers(int version)
{
    return version < 70200 ? "SCRIPT DEBUG NO\r\nCLIENT NO-EVICT off\r\n" : "SCRIPT DEBUG NO\r\n";
}

/* Where nobody has learned the version RESET is tried: to be refused it costs the connection. */
static bool has_reset(int version)
{
    return version == 0 || version >= RESET_SINCE;
}

/* Without RESET. Who names no user in the URI is the default one, who needs no password then, so that any is right. */
static const char *back_to_the_user(const struct hfi_endpoint *endpoint)
{
    return endpoint->user == NULL && endpoint->password == NULL ? "AUTH default none\r\n" : "";
}

static bool say_preamble(struct talk *talk, int version, const struct hfi_endpoint *endpoint)
{
    const char *first = leftovers(version);
    struct hfi_buffer out = {0};
    bool good = has_reset(version)
                    ? hfi_buffer_print(&out, "%sRESET\r\n", first)
                    : hfi_buffer_print(&out, "%sDISCARD\r\n%sHELLO 2\r\nUNWATCH\r\nCLIENT TRACKING off\r\nSELECT %d\r\n", first,
                                       back_to_the_user(endpoint), endpoint->database);
    good = good && say(talk, hfi_buffer_data(&out), hfi_buffer_size(&out));
    hfi_buffer_done(&out);
    return good;
}

/* Expects a reply of this type, or an error that begins with `error`. */
static bool receive_either(struct talk *talk, int type, const char *error)
{
    redisReply *reply = receive_one(talk);
    bool good = reply != NULL && (reply->type == type || (reply->type == REDIS_REPLY_ERROR &&
                                                          strncmp(reply->str, error, strlen(error)) == 0));
    freeReplyObject(reply);
    return good;
}

/* *done: every command has taken effect, or has nothing to undo: a borrower whose server does not know it has switched nothing on. Nor
 * has who has no right to it: but before the handshake that may be another user, as whom the borrower has authenticated since. */
static bool receive_leftovers(struct talk *talk, int version, bool is_the_user, bool *done)
{
    *done = true;
    for (const char *at = leftovers(version); *at != 0; at = strchr(at, '\n') + 1) {
        redisReply *reply = receive_one(talk);
        if (reply == NULL)
            return false;
        bool is_error = reply->type == REDIS_REPLY_ERROR;
        bool is_denied = is_error && strncmp(reply->str, "NOPERM", 6) == 0;
        *done = *done && (is_error ? (is_denied && is_the_user) || strncasecmp(reply->str, "ERR unknown", 11) == 0
                                   : reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "OK") == 0);
        freeReplyObject(reply);
    }
    return true;
}

static bool receive_preamble(struct talk *talk, int version, const struct hfi_endpoint *endpoint, bool *done)
{
    bool has_auth = back_to_the_user(endpoint)[0] != 0;
    if (!receive_leftovers(talk, version, false, done))
        return false;
    if (has_reset(version))
        return receive_status(talk, "RESET");
    /* DISCARD is an error unless there was a MULTI. NOPERM for HELLO: then the borrower cannot have sent it either. */
    bool good = receive_either(talk, REDIS_REPLY_STATUS, "") && (!has_auth || receive_status(talk, "OK")) &&
                receive_either(talk, REDIS_REPLY_ARRAY, "NOPERM");
    for (int i = 0; good && i < OKS_WITHOUT; i++)
        good = receive_status(talk, "OK");
    return good;
}

bool hfi_reset(struct hfi_peer *peer, struct hfi_connection *connection, int64_t until_ns)
{
    struct hfi_deployment *deployment = peer->deployment;
    struct hfi_server server;
    struct hfi_handshake handshake;
    struct talk talk;
    hfi_peer_server(peer, &server);
    hfi_handshake_init(&handshake, peer, HFI_DIAL_BORROWER, -1);
    /* The handshake's first stage leaves with the preamble: without a password all of it takes one round trip. */
    bool good = talk_begin(&talk, deployment, connection, until_ns) && hfi_handshake_begin(&handshake) &&
                say_preamble(&talk, server.version, peer->endpoint);
    bool preamble_heard = false, done = false;
    while (good && !(preamble_heard && handshake.over)) {
        size_t size = hfi_buffer_size(&handshake.out);
        good = say(&talk, hfi_buffer_data(&handshake.out), size);
        if (good && size > 0)
            explicit_bzero(handshake.out.bytes + handshake.out.start, size); /* it may hold the password */
        hfi_buffer_eat(&handshake.out, size);
        if (good && !preamble_heard) {
            good = preamble_heard = receive_preamble(&talk, server.version, peer->endpoint, &done);
        } else if (good) {
            redisReply *reply = receive_one(&talk);
            good = reply != NULL && hfi_handshake_answer(&handshake, reply, NULL) == HF_OK;
            freeReplyObject(reply);
        }
    }
    hfi_handshake_done(&handshake);
    if (good && !done) {
        const char *behind = leftovers(server.version);
        good = say(&talk, behind, strlen(behind)) && receive_leftovers(&talk, server.version, true, &done) && done;
    }
    return talk_end(&talk, good);
}
