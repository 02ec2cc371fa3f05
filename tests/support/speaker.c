/* SPDX-License-Identifier: MIT */
/* speaker.c - see speaker.h. */
#include "tests/support/speaker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

int hft_speaker_begin(void **state)
{
    struct hft_speaker *speaker = calloc(1, sizeof *speaker);
    if (speaker == NULL)
        return -1;
    speaker->server = hft_server_start(NULL);
    *state = speaker;
    return 0;
}

int hft_speaker_end(void **state)
{
    struct hft_speaker *speaker = *state;
    assert_int_equal(hf_client_close(speaker->client, NULL), HF_OK);
    hft_server_stop(speaker->server);
    free(speaker);
    return 0;
}

void hft_speak(struct hft_speaker *speaker, const char *dialect)
{
    assert_int_equal(hf_client_close(speaker->client, NULL), HF_OK);
    freeReplyObject(hft_server_ask(speaker->server, "FLUSHALL"));
    speaker->client = hft_client(speaker->server, HF_CLIENT(.dialect = dialect));
}

const char *hft_says(struct hft_speaker *speaker, const char *command)
{
    static char text[64];
    redisReply *reply = hft_server_ask(speaker->server, command);
    if (reply->type == REDIS_REPLY_INTEGER)
        (void)snprintf(text, sizeof text, "%lld", reply->integer);
    else
        (void)snprintf(text, sizeof text, "%s", reply->type == REDIS_REPLY_NIL ? "(nil)" : reply->str);
    freeReplyObject(reply);
    return text;
}

void hft_do_all(struct hft_speaker *speaker, const char *const *commands)
{
    for (; *commands != NULL; commands++)
        (void)hft_says(speaker, *commands);
}

size_t hft_watched(struct hft_speaker *speaker)
{
    redisReply *reply = hft_server_ask(speaker->server, "PUBSUB CHANNELS __keyspace@*");
    size_t count = reply->elements;
    freeReplyObject(reply);
    return count;
}

hf_lease *hft_must_take(hf_client *client)
{
    hf_lease *lease;
    hf_error error;
    if (hf_lock_acquire(client, "x", NULL, &lease, &error) != HF_OK)
        fail_msg("%s", error.message);
    return lease;
}
