/* SPDX-License-Identifier: MIT */
/* subscribe.c - subscriber connections: subscribes to channels, hands messages up, notices silence, dials anew. All of
 * this is the listener's work, but a thread that waits for a message may receive in its place (subscribe_wait.c). */
#include "pool/subscribe.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "pool/channels.h"
#include "pool/dial.h"
#include "pool/listener.h"
#include "pool/parser.h"
#include "pool/secure.h"
#include "pool/replies.h"
#include "pool/subscribe_private.h"
#include "pool/times.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MESSAGE_MOST (1024 * 1024)

struct ask { /* a command that the server has yet to confirm, in order; channel NULL: a PING */
    struct hfi_channel *channel;
    int64_t stamp_ns; /* not younger than its sending */
};

struct hfi_subscribers *hfi_subscribers_new(struct hfi_peer *peer, struct hfi_listener *listener, int count)
{
    struct hfi_deployment *deployment = peer->deployment;
    struct hfi_channels *channels = hfi_channels_new(count++); /* and the tracker */
    struct hfi_subscribers *all = calloc(1, sizeof *all + (size_t)count * sizeof all->list[0]);
    int wake_fd = hfi_descriptor_event();
    if (all == NULL || channels == NULL || wake_fd < 0) {
        if (wake_fd >= 0)
            (void)close(wake_fd);
        free(all);
        hfi_channels_free(channels);
        return NULL;
    }
    all->wake_fd = wake_fd;
    all->peer = peer;
    all->deployment = deployment;
    all->listener = listener;
    all->channels = channels;
    all->count = count;
    for (int i = 0; i < count; i++) {
        struct hfi_subscriber *one = &all->list[i];
        *one = (struct hfi_subscriber){.all = all, .index = i, .connection = HFI_NO_CONNECTION, .expect_ns = HFI_NEVER};
        hfi_backoff_init(&one->backoff, (uint64_t)hfi_now(deployment->clock) ^ ((uint64_t)(i + 128) << 48));
    }
    return all;
}

static bool is_tracker(const struct hfi_subscriber *one)
{
    return one->index == one->all->count - 1;
}

/* ---- the role ---- */

/* For the listener. Store-load pairing with hfi_subscribers_give_role(): we set `missed`, then try again; the owner
 * gives the role back, then tests `missed`. One of us sees the other. */
static bool take_role_or_be_called(struct hfi_subscribers *all)
{
    if (hfi_subscribers_take_role(all))
        return true;
    atomic_store(&all->missed, true);
    return hfi_subscribers_take_role(all);
}

static void hang_up(struct hfi_subscriber *one)
{
    one->connection.transport->close(&one->connection);
    if (one->parser != NULL)
        redisReaderFree(one->parser);
    one->parser = NULL;
    one->wrong = NULL;
    atomic_store(&one->client_id, 0);
    hfi_buffer_done(&one->out);
    hfi_buffer_done(&one->asks);
}

void hfi_subscribers_end(struct hfi_subscribers *subscribers)
{
    while (!hfi_subscribers_take_role(subscribers))
        (void)sched_yield();
    for (int i = 0; i < subscribers->count; i++) {
        hang_up(&subscribers->list[i]);
        hfi_dial_end(&subscribers->list[i].dial);
    }
    atomic_store(&subscribers->reading, false);
}

void hfi_subscribers_free(struct hfi_subscribers *subscribers)
{
    if (subscribers == NULL)
        return;
    hfi_subscribers_end(subscribers);
    (void)close(subscribers->wake_fd);
    hfi_channels_free(subscribers->channels);
    free(subscribers);
}

void hfi_subscribers_forked(struct hfi_subscribers *subscribers)
{
    for (int i = 0; i < subscribers->count; i++) {
        const struct hfi_subscriber *one = &subscribers->list[i];
        if (one->connection.fd >= 0)
            (void)close(one->connection.fd);
        hfi_dial_forked(one->dial);
    }
    (void)close(subscribers->wake_fd);
}

/* ---- losing a connection ---- */

static void lose(struct hfi_subscriber *one, int64_t now_ns, const char *why)
{
    struct hfi_deployment *deployment = one->all->deployment;
    hang_up(one);
    hfi_channels_lose(one->all->channels, one->index);
    enum hfi_lost lost = one->served ? HFI_LOST_SERVED : HFI_LOST_UNUSED;
    one->dial_due_ns = hfi_backoff_lost_ns(&one->backoff, &one->all->peer->losses, lost, now_ns);
    if (deployment->secure != NULL)
        one->dial_due_ns += hfi_backoff_spread_ns(&one->backoff, &one->all->peer->losses, HFI_SPREAD_NS);
    hfi_log(&deployment->log, HF_LOG_WARNING, "a subscription to %s is lost: %s; dialling again", one->all->peer->name, why);
}

