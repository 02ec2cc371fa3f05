/* SPDX-License-Identifier: MIT */
/* server_time.c - see server_time.h. */
#include "core/server_time.h"
#include "base/perturb.h"
#include "core/blame.h"
#include "core/scripts.h"
#include "core/table.h"
#include "core/wire.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>

#define FLOOR_NS (1000 * HFI_MS)
#define NO_LIMIT_US INT64_C(9000000000000000) /* below 2^53: Lua compares it exactly */

void hfi_server_time_saw(hf_client *client, int lane, int64_t server_us, int64_t sent_ns, int64_t answered_ns)
{
    bool stepped = false;
    if (server_us <= 0)
        return;
    (void)pthread_mutex_lock(&client->time_mutex);
    hfi_server_clock_saw(&client->server_clock, server_us, answered_ns);
    if (lane >= 0 && lane < client->sample_count)
        stepped = hfi_sample_is_stepped(&client->samples[lane], server_us, sent_ns, answered_ns);
    (void)pthread_mutex_unlock(&client->time_mutex);
    if (stepped) {
        HFI_PERTURB("stepped-to-renew");
        hfi_log(&client->log, HF_LOG_WARNING, "the server's clock was stepped; renewing all leases at once");
        hfi_table_renew_all(client);
    }
}

int64_t hfi_server_time_not_after(hf_client *client, int lane, int64_t now_ns)
{
    struct hfi_server_clock clock = {0};
    (void)pthread_mutex_lock(&client->time_mutex);
    if (lane < client->sample_count && client->samples[lane].us != 0)
        clock = (struct hfi_server_clock){client->samples[lane].us, client->samples[lane].sent_ns};
    else
        clock = client->server_clock;
    (void)pthread_mutex_unlock(&client->time_mutex);
    if (clock.us == 0)
        return NO_LIMIT_US;
    return hfi_server_clock_at_most_us(&clock, now_ns) + client->command_ms * 1000;
}

int64_t hfi_server_time_at_least(hf_client *client, int64_t now_ns)
{
    (void)pthread_mutex_lock(&client->time_mutex);
    int64_t us = hfi_server_clock_at_least_us(&client->server_clock, now_ns);
    (void)pthread_mutex_unlock(&client->time_mutex);
    return us;
}

int64_t hfi_fence_seen(const hf_client *client)
{
    return atomic_load(&client->fence_seen);
}

bool hfi_fence_take(hf_client *client, int64_t first, int64_t size, int64_t seen_when_asked)
{
    int64_t at_least_us = hfi_server_time_at_least(client, hfi_now(client->clock));
    if (!hfi_fence_is_good(first, seen_when_asked, at_least_us))
        return false;
    int64_t last = first + size - 1, seen = atomic_load(&client->fence_seen);
    HFI_PERTURB("fence-to-take");
    while (last > seen && !atomic_compare_exchange_weak(&client->fence_seen, &seen, last))
        ;
    return true;
}

struct hfi_command *hfi_server_time_greeting(void *self, int lane)
{
    hf_client *client = self;
    (void)lane;
    return hfi_wire_floor(hfi_fence_seen(client), hfi_server_time_at_least(client, hfi_now(client->clock)));
}

hf_status hfi_server_time_greeted(void *self, int lane, const struct hfi_server *server, int64_t sent_ns,
                                  const struct redisReply *reply, hf_error *error)
{
    hf_client *client = self;
    (void)server;
    if (reply->type == REDIS_REPLY_ERROR) {
        const struct hfi_meaning *meaning = hfi_reply_meaning(reply->str, reply->len);
        if (meaning->status == HF_UNAVAILABLE) /* a failed save, no replica...: reads and much else still pass */
            return HF_BUSY;
        (void)hfi_reply_fail(reply, "cannot keep the fence counter " HFI_FENCE_KEY,
                             hfi_pool_server_name(client->pool), error);
        hfi_blame(reply->str, &hfi_script_fence_floor, error);
        return meaning->status;
    }
    struct hfi_script_reply said = hfi_wire_script_reply(reply);
    hfi_server_time_saw(client, lane, said.now_us, sent_ns, hfi_now(client->clock));
    return HF_OK;
}

static void freshened(struct hfi_command *command)
{
    hf_client *client = command->self;
    if (command->outcome == HFI_ANSWERED) {
        struct hfi_script_reply said = hfi_wire_script_reply(command->reply);
        hfi_server_time_saw(client, (int)command->note[0], said.now_us, command->stamp_ns, command->answered_ns);
    }
    hfi_client_unref(client);
}

bool hfi_server_time_freshen(hf_client *client, struct hfi_lane *lane, int64_t now_ns)
{
    int64_t last = atomic_load_explicit(&client->floored_at, memory_order_relaxed);
    if (now_ns - last < FLOOR_NS || !atomic_compare_exchange_strong(&client->floored_at, &last, now_ns))
        return false;
    struct hfi_command *command = hfi_wire_floor(0, 0);
    if (command == NULL)
        return false;
    hfi_client_ref(client);
    command->done = freshened;
    command->self = client;
    command->note[0] = hfi_lane_index(lane);
    command->stamp_ns = now_ns;
    command->until_ns = now_ns + client->command_ms * HFI_MS;
    hfi_lane_list(lane, command);
    hfi_command_unref(command);
    return true;
}
