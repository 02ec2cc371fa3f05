/* SPDX-License-Identifier: MIT */
/* server_time.c - see server_time.h. */
#include "core/lock/server_time.h"
#include "core/context/call.h"
#include "core/lock/quarantine.h"
#include "base/perturb.h"
#include "core/protocol/script_error.h"
#include "core/protocol/scripts.h"
#include "core/protocol/wire.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>

#define NEAR_NS  (250 * HFI_MS) /* NEAR_NS + HFI_FLOOR_NS is less than the second of AHEAD_US (fence.c) */
#define OFF_MS   10 /* ends that memory has are off by the round trip of a read; and clocks count whole milliseconds */
#define NO_LIMIT_US INT64_C(9000000000000000) /* below 2^53: Lua compares it exactly */

void hfi_server_time_observe(hf_client *client, int lane, int64_t server_us, int64_t sent_ns, int64_t answered_ns)
{
    bool stepped = false;
    if (server_us <= 0)
        return;
    hfi_mutex_lock(&client->time_mutex);
    hfi_server_clock_observe(&client->server_clock, server_us, answered_ns);
    if (lane >= 0 && lane < client->sample_count)
        stepped = hfi_sample_is_stepped(&client->samples[lane], server_us, sent_ns, answered_ns);
    hfi_mutex_unlock(&client->time_mutex);
    if (stepped) {
        HFI_PERTURB("stepped-to-renew");
        hfi_log(&client->log, HF_LOG_WARNING, "the server's clock was stepped; renewing all leases at once");
        client->lock_ops->renew_all(client);
    }
}

static struct hfi_sample last_sample(hf_client *client, int lane)
{
    struct hfi_sample sample = {0};
    hfi_mutex_lock(&client->time_mutex);
    if (lane < client->sample_count)
        sample = client->samples[lane];
    hfi_mutex_unlock(&client->time_mutex);
    return sample;
}

static int64_t at_most(const struct hfi_server_clock *clock, int64_t now_ns)
{
    return clock->us == 0 ? NO_LIMIT_US : hfi_server_clock_at_most_us(clock, now_ns);
}

int64_t hfi_server_time_at_most(hf_client *client, int lane, int64_t now_ns)
{
    struct hfi_sample sample = last_sample(client, lane);
    return sample.dates ? hfi_server_clock_at_most_us(&(struct hfi_server_clock){sample.us, sample.sent_ns}, now_ns)
                        : NO_LIMIT_US;
}

int64_t hfi_server_time_not_after(hf_client *client, int lane, int64_t now_ns)
{
    struct hfi_sample sample = last_sample(client, lane);
    int64_t us = at_most(&(struct hfi_server_clock){sample.us, sample.sent_ns}, now_ns);
    if (us == NO_LIMIT_US) {
        hfi_mutex_lock(&client->time_mutex);
        us = at_most(&client->server_clock, now_ns);
        hfi_mutex_unlock(&client->time_mutex);
    }
    return us == NO_LIMIT_US ? us : us + client->command_ms * 1000;
}

bool hfi_server_time_is_known(hf_client *client, int lane, int64_t now_ns)
{
    struct hfi_sample sample = last_sample(client, lane);
    return sample.dates && sample.answered_ns - sample.sent_ns < NEAR_NS && now_ns - sample.sent_ns < HFI_FLOOR_NS + NEAR_NS;
}

void hfi_server_time_between(hf_client *client, int lane, int64_t first_ns, int64_t last_ns, int64_t *first_ms, int64_t *last_ms)
{
    struct hfi_sample sample = last_sample(client, lane);
    int64_t slack_ms = (sample.answered_ns - sample.sent_ns) / HFI_MS + OFF_MS;
    *first_ms = sample.us == 0 ? 0 : sample.us / 1000 + (first_ns - sample.answered_ns) / HFI_MS - slack_ms;
    *last_ms = sample.us == 0 ? 0 : sample.us / 1000 + (last_ns - sample.sent_ns) / HFI_MS + slack_ms;
}

int64_t hfi_server_time_at_least(hf_client *client, int64_t now_ns)
{
    hfi_mutex_lock(&client->time_mutex);
    int64_t us = hfi_server_clock_at_least_us(&client->server_clock, now_ns);
    hfi_mutex_unlock(&client->time_mutex);
    return us;
}

int64_t hfi_fence_seen(const hf_client *client)
{
    return atomic_load(&client->fence_seen);
}

bool hfi_fence_accept(hf_client *client, int64_t first, int64_t size, int64_t seen_when_asked, int64_t granted_us,
                      int64_t asked_ns)
{
    int64_t at_least_us = hfi_server_time_at_least(client, asked_ns);
    if (!hfi_fence_is_good(first, seen_when_asked, at_least_us, granted_us))
        return false;
    int64_t last = first + size - 1, seen = atomic_load(&client->fence_seen);
    HFI_PERTURB("fence-to-take");
    while (last > seen && !atomic_compare_exchange_weak(&client->fence_seen, &seen, last))
        ;
    return true;
}

