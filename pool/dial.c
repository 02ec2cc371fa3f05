/* SPDX-License-Identifier: MIT */
/* dial.c - the steps of a dial: finds the server, connects (dial_connect.c), and does the I/O of the handshake
 * (handshake.c). */
#include "pool/dial_private.h"
#include "base/buffer.h"
#include "pool/hurry.h"
#include "pool/parser.h"
#include "pool/peer.h"
#include "pool/secure.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLY_MOST 65536 /* no reply in a handshake is longer */

static enum hfi_dial_state fail(struct hfi_dial *dial)
{
    hfi_fail_server(&dial->error, dial->peer->name);
    return HFI_DIAL_FAILED;
}

hf_status hfi_dial_fail_os(struct hfi_dial *dial, int os_errno, const char *what)
{
    bool ours = os_errno == EMFILE || os_errno == ENFILE || os_errno == ENOMEM || os_errno == ENOBUFS;
    hf_status status = ours ? HF_NOMEM : HF_UNAVAILABLE;
    const char *hint = ours ? "raise the limit of open files, or close some"
                       : os_errno == ENOENT || os_errno == ECONNREFUSED
                           ? "is the server running, and is this its address?"
                       : os_errno == EACCES ? "this user may not open the server's socket"
                       : dial->step == HFI_STEP_TALK
                           ? "check the server and the network; is this a port for TLS? then rediss://"
                           : "check the server and the network between";
    char text[96];
    struct hfi_transport_why why;
    dial->connection.transport->explain(&dial->connection, &why);
    if (why.denied)
        status = HF_DENIED;
    (void)hfi_fail(&dial->error, status, why.what[0] != 0 ? why.hint : hint, "cannot %s %s: %s", what,
                   dial->peer->name,
                   why.what[0] != 0 ? why.what : strerror_r(os_errno, text, sizeof text));
    hfi_fail_errno(&dial->error, os_errno);
    hfi_fail_retry(&dial->error, -1);
    return status;
}

static void fail_silent(struct hfi_dial *dial)
{
    const char *stage = dial->step == HFI_STEP_FIND    ? "its address was not found"
                        : dial->step == HFI_STEP_START ? "connected, but it does not answer in TLS"
                        : dial->step == HFI_STEP_TALK  ? "connected, but there was no answer"
                                                       : "no connection";
    (void)hfi_fail(&dial->error, HF_UNAVAILABLE,
                   dial->step == HFI_STEP_START
                       ? "is this a port without TLS? then redis://; else raise connect_ms"
                       : "check the server and the network between, or raise connect_ms",
                   "cannot reach %s: %s within %sconnect_ms", dial->peer->name, stage,
                   dial->bears_scripts ? "twice " : "");
    hfi_fail_errno(&dial->error, ETIMEDOUT);
    hfi_fail_retry(&dial->error, -1);
}

struct hfi_dial *hfi_dial_begin(struct hfi_peer *peer, enum hfi_dial_purpose purpose, int lane,
                                int64_t until_ns)
{
    struct hfi_dial *dial = calloc(1, sizeof *dial);
    if (dial == NULL)
        return NULL;
    dial->peer = peer;
    dial->deployment = peer->deployment;
    dial->until_ns = until_ns;
    dial->again_ns = until_ns;
    dial->connection = HFI_NO_CONNECTION;
    dial->any = -1;
    for (int i = 0; i < HFI_ADDRESSES_MOST; i++)
        dial->racing[i] = -1;
    hfi_handshake_init(&dial->handshake, peer, purpose, lane);
    return dial;
}

static void hang_up(struct hfi_dial *dial)
{
    hfi_dial_end_race(dial);
    dial->connection.transport->close(&dial->connection);
    if (dial->reader != NULL)
        redisReaderFree(dial->reader);
    dial->reader = NULL;
    dial->events = 0;
}

void hfi_dial_end(struct hfi_dial **place)
{
    struct hfi_dial *dial = *place;
    *place = NULL;
    if (dial == NULL)
        return;
    hang_up(dial);
    hfi_handshake_done(&dial->handshake);
    free(dial);
}

static enum hfi_dial_state find(struct hfi_dial *dial, int64_t now_ns)
{
    switch (hfi_topology_primary(dial->peer->topology, &dial->addresses, &dial->error)) {
    case HFI_FOUND:
        hfi_race_init(&dial->race, dial->addresses.count, now_ns, dial->until_ns);
        hfi_dial_enter(dial, HFI_STEP_CONNECT);
        break;
    case HFI_LOOKING:
        dial->again_ns = dial->until_ns; /* the topology's owner steps this dial when the lookup ends */
        break;
    default:
        return fail(dial);
    }
    return HFI_DIAL_GOING;
}

static void fail_memory(struct hfi_dial *dial)
{
    (void)hfi_fail(&dial->error, HF_NOMEM, NULL, "no memory to connect to %s", dial->peer->name);
}

