/* SPDX-License-Identifier: MIT */
/* subscriber.c - any bytes to the tracker, the subscriber that is told of changed keys: messages, lists of keys, nil for all of
 * them, and PONG, which proves what it has heard. */
#include "tests/fuzz/fuzz.h"

#include "pool/channels.h"
#include "pool/parser.h"
#include "pool/poll_set.h"
#include "pool/subscribe.h"
#include "pool/subscribe_private.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PINGS 3
#define STAMP 1000

struct subject {
    const uint8_t *data;
    size_t size, piece;
    long heard, subscribed;
    int64_t last_ns; /* of what was proved */
    unsigned bytes;
};

static struct subject *subject; /* the transport has no place for it */

static ssize_t send_nothing(struct hfi_connection *connection, const void *bytes, size_t size)
{
    (void)connection;
    (void)bytes;
    return (ssize_t)size;
}

static ssize_t receive(struct hfi_connection *connection, void *bytes, size_t size)
{
    size_t some = subject->size < subject->piece ? subject->size : subject->piece;
    (void)connection;
    if (some == 0) {
        errno = EAGAIN;
        return -1;
    }
    HFT_MUST(some <= size);
    memcpy(bytes, subject->data, some);
    subject->data += some;
    subject->size -= some;
    return (ssize_t)some;
}

static void close_nothing(struct hfi_connection *connection)
{
    *connection = HFI_NO_CONNECTION;
}

static const struct hfi_transport transport = {.send = send_nothing, .recv = receive, .close = close_nothing};

static void on_message(void *self, const char *channel, size_t channel_size, const char *message, size_t message_size)
{
    struct subject *one = self;
    for (size_t i = 0; i < channel_size; i++)
        one->bytes += (unsigned char)channel[i];
    HFT_MUST(message != NULL || message_size == 0);
    for (size_t i = 0; i < message_size; i++)
        one->bytes += (unsigned char)message[i];
    one->heard++;
}

static void subscribed(void *self, const char *channel, size_t channel_size)
{
    struct subject *one = self;
    HFT_MUST(channel_size == strlen(HFI_INVALIDATIONS) && memcmp(channel, HFI_INVALIDATIONS, channel_size) == 0);
    one->subscribed++;
}

/* By one of our PINGs, once it listens. */
static void proved(void *self, int64_t tracker, uint64_t run, int64_t stamp_ns)
{
    struct subject *one = self;
    HFT_MUST(tracker == 7 && run == hfi_server_run("run") && one->subscribed == 1);
    HFT_MUST(stamp_ns >= STAMP && stamp_ns < STAMP + PINGS && stamp_ns > one->last_ns);
    one->last_ns = stamp_ns;
}

/* The first byte: how many come at once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct subject here = {.data = data + 1, .size = size - 1, .piece = size > 0 ? data[0] % 64 + 1u : 1};
    struct hfi_deployment deployment = {.self = &here, .clock = &hfi_boottime, .settings.command_ms = 1000,
                                        .ops = {.on_message = on_message, .subscribed = subscribed, .proved = proved}};
    char nowhere[] = "nowhere";
    const struct hfi_endpoint endpoint = {.host = nowhere, .port = 1};
    struct hfi_peer peer = {.deployment = NULL};
    struct hfi_poll_set set = {.epoll_fd = -1};
    bool changed;
    if (size < 1)
        return 0;
    subject = &here;
    hfi_peer_init(&peer, &deployment, &endpoint, NULL);
    struct hfi_subscribers *all = hfi_subscribers_new(&peer, NULL, 1);
    HFT_MUST(all != NULL && hfi_poll_set_init(&set, 8));
    HFT_MUST(hfi_channels_want(all->channels, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS), &changed));
    struct hfi_subscriber *tracker = &all->list[all->count - 1];
    tracker->connection = (struct hfi_connection){&transport, eventfd(0, EFD_CLOEXEC), 1, NULL};
    int fd = tracker->connection.fd;
    tracker->parser = hfi_parser_create(1024 * 1024);
    HFT_MUST(fd >= 0 && tracker->parser != NULL);
    atomic_store(&tracker->client_id, 7);
    memcpy(tracker->run_id, "run", 4);
    for (int i = 0; i < PINGS; i++) {
        atomic_store(&all->prove, true);
        hfi_poll_set_begin(&set, STAMP + i);
        hfi_subscribers_maintain(all, STAMP + i, &set);
        hfi_poll_set_end(&set);
    }
    HFT_MUST(hfi_subscribers_take_role(all));
    while (here.size > 0 && hfi_subscriber_receive(tracker, STAMP + PINGS) == NULL)
        continue;
    hfi_subscribers_give_role(all);
    hfi_subscribers_free(all);
    hfi_poll_set_done(&set);
    hfi_peer_done(&peer);
    (void)close(fd);
    return 0;
}
