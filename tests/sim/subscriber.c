/* SPDX-License-Identifier: MIT */
/* subscriber.c - the subscriptions of a virtual pool: one connection, which is dialled again when it is lost and
 * pinged while it is silent. */
#include "tests/sim/pool_inside.h"
#include "tests/sim/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PING_NS (1000 * HFI_MS)
#define LATE_NS (2 * HFI_MS) /* until its dial: an acquire may be executed before SUBSCRIBE is */

static void dial(void *what, int64_t number);

static void ask(struct hfi_pool *pool, struct sim_channel *channel, const char *word)
{
    char bytes[700];
    int size = snprintf(bytes, sizeof bytes, "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(word), word,
                        channel->size, channel->name);
    channel->asked = true;
    sim_wire_up(pool->subscriber.wire, sim_packet_new(SIM_BYTES, bytes, (size_t)size));
}

static struct sim_channel **find(struct hfi_pool *pool, const char *name, size_t size)
{
    struct sim_channel **at = &pool->subscriber.channels;
    while (*at != NULL && ((*at)->size != size || memcmp((*at)->name, name, size) != 0))
        at = &(*at)->next;
    return at;
}

static void lose(struct hfi_pool *pool)
{
    struct sim_subscriber *subscriber = &pool->subscriber;
    sim_say("the subscriber is lost");
    if (subscriber->wire != NULL)
        sim_wire_close(subscriber->wire);
    subscriber->wire = NULL;
    for (struct sim_channel *channel = subscriber->channels; channel != NULL; channel = channel->next)
        channel->asked = channel->live = false;
    int64_t due = hfi_backoff_lost_ns(&subscriber->backoff, &pool->losses,
                                      subscriber->served ? HFI_LOST_SERVED : HFI_LOST_UNUSED, hfi_now(&hfi_boottime));
    sim_at(sim_when(sim.self, due), sim.self, dial, pool, ++subscriber->number);
}

/* Its answer comes behind what the server has told before, and says when it was asked. */
static void send_ping(struct hfi_pool *pool)
{
    char bytes[80], stamp[24];
    size_t size = sim_digits(stamp, hfi_now(&hfi_boottime));
    pool->subscriber.prove = false;
    (void)snprintf(bytes, sizeof bytes, "*2\r\n$4\r\nPING\r\n$%zu\r\n%s\r\n", size, stamp);
    sim_wire_up(pool->subscriber.wire, sim_packet_new(SIM_BYTES, bytes, strlen(bytes)));
}

static uint64_t run_of(const struct sim_wire *wire)
{
    struct hfi_server server;
    (void)snprintf(server.run_id, sizeof server.run_id, "%040d", wire->epoch);
    return hfi_server_run(server.run_id);
}

static void answered(struct hfi_pool *pool, int64_t stamp_ns)
{
    const struct sim_wire *wire = pool->subscriber.wire;
    const struct sim_channel *channel = *find(pool, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS));
    if (channel != NULL && channel->live)
        pool->ops.proved(pool->self, wire->id, run_of(wire), stamp_ns);
}

/* The answer to SUBSCRIBE is the channel's name here; a message has its channel before a NUL byte. */
static void received(void *client, struct sim_packet *packet)
{
    struct hfi_pool *pool = client;
    size_t channel_size = strlen(packet->bytes);
    struct sim_channel *channel = *find(pool, packet->bytes, channel_size);
    pool->subscriber.hearing = true;
    pool->subscriber.served = true;
    if (packet->kind == SIM_BYTES && strncmp(packet->bytes, "PONG ", 5) == 0) {
        answered(pool, strtoll(packet->bytes + 5, NULL, 10));
    } else if (packet->kind == SIM_NIL_MESSAGE) {
        sim_say("hears that all keys may have changed");
        if (channel != NULL && channel->live)
            pool->ops.on_message(pool->self, packet->bytes, channel_size, NULL, 0);
    } else if (packet->kind == SIM_MESSAGE) {
        sim_say("hears %s", packet->bytes + channel_size + 1);
        if (channel != NULL && channel->live)
            pool->ops.on_message(pool->self, packet->bytes, channel_size, packet->bytes + channel_size + 1,
                            packet->size - channel_size - 1);
    } else if (channel != NULL && channel->asked && !channel->live) {
        channel->live = true;
        sim_say("listens to %s", channel->name);
        pool->ops.subscribed(pool->self, packet->bytes, channel_size);
    }
    pool->subscriber.hearing = false;
    if (pool->closing)
        hfi_park_wake(&pool->quiet);
}

static void broken(void *client)
{
    struct hfi_pool *pool = client;
    if (!pool->closing)
        lose(pool);
}