/* A private server must run as our user: after ours has ended, another user's may listen at its path. */
static bool is_ours(const struct hfi_dial *dial)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    return dial->deployment->settings.endpoint.scheme != HFI_EMBEDDED ||
           (getsockopt(dial->connection.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid());
}

static enum hfi_dial_state start(struct hfi_dial *dial)
{
    if (!is_ours(dial)) {
        (void)hfi_fail(&dial->error, HF_UNAVAILABLE, "ours is gone: see who made that folder, and open another client",
                       "another user's server listens at %s", dial->peer->name);
        return fail(dial);
    }
    if (dial->deployment->secure != NULL && dial->connection.tls == NULL &&
        !hfi_secure_wrap(dial->deployment->secure, dial->addresses.host, &dial->connection)) {
        fail_memory(dial);
        return fail(dial);
    }
    int wants = dial->connection.transport->start(&dial->connection);
    if (wants > 0) {
        dial->events = (short)wants;
        dial->again_ns = dial->until_ns;
    } else if (wants < 0) {
        (void)hfi_dial_fail_os(dial, errno, "talk to");
        return fail(dial);
    } else {
        hfi_dial_enter(dial, HFI_STEP_TALK);
        dial->events = POLLIN;
        dial->reader = hfi_parser_create(REPLY_MOST);
        if (dial->reader == NULL || !hfi_handshake_begin(&dial->handshake)) {
            fail_memory(dial);
            return fail(dial);
        }
    }
    return HFI_DIAL_GOING;
}

static void say(struct hfi_dial *dial)
{
    struct hfi_buffer *out = &dial->handshake.out;
    while (hfi_buffer_size(out) > 0) {
        ssize_t sent = dial->connection.transport->send(&dial->connection, hfi_buffer_data(out), hfi_buffer_size(out));
        if (sent < 0) {
            /* A server that refuses a connection says why before it hangs up: read that first. */
            dial->events = errno == EAGAIN ? POLLIN | POLLOUT : POLLIN;
            return;
        }
        explicit_bzero(out->bytes + out->start, (size_t)sent); /* it may hold the password */
        hfi_buffer_eat(out, (size_t)sent);
    }
    dial->events = POLLIN;
}

static void fail_garbage(struct hfi_dial *dial, const char *what)
{
    (void)hfi_fail(&dial->error, HF_PROTOCOL, "is this the port of a Redis server? one of TLS has rediss://", "%s %s",
                   dial->peer->name, what);
}

/* The parser failed, on bytes that are no reply or for lack of memory. */
static void fail_parser(struct hfi_dial *dial)
{
    if (dial->reader->err == REDIS_ERR_OOM)
        fail_memory(dial);
    else
        fail_garbage(dial, "does not speak the Redis protocol");
}

/* Judges every complete reply. False: the dial failed, dial->error is set. */
static bool judge_all(struct hfi_dial *dial)
{
    void *reply;
    while (!dial->handshake.over) {
        if (redisReaderGetReply(dial->reader, &reply) != REDIS_OK) {
            fail_parser(dial);
            return false;
        }
        if (reply == NULL) {
            if (dial->unparsed > REPLY_MOST)
                fail_garbage(dial, "answers a greeting without end");
            return dial->unparsed <= REPLY_MOST;
        }
        dial->unparsed = dial->reader->len - dial->reader->pos;
        hf_status status = hfi_handshake_answer(&dial->handshake, reply, &dial->error);
        freeReplyObject(reply);
        if (status != HF_OK)
            return false;
        /* No bytes may be left at the end of a stage: they would be taken for replies to the next stage. */
        if (dial->handshake.answered == 0 && dial->reader->pos < dial->reader->len) {
            fail_garbage(dial, "says more than it was asked");
            return false;
        }
    }
    return true;
}

static enum hfi_dial_state talk(struct hfi_dial *dial)
{
    char bytes[16384];
    for (;;) {
        say(dial);
        ssize_t got = dial->connection.transport->recv(&dial->connection, bytes, sizeof bytes);
        if (got < 0 && errno == EAGAIN) {
            dial->again_ns = dial->until_ns;
            return HFI_DIAL_GOING;
        }
        if (got <= 0) {
            (void)hfi_dial_fail_os(dial, got == 0 ? ECONNRESET : errno, "greet");
            return fail(dial);
        }
        dial->unparsed += (size_t)got;
        if (redisReaderFeed(dial->reader, bytes, (size_t)got) != REDIS_OK) {
            fail_parser(dial);
            return fail(dial);
        }
        if (!judge_all(dial))
            return fail(dial);
        if (dial->handshake.over)
            return HFI_DIAL_UP;
    }
}

