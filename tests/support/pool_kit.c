/* SPDX-License-Identifier: MIT */
/* pool_kit.c - see pool_kit.h. */
#include "pool/channels.h"
#include "pool/node.h"
#include "pool/pool_private.h"
#include "pool/subscribe_private.h"
#include "tests/support/pool_kit.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t hft_now(void)
{
    return hfi_now(&hfi_boottime);
}

int64_t hft_in_ms(int64_t ms)
{
    return hft_now() + ms * HFI_MS;
}

void hft_breathe(int64_t until_ns, const char *what)
{
    if (hft_now() > until_ns) {
        (void)fprintf(stderr, "waited 20 s in vain for: %s\n", what);
        abort();
    }
    (void)poll(NULL, 0, 1);
}

/* ---- the owner ---- */

static int64_t ahead(void *self)
{
    struct hft_owner *owner = self;
    return hft_now() + atomic_load(&owner->ahead_ns);
}

static struct hfi_command *handshake_floor(void *self, const struct hfi_server *server)
{
    (void)server;
    const char *const words[] = {"TIME"};
    (void)self;
    return hfi_command_new(1, words, NULL);
}

static hf_status handshake_floored(void *self, int lane, int64_t sent_ns, const struct redisReply *reply, hf_error *error)
{
    struct hft_owner *owner = self;
    (void)lane;
    (void)atomic_fetch_add(&owner->greetings, 1);
    if (atomic_load(&owner->refuse_greeting) || reply->type != REDIS_REPLY_ARRAY || sent_ns > ahead(owner))
        return hfi_fail(error, HF_UNAVAILABLE, "", "the owner does not like this server");
    return HF_OK;
}

static void lane_up(void *self, int lane)
{
    struct hft_owner *owner = self;
    (void)lane;
    (void)atomic_fetch_add(&owner->ups, 1);
}

static void keep(char *to, size_t room, const char *bytes, size_t size)
{
    (void)snprintf(to, room, "%.*s", (int)size, bytes);
}

static void heard(void *self, const char *channel, size_t channel_size, const char *message,
                  size_t message_size)
{
    struct hft_owner *owner = self;
    (void)pthread_mutex_lock(&owner->mutex);
    owner->heard++;
    keep(owner->channel, sizeof owner->channel, channel, channel_size);
    keep(owner->message, sizeof owner->message, message != NULL ? message : "", message_size);
    if (owner->hears == NULL)
        hfi_park_wake(&owner->changed);
    (void)pthread_mutex_unlock(&owner->mutex);
    if (owner->hears != NULL)
        owner->hears(owner);
}

static void subscribed(void *self, const char *channel, size_t channel_size)
{
    struct hft_owner *owner = self;
    (void)channel;
    (void)channel_size;
    (void)pthread_mutex_lock(&owner->mutex);
    owner->subscribed++;
    hfi_park_wake(&owner->changed);
    (void)pthread_mutex_unlock(&owner->mutex);
}

static void kicked(void *self)
{
    struct hft_owner *owner = self;
    (void)atomic_fetch_add(&owner->kicks, 1);
    while (atomic_load(&owner->keeps_listener))
        (void)poll(NULL, 0, 1);
}

struct errand {
    void (*run)(void *arg);
    void *arg;
};

static void *run_errand(void *arg)
{
    struct errand errand = *(struct errand *)arg;
    free(arg);
    errand.run(errand.arg);
    return NULL;
}

static bool in_background(void *self, void (*run)(void *arg), void *arg)
{
    pthread_t thread;
    struct errand *errand = malloc(sizeof *errand);
    (void)self;
    if (errand == NULL)
        return false;
    *errand = (struct errand){run, arg};
    if (pthread_create(&thread, NULL, run_errand, errand) != 0) {
        free(errand);
        return false;
    }
    (void)pthread_detach(thread);
    return true;
}

