/* SPDX-License-Identifier: MIT */
/* call.c - see call.h. */
#include "core/context/call.h"
#include "base/mutex.h"
#include "base/perturb.h"
#include "core/protocol/script_error.h"
#include "core/protocol/wire.h"
#include "core/context/wait.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

struct call { /* on the caller's stack; with a cancel on the heap: freed by hfi_call, or by called() if abandoned */
    struct hfi_mutex mutex;
    struct hfi_park park;
    bool done, abandoned;
    struct hfi_outcome_of outcome;
};

static void end(struct call *call)
{
    if (call->outcome.reply != NULL)
        freeReplyObject(call->outcome.reply);
    hfi_mutex_destroy(&call->mutex);
}

static void called(struct hfi_command *command)
{
    struct call *call = command->self;
    hfi_mutex_lock(&call->mutex);
    hfi_call_note_outcome(&call->outcome, command);
    call->done = true;
    bool abandoned = call->abandoned;
    hfi_park_wake(&call->park);
    hfi_mutex_unlock(&call->mutex);
    if (!abandoned)
        return;
    end(call);
    free(call);
}

/* False: cancelled: called() frees the call when the command's outcome is known. */
static bool wait_for(hf_client *client, struct call *call, struct hfi_lane *lane, hf_cancel *cancel)
{
    struct hfi_wait wait;
    hfi_wait_begin(&wait, client, cancel, &call->park, HFI_NEVER); /* the command's until_ns ends it */
    wait.is_hurried = true;
    hfi_mutex_lock(&call->mutex);
    bool done = hfi_wait_for(&wait, &call->done, &call->mutex, lane) == HF_OK;
    hfi_mutex_unlock(&call->mutex);
    hfi_wait_end(&wait); /* before the park may be freed */
    if (done)
        return true;
    hfi_mutex_lock(&call->mutex);
    done = call->done;
    call->abandoned = !done;
    hfi_mutex_unlock(&call->mutex);
    return done;
}

void hfi_call_list(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hfi_command_done *done,
                   void *self, int64_t stamp_ns)
{
    command->done = done;
    command->self = self;
    command->stamp_ns = stamp_ns;
    command->until_ns = stamp_ns + client->command_ms * HFI_MS;
    hfi_lane_list(lane, command);
    hfi_command_unref(command);
}

static void published(struct hfi_command *command)
{
    hfi_client_unref(command->self);
}

bool hfi_call_publish_for(hf_client *client, struct hfi_lane *lane, const char *channel, const char *text, hfi_command_done *done,
                          void *self, int64_t now)
{
    struct hfi_command *command = hfi_wire_words("PUBLISH", channel, text, NULL);
    if (command == NULL)
        return false;
    command->awaited = HFI_AWAITED_BY_NOBODY;
    command->optional = true;
    hfi_call_list(client, lane, command, done, self, now);
    return true;
}

void hfi_call_publish(hf_client *client, struct hfi_lane *lane, const char *channel, const char *text, int64_t now)
{
    hfi_client_ref(client);
    if (!hfi_call_publish_for(client, lane, channel, text, published, client, now))
        hfi_client_unref(client);
}

static void begin(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, struct call *call)
{
    *call = (struct call){.done = false};
    hfi_mutex_init(&call->mutex, HFI_RANK_OUTER);
    hfi_park_init(&call->park);
    int64_t now = hfi_now(client->clock);
    HFI_PERTURB("call-to-list");
    hfi_call_list(client, lane, command, called, call, now);
    hfi_lane_flush_to_wait(lane);
}

void hfi_call_note_outcome(struct hfi_outcome_of *outcome, struct hfi_command *command)
{
    *outcome = (struct hfi_outcome_of){command->outcome, command->too_long, command->connection, command->reply};
    command->reply = NULL;
}

hf_status hfi_call_explain(hf_client *client, struct hfi_outcome_of *outcome, struct redisReply **reply, hf_error *error)
{
    if (outcome->what == HFI_UNSENT && atomic_load(&client->closing))
        return hfi_fail(error, HF_CLOSED, "", "the client was closed before this could be sent");
    if (outcome->what == HFI_UNSENT)
        return hfi_pool_why_down(client->pool, error);
    if (outcome->what == HFI_UNANSWERED && outcome->too_long) {
        hfi_fail(error, HF_LIMIT, "raise max_value_bytes",
                 "the reply is longer than max_value_bytes (%zu), or nested too deeply", client->max_value_bytes);
        hfi_fail_server(error, hfi_pool_server_name(client->pool));
        return HF_LIMIT;
    }
    if (outcome->what == HFI_ANSWERED) {
        *reply = outcome->reply;
        outcome->reply = NULL;
        return HF_OK;
    }
    hfi_fail(error, HF_UNKNOWN, "is the server overloaded, stopped, or cut off?",
             "the server did not answer within %lld ms", (long long)client->command_ms);
    hfi_fail_server(error, hfi_pool_server_name(client->pool));
    hfi_fail_retry(error, 1000);
    return HF_UNKNOWN;
}

hf_status hfi_call(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                   struct redisReply **reply, hf_error *error)
{
    uint32_t connection;
    return hfi_call_on(client, lane, command, cancel, reply, &connection, error);
}

hf_status hfi_call_on(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                      struct redisReply **reply, uint32_t *connection, hf_error *error)
{
    struct call here, *call = cancel == NULL ? &here : malloc(sizeof *call);
    bool closing = atomic_load(&client->closing), begun = command != NULL && call != NULL && !closing;
    *reply = NULL;
    *connection = 0;
    if (begun)
        begin(client, lane, command, call);
    else
        hfi_command_unref(command);
    if (!begun && call != &here)
        free(call);
    if (closing)
        return hfi_fail(error, HF_CLOSED, "", "the client is closing");
    if (!begun)
        return hfi_fail(error, HF_NOMEM, "", "no memory for a command");
    if (!wait_for(client, call, lane, cancel))
        return hfi_fail(error, HF_CANCELED, "", "waiting for the server was canceled");
    *connection = call->outcome.connection;
    hf_status status = hfi_call_explain(client, &call->outcome, reply, error);
    end(call);
    if (call != &here)
        free(call);
    return status;
}

hf_status hfi_call_done(hf_client *client, struct hfi_lane *lane, struct hfi_command *command, hf_cancel *cancel,
                        const char *did_what, struct redisReply **reply, hf_error *error)
{
    const struct hfi_script *script = command != NULL ? command->script : NULL;
    hf_status status = hfi_call(client, lane, command, cancel, reply, error);
    if (status != HF_OK || (*reply)->type != REDIS_REPLY_ERROR)
        return status;
    status = hfi_reply_fail(*reply, did_what, hfi_pool_server_name(client->pool), error);
    if (script != NULL)
        hfi_script_error_annotate((*reply)->str, script, error);
    freeReplyObject(*reply);
    *reply = NULL;
    return status;
}