/* ---- sending ---- */

static bool put_ask(struct hfi_subscriber *one, const char *word, struct hfi_channel *channel, int64_t now_ns)
{
    struct ask ask = {channel, now_ns};
    bool ok = hfi_buffer_append(&one->asks, &ask, sizeof ask);
    if (channel == NULL)
        ok = ok && hfi_buffer_print(&one->out, "*1\r\n$%zu\r\n%s\r\n", strlen(word), word);
    else
        ok = ok && hfi_buffer_print(&one->out, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(word), word, channel->size) &&
             hfi_buffer_append(&one->out, channel->name, channel->size) &&
             hfi_buffer_append(&one->out, "\r\n", 2);
    if (one->expect_ns == HFI_NEVER)
        one->expect_ns = hfi_after_ms(now_ns, one->all->deployment->settings.command_ms);
    return ok;
}

static void tell_subscribed(const struct hfi_deployment *deployment, const struct hfi_channel *channel)
{
    if (deployment->ops.subscribed != NULL)
        deployment->ops.subscribed(deployment->self, channel->name, channel->size);
}

/* False: no memory, and `out` may end in half a command. */
static bool ask_all(struct hfi_subscriber *one, int64_t now_ns)
{
    enum hfi_channel_step step;
    struct hfi_channel *channel;
    bool ok = true;
    while (ok && (channel = hfi_channels_next(one->all->channels, one->index, &step)) != NULL) {
        if (step == HFI_CHANNEL_LIVE)
            tell_subscribed(one->all->deployment, channel);
        else
            ok = put_ask(one, step == HFI_CHANNEL_ASK ? "SUBSCRIBE" : "UNSUBSCRIBE", channel, now_ns);
    }
    return ok;
}

/* False: the connection is useless. */
static bool send_out(struct hfi_subscriber *one)
{
    while (hfi_buffer_size(&one->out) > 0) {
        ssize_t sent = one->connection.transport->send(&one->connection, hfi_buffer_data(&one->out), hfi_buffer_size(&one->out));
        if (sent < 0)
            return errno == EAGAIN || errno == ENOBUFS;
        hfi_buffer_eat(&one->out, (size_t)sent);
    }
    return true;
}

/* ---- receiving ---- */

static bool is_word(const struct redisReply *reply, const char *word)
{
    return reply->str != NULL && reply->len == strlen(word) && memcmp(reply->str, word, reply->len) == 0;
}

/* As a status, or as a message to who listens. */
static bool is_pong(const struct redisReply *reply)
{
    return is_word(reply, "PONG") || (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && is_word(reply->element[0], "pong"));
}

/* What the server told before it saw this PING has been handed up: it came before, on the same connection. */
static void prove(const struct hfi_subscriber *one, int64_t stamp_ns)
{
    const struct hfi_deployment *deployment = one->all->deployment;
    int64_t id = is_tracker(one) ? atomic_load(&one->client_id) : 0;
    if (id > 0 && deployment->ops.proved != NULL && hfi_channels_is_live(one->all->channels, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS)))
        deployment->ops.proved(deployment->self, id, hfi_server_run(one->run_id), stamp_ns);
}

/* Matches a reply to the oldest command: the server answers in order. False: it does not match. */
static bool confirm(struct hfi_subscriber *one, const struct redisReply *reply)
{
    struct ask ask;
    if (hfi_buffer_size(&one->asks) < sizeof ask)
        return false;
    memcpy(&ask, hfi_buffer_data(&one->asks), sizeof ask);
    hfi_buffer_eat(&one->asks, sizeof ask);
    if (ask.channel == NULL) {
        if (is_pong(reply))
            prove(one, ask.stamp_ns);
        return true;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        struct hfi_deployment *deployment = one->all->deployment;
        char channel[160], text[200];
        (void)hfi_quote(channel, sizeof channel, ask.channel->name, ask.channel->size);
        bool is_first = hfi_channels_refuse(one->all->channels, ask.channel) && !one->refused;
        if (is_tracker(one))
            atomic_store(&one->client_id, -1);
        if (is_first) {
            one->refused = true;
            hfi_log(&deployment->log, HF_LOG_WARNING, "%s refuses a subscription to %s, and perhaps others: %s", one->all->peer->name,
                    channel, hfi_quote(text, sizeof text, reply->str, reply->len));
        }
        return !hfi_reply_meaning(reply->str, reply->len)->reconnect;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        reply->element[1]->len != ask.channel->size ||
        memcmp(reply->element[1]->str, ask.channel->name, ask.channel->size) != 0)
        return false;
    if (hfi_channels_confirm(one->all->channels, ask.channel))
        tell_subscribed(one->all->deployment, ask.channel);
    return true;
}