void hft_pool_init(struct hft_pool *kit, const struct hft_server *server)
{
    *kit = (struct hft_pool){0};
    kit->owner.clock = (struct hfi_clock){ahead, &kit->owner};
    (void)pthread_mutex_init(&kit->owner.mutex, NULL);
    hfi_park_init(&kit->owner.changed);
    kit->settings = (struct hfi_pool_settings){
        .endpoint = {.scheme = HFI_UNIX,
                  .path = server != NULL ? (char *)(uintptr_t)hft_server_socket(server) : NULL},
        .client_name = "pool-kit",
        .connect_ms = 2000,
        .command_ms = 1000,
        .lanes = 1,
        .subscribers = 1,
        .max_connections = 4,
        .idle_ms = 600000,
        .lifetime_ms = 3600000,
        .max_value_bytes = 1024 * 1024,
    };
}

hf_status hft_pool_open(struct hft_pool *kit, const struct hfi_script *const *scripts, hf_error *error)
{
    struct hfi_pool_ops ops = {.scripts = scripts,
                               .handshake_floor = handshake_floor,
                               .handshake_floored = handshake_floored,
                               .lane_up = lane_up,
                               .on_message = heard,
                               .subscribed = subscribed,
                               .kicked = kicked,
                               .in_background = in_background};
    return hfi_pool_open(&kit->settings, &ops, &kit->owner, &kit->owner.clock, NULL, false, &kit->pool,
                         error);
}

void hft_pool_close(struct hft_pool *kit)
{
    (void)hfi_pool_close(kit->pool, hft_in_ms(2000));
    hfi_pool_free(kit->pool);
    (void)pthread_mutex_destroy(&kit->owner.mutex);
}

bool hft_is_subscribed(const struct hfi_pool *pool, const char *channel, size_t size)
{
    return hfi_channels_is_live(pool->node->subscribers->channels, channel, size);
}

/* ---- calls ---- */

struct hfi_command *hft_command(const char *words, int64_t until_ns)
{
    char copy[512], *rest = copy, *word;
    const char *argv[16];
    int argc = 0;
    (void)snprintf(copy, sizeof copy, "%s", words);
    while (argc < 16 && (word = strsep(&rest, " ")) != NULL)
        argv[argc++] = word;
    struct hfi_command *command = hfi_command_new(argc, argv, NULL);
    if (command == NULL)
        abort();
    command->until_ns = until_ns;
    return command;
}

static void call_done(struct hfi_command *command)
{
    struct hft_call *call = command->self;
    (void)pthread_mutex_lock(&call->mutex);
    call->dones++;
    call->outcome = command->outcome;
    call->reply = command->reply;
    command->reply = NULL;
    hfi_park_wake(&call->park);
    (void)pthread_mutex_unlock(&call->mutex);
}

void hft_list(struct hfi_lane *lane, struct hft_call *call, struct hfi_command *command)
{
    *call = (struct hft_call){0};
    (void)pthread_mutex_init(&call->mutex, NULL);
    hfi_park_init(&call->park);
    command->done = call_done;
    command->self = call;
    hfi_lane_list(lane, command);
    hfi_command_unref(command);
}

void hft_post(struct hfi_lane *lane, struct hft_call *call, struct hfi_command *command)
{
    hft_list(lane, call, command);
    hfi_lane_flush(lane);
}

bool hft_is_over(struct hft_call *call)
{
    (void)pthread_mutex_lock(&call->mutex);
    bool over = call->dones > 0;
    (void)pthread_mutex_unlock(&call->mutex);
    return over;
}

void hft_wait(struct hfi_lane *lane, struct hft_call *call)
{
    for (;;) {
        uint32_t ticket = hfi_park_epoch(&call->park);
        if (hft_is_over(call))
            return;
        (void)hfi_lane_wait(lane, &call->park, ticket, HFI_NEVER);
    }
}

void hft_sleep(struct hft_call *call)
{
    for (;;) {
        uint32_t ticket = hfi_park_epoch(&call->park);
        if (hft_is_over(call))
            return;
        (void)hfi_park_wait(&call->park, ticket, HFI_NEVER);
    }
}

void hft_ask(struct hfi_lane *lane, struct hft_call *call, const char *words)
{
    hft_post(lane, call, hft_command(words, hft_in_ms(5000)));
    hft_wait(lane, call);
}

void hft_call_done(struct hft_call *call)
{
    if (call->reply != NULL)
        freeReplyObject(call->reply);
    (void)pthread_mutex_destroy(&call->mutex);
}