/* What a ping would find out, without its traffic. */
static void ping(void *what, int64_t number)
{
    struct hfi_pool *pool = what;
    struct sim_wire *wire = pool->subscriber.wire;
    if (pool->subscriber.number != number || wire == NULL || pool->closing)
        return;
    int64_t patience = pool->settings.command_ms * HFI_MS;
    bool silent = wire->down_stalled_until > sim.now + patience ||
                  wire->up_stalled_until > sim.now + patience || !wire->server_open ||
                  wire->server->frozen_until > sim.now + patience;
    if (silent)
        lose(pool);
    else
        sim_at(sim.now + PING_NS + sim_between(0, patience), sim.self, ping, pool, number);
}

static void connected(void *what, int64_t number)
{
    struct hfi_pool *pool = what;
    struct sim_subscriber *subscriber = &pool->subscriber;
    if (subscriber->number != number || pool->closing)
        return;
    if (subscriber->hearing) { /* of the connection before it, and has stopped */
        sim_at(sim.now + HFI_MS / 10, sim.self, connected, pool, number);
        return;
    }
    struct sim_server *there = NULL;
    bool is_found = sim_pool_primary(pool, &there) == HFI_FOUND;
    if (!is_found || !there->up || !there->takes_subscribers || there->frozen_until > sim.now ||
        sim.self->isolated_until > sim.now) {
        int64_t due = hfi_backoff_next_ns(&subscriber->backoff, hfi_now(&hfi_boottime));
        sim_at(sim_when(sim.self, due), sim.self, dial, pool, ++subscriber->number);
        return;
    }
    hfi_backoff_up(&subscriber->backoff, hfi_now(&hfi_boottime));
    subscriber->served = false;
    subscriber->wire = sim_wire_new(sim.self, there, pool, received, broken);
    for (struct sim_channel *channel = subscriber->channels; channel != NULL; channel = channel->next)
        ask(pool, channel, "SUBSCRIBE");
    if (subscriber->prove)
        send_ping(pool);
    sim_at(sim.now + PING_NS, sim.self, ping, pool, number);
}

static void dial(void *what, int64_t number)
{
    struct hfi_pool *pool = what;
    if (pool->subscriber.number == number && !pool->closing)
        sim_at(sim.now + 2 * (sim_delay() + sim_delay()) + sim_between(0, LATE_NS), sim.self, connected, pool, number);
}

void sim_subscriber_begin(struct hfi_pool *pool)
{
    hfi_backoff_init(&pool->subscriber.backoff, sim_roll());
}

void sim_subscriber_gives_up(struct hfi_pool *pool)
{
    struct sim_subscriber *subscriber = &pool->subscriber;
    if (subscriber->number == 0)
        return;
    if (subscriber->wire != NULL)
        lose(pool);
    sim_at(sim.now, sim.self, dial, pool, ++subscriber->number); /* not after a pause: that one is another */
}

void sim_subscriber_end(struct hfi_pool *pool)
{
    pool->subscriber.number++;
    if (pool->subscriber.wire != NULL)
        sim_wire_close(pool->subscriber.wire);
    pool->subscriber.wire = NULL;
}

bool hfi_pool_subscribe(struct hfi_pool *pool, const char *name, size_t size)
{
    struct sim_channel **at = find(pool, name, size), *channel = *at;
    if (channel != NULL) {
        channel->uses++;
        return true;
    }
    if (pool->subscriber.number == 0) /* nobody dials before there is something to hear */
        sim_at(sim.now, sim.self, dial, pool, ++pool->subscriber.number);
    channel = calloc(1, sizeof *channel + size + 1);
    if (channel == NULL)
        abort();
    channel->uses = 1;
    channel->size = size;
    memcpy(channel->name, name, size);
    *at = channel;
    if (pool->subscriber.wire != NULL)
        ask(pool, channel, "SUBSCRIBE");
    return true;
}

void hfi_pool_unsubscribe(struct hfi_pool *pool, const char *name, size_t size)
{
    struct sim_channel **at = find(pool, name, size), *channel = *at;
    if (channel == NULL || --channel->uses > 0)
        return;
    if (pool->subscriber.wire != NULL)
        ask(pool, channel, "UNSUBSCRIBE");
    *at = channel->next;
    free(channel);
}

void hfi_pool_prove(struct hfi_pool *pool)
{
    pool->subscriber.prove = true;
    if (pool->subscriber.wire != NULL)
        send_ping(pool);
}

int64_t hfi_pool_tracker_id(const struct hfi_pool *pool)
{
    const struct sim_wire *wire = pool->subscriber.wire;
    return wire != NULL ? wire->id : 0;
}