static void hand_up(const struct hfi_deployment *deployment, const struct redisReply *channel, const struct redisReply *message)
{
    HFI_PERTURB("message-to-heard");
    if (deployment->ops.on_message != NULL)
        deployment->ops.on_message(deployment->self, channel->str, channel->len, message->str, message->len);
}

/* The server's own words on HFI_INVALIDATIONS are an array of keys, or nil where all are meant. */
static bool hand_up_keys(const struct hfi_deployment *deployment, const struct redisReply *channel, const struct redisReply *message)
{
    bool sound = message->type == REDIS_REPLY_NIL || message->type == REDIS_REPLY_ARRAY;
    if (message->type == REDIS_REPLY_NIL)
        hand_up(deployment, channel, message);
    for (size_t i = 0; sound && i < message->elements; i++) {
        sound = message->element[i]->str != NULL;
        if (sound)
            hand_up(deployment, channel, message->element[i]);
    }
    return sound;
}

static bool dispatch_message(struct hfi_subscriber *one, const struct redisReply *reply)
{
    const struct hfi_deployment *deployment = one->all->deployment;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 || !is_word(reply->element[0], "message"))
        return confirm(one, reply);
    const struct redisReply *channel = reply->element[1], *message = reply->element[2];
    if (channel->str == NULL)
        return false;
    if (message->str == NULL)
        return is_word(channel, HFI_INVALIDATIONS) && hand_up_keys(deployment, channel, message);
    hand_up(deployment, channel, message);
    return true;
}

static const char *receive_all(struct hfi_subscriber *one)
{
    for (;;) {
        void *reply;
        if (redisReaderGetReply(one->parser, &reply) != REDIS_OK)
            return "it does not speak the Redis protocol";
        if (reply == NULL)
            return one->unparsed > MESSAGE_MOST ? "a message is longer than allowed" : NULL;
        one->unparsed = one->parser->len - one->parser->pos;
        bool sound = dispatch_message(one, reply);
        freeReplyObject(reply);
        if (!sound)
            return "an answer that does not fit what was asked";
    }
}

const char *hfi_subscriber_receive(struct hfi_subscriber *one, int64_t now_ns)
{
    char *in = one->all->in;
    ssize_t got = one->connection.transport->recv(&one->connection, in, sizeof one->all->in);
    if (got < 0 && errno == EAGAIN)
        return NULL;
    if (got <= 0)
        return got == 0 ? "the server closed it" : "receiving failed";
    one->received_ns = now_ns;
    one->served = true;
    one->unparsed += (size_t)got;
    if (redisReaderFeed(one->parser, in, (size_t)got) != REDIS_OK)
        return "no memory for a message";
    const char *wrong = receive_all(one);
    bool owed = hfi_buffer_size(&one->asks) > 0;
    one->expect_ns = owed ? hfi_after_ms(now_ns, one->all->deployment->settings.command_ms) : HFI_NEVER;
    return wrong;
}

static void ready(void *self, short events, int64_t now_ns)
{
    struct hfi_subscriber *one = self;
    if (!take_role_or_be_called(one->all))
        return;
    const char *wrong = one->wrong;
    if (wrong == NULL && (events & (POLLIN | POLLHUP | POLLERR | POLLRDHUP)) != 0)
        wrong = hfi_subscriber_receive(one, now_ns);
    if (wrong == NULL && (events & POLLOUT) && !send_out(one))
        wrong = "sending failed";
    if (wrong != NULL)
        lose(one, now_ns, wrong);
    hfi_subscribers_give_role(one->all);
}

/* ---- maintaining ---- */

static void watch(struct hfi_subscriber *one, short events, struct hfi_poll_set *set)
{
    hfi_poll_set_add(set, (struct hfi_polled){one->connection.fd, one->connection.number, events}, ready, one);
}

static void maintain_up(struct hfi_subscriber *one, int64_t now_ns, struct hfi_poll_set *set)
{
    const char *wrong = one->wrong;
    /* A demoted server still answers, but its subscribers are not told of hand-offs. */
    if (wrong == NULL && hfi_peer_has_moved(one->all->peer, one->primaries, one->run_id))
        wrong = "the primary is another one now";
    bool idle = one->expect_ns == HFI_NEVER && now_ns - one->received_ns >= HFI_PING_NS;
    if (wrong == NULL && !ask_all(one, now_ns))
        wrong = "no memory";
    bool asked = is_tracker(one) && atomic_exchange(&one->all->prove, false); /* behind the subscription, which it proves too */
    if (wrong == NULL && (idle || asked) && !put_ask(one, "PING", NULL, now_ns))
        wrong = "no memory";
    if (wrong == NULL && !send_out(one))
        wrong = "sending failed";
    if (wrong == NULL && now_ns >= one->expect_ns)
        wrong = "the server is silent";
    if (wrong != NULL) {
        lose(one, now_ns, wrong);
        hfi_poll_set_again(set, one->dial_due_ns);
        return;
    }
    watch(one, hfi_buffer_size(&one->out) > 0 ? POLLIN | POLLOUT : POLLIN, set);
    hfi_poll_set_again(set, one->expect_ns != HFI_NEVER ? one->expect_ns : one->received_ns + HFI_PING_NS);
}

