/* SPDX-License-Identifier: MIT */
/* calls.c - see calls.h. */
#include "core/context/calls.h"
#include "core/context/call.h"
#include "core/context/wait.h"
#include "base/mutex.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

struct one {
    struct hfi_calls *calls;
    struct hfi_lane *lane;
    bool listed, done;
    struct hfi_outcome_of outcome;
};

struct hfi_calls { /* freed with its last reference: the caller's, and that of each command under way */
    hf_client *client;
    struct hfi_mutex mutex;
    struct hfi_park park;
    size_t references, most;
    struct one list[];
};

struct hfi_calls *hfi_calls_new(hf_client *client, size_t most)
{
    struct hfi_calls *calls = calloc(1, sizeof *calls + most * sizeof calls->list[0]);
    if (calls == NULL)
        return NULL;
    calls->client = client;
    calls->references = 1;
    calls->most = most;
    hfi_mutex_init(&calls->mutex, HFI_RANK_OUTER);
    hfi_park_init(&calls->park);
    return calls;
}

/* The mutex is held on entry, and not on return. */
static void unref(struct hfi_calls *calls)
{
    bool last = --calls->references == 0;
    hfi_mutex_unlock(&calls->mutex);
    if (!last)
        return;
    for (size_t i = 0; i < calls->most; i++)
        if (calls->list[i].outcome.reply != NULL)
            freeReplyObject(calls->list[i].outcome.reply);
    hfi_mutex_destroy(&calls->mutex);
    free(calls);
}

void hfi_calls_free(struct hfi_calls *calls)
{
    if (calls == NULL)
        return;
    hfi_mutex_lock(&calls->mutex);
    unref(calls);
}

static void called(struct hfi_command *command)
{
    struct one *one = command->self;
    struct hfi_calls *calls = one->calls;
    hfi_mutex_lock(&calls->mutex);
    hfi_call_note_outcome(&one->outcome, command);
    one->done = true;
    hfi_park_wake(&calls->park);
    unref(calls);
}

void hfi_calls_list(struct hfi_calls *calls, size_t index, struct hfi_lane *lane, struct hfi_command *command)
{
    struct one *one = &calls->list[index];
    *one = (struct one){.calls = calls, .lane = lane, .listed = command != NULL};
    if (command == NULL)
        return;
    int64_t now = hfi_now(calls->client->clock);
    hfi_mutex_lock(&calls->mutex);
    calls->references++;
    hfi_mutex_unlock(&calls->mutex);
    hfi_call_list(calls->client, lane, command, called, one, now);
}

hf_status hfi_calls_take(struct hfi_calls *calls, size_t index, hf_cancel *cancel, struct redisReply **reply, uint32_t *connection,
                         hf_error *error)
{
    struct one *one = &calls->list[index];
    struct hfi_wait wait;
    *reply = NULL;
    if (!one->listed)
        return hfi_fail(error, HF_NOMEM, "", "no memory for a command");
    hfi_wait_begin(&wait, calls->client, cancel, &calls->park, HFI_NEVER); /* the command's until_ns ends it */
    wait.is_hurried = true;
    hfi_mutex_lock(&calls->mutex);
    bool done = hfi_wait_for(&wait, &one->done, &calls->mutex, one->lane) == HF_OK;
    hfi_mutex_unlock(&calls->mutex);
    hfi_wait_end(&wait);
    if (!done)
        return hfi_fail(error, HF_CANCELED, "", "waiting for the server was canceled");
    *connection = one->outcome.connection;
    return hfi_call_explain(calls->client, &one->outcome, reply, error);
}