static enum hfi_dial_state take_step(struct hfi_dial *dial, int64_t now_ns)
{
    switch (dial->step) {
    case HFI_STEP_FIND:
        return find(dial, now_ns);
    case HFI_STEP_CONNECT:
        return hfi_dial_connect(dial, now_ns) ? HFI_DIAL_GOING : fail(dial);
    case HFI_STEP_START:
        return start(dial);
    default:
        return talk(dial);
    }
}

/* An address whose handshake succeeds is tried first next time. One that connects but then fails is tried last. */
static enum hfi_dial_state rate(struct hfi_dial *dial, enum hfi_dial_state state)
{
    if (dial->step == HFI_STEP_START || dial->step == HFI_STEP_TALK)
        hfi_topology_rate(dial->peer->topology, &dial->addresses.list[dial->winner], state == HFI_DIAL_UP);
    return state;
}

/* Scripts, some 14 kB, take seconds on a narrow line: a dial of the listener that would fail while they travel, its own or
 * another lane's, has connect_ms more. */
static bool bear_scripts(struct hfi_dial *dial)
{
    if (dial->handshake.purpose == HFI_DIAL_BORROWER || dial->bears_scripts) /* a borrower may dial in any thread */
        return false;
    if (dial->peer->loading == 0)
        return false;
    dial->bears_scripts = true;
    dial->until_ns = hfi_after_ms(dial->until_ns, dial->deployment->settings.connect_ms);
    return true;
}

enum hfi_dial_state hfi_dial_step(struct hfi_dial *dial, int64_t now_ns)
{
    enum hfi_step before;
    do {
        before = dial->step;
        enum hfi_dial_state state = take_step(dial, now_ns);
        if (state != HFI_DIAL_GOING)
            return rate(dial, state);
    } while (dial->step != before);
    if (now_ns < dial->until_ns || bear_scripts(dial))
        return HFI_DIAL_GOING;
    fail_silent(dial);
    return rate(dial, fail(dial));
}

struct hfi_polled hfi_dial_polled(const struct hfi_dial *dial)
{
    if (dial == NULL)
        return (struct hfi_polled){-1, 0, 0};
    int fd = dial->connection.fd >= 0 ? dial->connection.fd : dial->any >= 0 ? dial->any : dial->racing[0];
    return (struct hfi_polled){fd, dial->number, dial->events};
}

void hfi_dial_forked(const struct hfi_dial *dial)
{
    if (dial == NULL)
        return;
    const int all[] = {dial->connection.fd, dial->any};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] >= 0)
            (void)close(all[i]);
    for (int i = 0; i < HFI_ADDRESSES_MOST; i++)
        if (dial->racing[i] >= 0)
            (void)close(dial->racing[i]);
}

int64_t hfi_dial_again_ns(const struct hfi_dial *dial)
{
    return dial->again_ns < dial->until_ns ? dial->again_ns : dial->until_ns;
}

struct hfi_connection hfi_dial_take(struct hfi_dial *dial)
{
    struct hfi_connection connection = dial->connection;
    dial->connection = HFI_NO_CONNECTION;
    return connection;
}

const struct hfi_server *hfi_dial_server(const struct hfi_dial *dial)
{
    return &dial->handshake.server;
}

int64_t hfi_dial_client_id(const struct hfi_dial *dial)
{
    return dial->handshake.client_id;
}

void hfi_dial_clock(const struct hfi_dial *dial, int64_t *ahead_ns, int64_t *rtt_ns)
{
    *ahead_ns = dial->handshake.ahead_ns;
    *rtt_ns = dial->handshake.rtt_ns;
}

const hf_error *hfi_dial_error(const struct hfi_dial *dial)
{
    return &dial->error;
}

hf_status hfi_dial_now(struct hfi_peer *peer, int64_t until_ns, struct hfi_connection *connection, hf_error *error)
{
    struct hfi_deployment *deployment = peer->deployment;
    *connection = HFI_NO_CONNECTION;
    struct hfi_dial *dial = hfi_dial_begin(peer, HFI_DIAL_BORROWER, -1, until_ns);
    if (dial == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory to connect to %s", peer->name);
    (void)hfi_topology_wait(peer->topology, until_ns, &dial->addresses, NULL);
    enum hfi_dial_state state;
    for (;;) {
        int64_t now_ns = hfi_now(deployment->clock);
        state = hfi_dial_step(dial, now_ns);
        if (state != HFI_DIAL_GOING)
            break;
        (void)hfi_hurry_poll(deployment, hfi_dial_polled(dial).fd, dial->events, hfi_dial_again_ns(dial));
        dial->until_ns = hfi_hurry_until(deployment, until_ns);
    }
    hf_status status = HF_OK;
    if (state == HFI_DIAL_UP) {
        *connection = hfi_dial_take(dial);
    } else {
        status = dial->error.status;
        if (error != NULL)
            *error = dial->error;
    }
    hfi_dial_end(&dial);
    return status;
}