static void judge_dial(struct hfi_subscriber *one, enum hfi_dial_state state, int64_t now_ns)
{
    struct hfi_deployment *deployment = one->all->deployment;
    if (state == HFI_DIAL_UP)
        one->parser = hfi_parser_create(MESSAGE_MOST);
    HFI_PERTURB("subscriber-dialled");
    if (one->parser != NULL) {
        (void)memcpy(one->run_id, hfi_dial_server(one->dial)->run_id, sizeof one->run_id);
        one->connection = hfi_dial_take(one->dial);
        if (is_tracker(one))
            atomic_store(&one->client_id, one->run_id[0] != 0 ? hfi_dial_client_id(one->dial) : -1);
        one->unparsed = 0;
        one->received_ns = now_ns;
        one->expect_ns = HFI_NEVER;
        one->failed = one->served = one->refused = false;
        hfi_backoff_up(&one->backoff, now_ns);
    } else {
        one->dial_due_ns = hfi_backoff_next_ns(&one->backoff, now_ns);
        if (state == HFI_DIAL_FAILED) {
            hfi_peer_note_failure(one->all->peer, hfi_dial_error(one->dial));
            if (!one->failed)
                hfi_log(&deployment->log, HF_LOG_WARNING, "no subscriptions: %s; dialling again",
                        hfi_dial_error(one->dial)->message);
        }
        one->failed = true;
    }
    hfi_dial_end(&one->dial);
}

static void maintain_down(struct hfi_subscriber *one, int64_t now_ns, struct hfi_poll_set *set)
{
    struct hfi_deployment *deployment = one->all->deployment;
    if (!hfi_channels_any(one->all->channels, one->index)) {
        hfi_dial_end(&one->dial);
        return;
    }
    if (one->dial == NULL && now_ns >= one->dial_due_ns) {
        one->primaries = hfi_peer_primaries(one->all->peer);
        one->dial = hfi_dial_begin(one->all->peer, is_tracker(one) ? HFI_DIAL_TRACKER : HFI_DIAL_SUBSCRIBER, -1,
                                   hfi_after_ms(now_ns, deployment->settings.connect_ms));
    }
    if (one->dial == NULL) {
        /* No memory for a dial counts as a dial that failed. */
        if (now_ns >= one->dial_due_ns)
            one->dial_due_ns = hfi_backoff_next_ns(&one->backoff, now_ns);
        hfi_poll_set_again(set, one->dial_due_ns);
        return;
    }
    enum hfi_dial_state state = hfi_dial_step(one->dial, now_ns);
    if (state == HFI_DIAL_GOING) {
        hfi_poll_set_add(set, hfi_dial_polled(one->dial), NULL, NULL);
        hfi_poll_set_again(set, hfi_dial_again_ns(one->dial));
        return;
    }
    judge_dial(one, state, now_ns);
    if (one->connection.fd < 0)
        hfi_poll_set_again(set, one->dial_due_ns);
}

void hfi_subscribers_maintain(struct hfi_subscribers *subscribers, int64_t now_ns, struct hfi_poll_set *set)
{
    bool mine = take_role_or_be_called(subscribers);
    for (int i = 0; i < subscribers->count; i++) {
        struct hfi_subscriber *one = &subscribers->list[i];
        if (mine && one->connection.fd < 0)
            maintain_down(one, now_ns, set);
        if (mine && one->connection.fd >= 0)
            maintain_up(one, now_ns, set);
        else if (one->connection.fd >= 0) /* it stays in the set, as nobody else changes a connection; what comes is for the role */
            watch(one, 0, set);
    }
    if (mine)
        hfi_subscribers_give_role(subscribers);
}

void hfi_subscribers_give_up(struct hfi_subscribers *subscribers, const char *why)
{
    while (!hfi_subscribers_take_role(subscribers))
        (void)sched_yield(); /* for as long as one receive takes */
    for (int i = 0; i < subscribers->count; i++) {
        struct hfi_subscriber *one = &subscribers->list[i];
        hfi_dial_end(&one->dial);
        if (one->connection.fd >= 0)
            one->wrong = why; /* lost in the listener's next turn */
        else
            one->dial_due_ns = 0;
    }
    hfi_subscribers_give_role(subscribers);
}
