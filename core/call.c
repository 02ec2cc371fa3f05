/* SPDX-License-Identifier: MIT */
/* call.c - see call.h. */
#include "core/call.h"
#include "core/blame.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>

struct call { /* on the stack of the thread that waits */
    pthread_mutex_t mutex;
    struct hfi_park park;
    bool done;
    enum hfi_outcome outcome;
    bool too_long;
    struct redisReply *reply;
};

static void called(struct hfi_command *command)
{
    struct call *call = command->self;
    (void)pthread_mutex_lock(&call->mutex);
    call->outcome = command->outcome;
    call->too_long = command->too_long;
    call->reply = command->reply;
    command->reply = NULL;
    call->done = true;
    hfi_park_wake(&call->park);
    (void)pthread_mutex_unlock(&call->mutex);
}

static void wait_for(struct call *call, struct hfi_lane *lane)
{
    (void)pthread_mutex_lock(&call->mutex);
    while (!call->done) {
        uint32_t ticket = hfi_park_ticket(&call->park);
        (void)pthread_mutex_unlock(&call->mutex);
        (void)hfi_lane_wait(lane, &call->park, ticket, HFI_NEVER); /* the command's until_ns ends it */
        (void)pthread_mutex_lock(&call->mutex);
    }
    (void)pthread_mutex_unlock(&call->mutex);
    (void)pthread_mutex_destroy(&call->mutex);
}

hf_status hfi_call(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, struct redisReply **reply,
                   hf_error *error)
{
    struct call call = {.done = false};
    *reply = NULL;
    if (command == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory for a command");
    (void)pthread_mutex_init(&call.mutex, NULL);
    hfi_park_init(&call.park);
    command->done = called;
    command->self = &call;
    command->stamp_ns = hfi_now(client->clock);
    command->until_ns = command->stamp_ns + client->command_ms * HFI_MS;
    hfi_lane_list(lane, command);
    hfi_lane_flush(lane);
    wait_for(&call, lane);
    hfi_command_unref(command);
    if (call.outcome == HFI_UNSENT)
        return hfi_pool_why_down(client->pool, error);
    if (call.outcome == HFI_UNANSWERED && call.too_long) {
        hfi_fail(error, HF_LIMIT, "raise max_value_bytes",
                 "the reply is longer than max_value_bytes (%zu), or nested too deeply", client->max_value_bytes);
        hfi_fail_server(error, hfi_pool_server_name(client->pool));
        return HF_LIMIT;
    }
    if (call.outcome == HFI_UNANSWERED) {
        hfi_fail(error, HF_UNKNOWN, "is the server overloaded, stopped, or cut off?",
                 "the server did not answer within %lld ms", (long long)client->command_ms);
        hfi_fail_server(error, hfi_pool_server_name(client->pool));
        hfi_fail_retry(error, 1000);
        return HF_UNKNOWN;
    }
    *reply = call.reply;
    return HF_OK;
}

hf_status hfi_call_done(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, const char *did_what,
                        struct redisReply **reply, hf_error *error)
{
    const struct hfi_script *script = command != NULL ? command->script : NULL;
    hf_status status = hfi_call(client, lane, command, reply, error);
    if (status != HF_OK || (*reply)->type != REDIS_REPLY_ERROR)
        return status;
    status = hfi_reply_fail(*reply, did_what, hfi_pool_server_name(client->pool), error);
    if (script != NULL)
        hfi_blame((*reply)->str, script, error);
    freeReplyObject(*reply);
    *reply = NULL;
    return status;
}