/* asked_ns 0: the floor was refused, and the next native acquire sends another one in front. */
static void note_floor(hf_client *client, int lane, int64_t asked_ns)
{
    atomic_store(&client->floors_asked_ns[lane], asked_ns);
}

/* The lane's sample dates no grant until another is taken. It still shows whether a clock was stepped (P0). */
static void distrust_sample(hf_client *client, int lane)
{
    hfi_mutex_lock(&client->time_mutex);
    client->samples[lane].dates = false;
    hfi_mutex_unlock(&client->time_mutex);
}

static struct hfi_command *floor_command(hf_client *client, int64_t now_ns)
{
    return hfi_wire_floor(hfi_fence_seen(client), hfi_server_time_at_least(client, now_ns));
}

struct hfi_command *hfi_server_time_handshake_floor(void *self, const struct hfi_server *server)
{
    hf_client *client = self;
    int64_t now_ns = hfi_now(client->clock);
    if (client->quarantine_ms == 0 || server->run_id[0] == 0)
        return floor_command(client, now_ns);
    return hfi_wire_quarantine(hfi_fence_seen(client), hfi_server_time_at_least(client, now_ns), server->run_id);
}

hf_status hfi_server_time_handshake_floored(void *self, int lane, int64_t sent_ns, const struct redisReply *reply,
                                            hf_error *error)
{
    hf_client *client = self;
    note_floor(client, lane, reply->type == REDIS_REPLY_ERROR ? 0 : sent_ns);
    distrust_sample(client, lane); /* the sample is of the connection before, and perhaps of another server */
    if (reply->type == REDIS_REPLY_ERROR) {
        const struct hfi_meaning *meaning = hfi_reply_meaning(reply->str, reply->len);
        bool passes = meaning->status == HF_UNAVAILABLE && !hfi_reply_is_of_cluster(reply->str, reply->len);
        if (passes && client->quarantine_ms == 0) /* else it has to be known since when the server is there */
            return HF_OK; /* a failed save, too few replicas...: reads and much else still pass */
        if (hfi_reply_is_withheld(reply) && meaning->status != HF_DENIED)
            return hfi_fail(error, HF_PROTOCOL, "choose a service with EVAL and EVALSHA: no lock can be held safely without",
                            "%s: this service has no scripts", hfi_pool_server_name(client->pool));
        (void)hfi_reply_fail(reply, "cannot keep the fence counter " HFI_FENCE_KEY,
                             hfi_pool_server_name(client->pool), error);
        hfi_script_error_annotate(reply->str, hfi_script_fence_floor, error);
        return meaning->status;
    }
    struct hfi_script_reply said = hfi_wire_script_reply(reply);
    hfi_server_time_observe(client, lane, said.now_us, sent_ns, hfi_now(client->clock));
    if (client->quarantine_ms != 0 && said.count < 3)
        return hfi_fail(error, HF_DENIED, "give the user +info", "quarantine_ms needs the server's run id, which it does not tell");
    hfi_quarantine_note(client, lane, hfi_wire_number(reply, 2, said.now_us), said.now_us);
    return HF_OK;
}

static void floored(struct hfi_command *command)
{
    hf_client *client = command->self;
    int lane = *hfi_command_context(command, int);
    if (command->outcome == HFI_ANSWERED && command->reply->type == REDIS_REPLY_ERROR) {
        note_floor(client, lane, 0);
    } else if (command->outcome == HFI_ANSWERED) {
        struct hfi_script_reply said = hfi_wire_script_reply(command->reply);
        hfi_server_time_observe(client, lane, said.now_us, command->stamp_ns, command->answered_ns);
    }
    hfi_client_unref(client);
}

static void list_floor(hf_client *client, struct hfi_lane *lane, int64_t now_ns)
{
    struct hfi_command *command = floor_command(client, now_ns);
    if (command == NULL) {
        note_floor(client, hfi_lane_index(lane), 0);
        return;
    }
    hfi_client_ref(client);
    *hfi_command_context(command, int) = hfi_lane_index(lane);
    command->optional = true;
    hfi_call_list(client, lane, command, floored, client, now_ns);
}

void hfi_server_time_floor(hf_client *client, struct hfi_lane *lane, int64_t every_ns, int64_t now_ns)
{
    _Atomic(int64_t) *last = &client->floors_asked_ns[hfi_lane_index(lane)];
    int64_t asked = atomic_load_explicit(last, memory_order_relaxed);
    if (now_ns - asked < every_ns || !atomic_compare_exchange_strong(last, &asked, now_ns))
        return;
    HFI_PERTURB("floor-to-list");
    list_floor(client, lane, now_ns);
}
