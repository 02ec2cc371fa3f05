/* SPDX-License-Identifier: MIT */
/* forget_tag.c - hf_fetch_forget_tag: the values of a tag, batch by batch. */
#include "base/rare.h"
#include "core/context/call.h"
#include "core/fetch/local.h"
#include "core/protocol/wire.h"

#include <hiredis/hiredis.h>
#include <string.h>

/* This process, too, keeps none of the values that the server has deleted. */
static void forget_here(hf_client *client, const redisReply *reply)
{
    struct hfi_name key;
    for (size_t i = 3; i < reply->elements; i++)
        if (hfi_name_take(HFI_FETCH, reply->element[i]->str, reply->element[i]->len, &key, NULL) == HF_OK)
            hfi_local_forget(client, &key);
}

/* One script. *more: the tag has more values. */
static hf_status forget_some(hf_client *client, const struct hfi_name *tag, size_t *forgotten, bool *more, hf_error *error)
{
    char key[HFI_TAG_KEY_MOST], quoted[HFI_TAG_KEY_MOST];
    redisReply *reply = NULL;
    size_t size = hfi_tag_key(tag, key);
    struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_VALUE_LANE, tag->hash);
    *more = false;
    hf_status status =
        hfi_call_done(client, lane, hfi_wire_forget_tag(key, size), NULL, "cannot forget the values of a tag", &reply, error);
    if (status == HF_OK && hfi_wire_foreign(reply) != NULL) {
        status = hfi_fail(error, HF_FOREIGN, "another program keeps something else there: delete it, or choose another tag",
                          "the key %s is not a sorted set", hfi_quote(quoted, sizeof quoted, key, size));
    } else if (status == HF_OK) {
        *forgotten += (size_t)hfi_wire_number(reply, 2, 0);
        *more = strcmp(hfi_wire_script_reply(reply).word, "MORE") == 0;
        forget_here(client, reply);
    }
    if (reply != NULL)
        freeReplyObject(reply);
    return status;
}

HFI_RARE hf_status hf_fetch_forget_tag(hf_client *client, const char *text, size_t *forgotten, hf_error *error)
{
    struct hfi_name tag;
    size_t count = 0;
    bool more = true;
    if (forgotten != NULL)
        *forgotten = 0;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_tag_take(text, &tag, error);
    while (status == HF_OK && more)
        status = forget_some(client, &tag, &count, &more, error);
    if (status == HF_OK || status == HF_UNKNOWN) /* not known: it may have been executed, and has told no keys */
        hfi_local_forget_over(client, status == HF_UNKNOWN);
    if (forgotten != NULL)
        *forgotten = count;
    hfi_client_leave(client);
    return status;
}
