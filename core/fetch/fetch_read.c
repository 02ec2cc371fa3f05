/* SPDX-License-Identifier: MIT */
/* fetch_read.c - what Redis has under the key, and when it ends; remembered, and near if the caller wants that. */
#include "core/context/call.h"
#include "core/fetch/fetch.h"
#include "core/fetch/near_read.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <string.h>

#define END_IS_KNOWN_FOR (1000 * HFI_MS)

/* ---- remember ---- */

/* near_left_ms: as left_ms, of a value that this call's tracked read has found; -2: it was another one. */
static bool remember(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms, int64_t near_left_ms, int64_t load_ms, bool stored)
{
    HFI_PERTURB("seen-to-remember");
    int64_t now = near_left_ms != -2 ? f->near.stamp_ns : hfi_now(f->client->clock); /* of a read the time before it, so no end is late */
    int64_t end = left_ms == -2 ? 0 : left_ms < 0 ? HFI_NEVER : hfi_after_ms(now, left_ms);
    struct hfi_seen saw = {*body, end, now, load_ms, stored, f->seen.forgets, {0, 0, 0}};
    if (near_left_ms != -2)
        saw.near = (struct hfi_near_mark){f->near.epoch, now, near_left_ms < 0 ? HFI_NEVER : hfi_after_ms(now, near_left_ms)};
    bool is_near = hfi_local_observe(f->client, f->key, &saw, f->near.changes);
    *body = saw.body;
    return is_near;
}

void hfi_fetch_remember(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms, int64_t load_ms, bool stored)
{
    (void)remember(f, body, left_ms, -2, load_ms, stored);
}

void hfi_fetch_remember_absent(struct hfi_fetch *f, struct hfi_body **body, int64_t left_ms)
{
    (void)remember(f, body, -2, left_ms, 0, true);
}

/* ---- ask ---- */

/* with_end: PTTL too. The key's end is read at most once a second; in between the remembered end serves. */
static struct hfi_command *read_command(const struct hfi_fetch *f, bool with_end)
{
    struct hfi_command *command = with_end ? hfi_wire_get_pttl(f->key) : hfi_wire_get(f->key);
    if (command != NULL)
        command->patient = f->again;
    return command;
}

static hf_status ask(struct hfi_fetch *f, struct hfi_command *command, redisReply **reply, hf_error *error)
{
    hf_status status = hfi_call(f->client, f->reads, command, f->options->cancel, reply, error);
    if (status != HF_OK || (*reply)->type != REDIS_REPLY_ERROR)
        return status;
    f->answers = true;
    status = hfi_reply_fail(*reply, "cannot read the cached value", hfi_pool_server_name(f->client->pool), error);
    freeReplyObject(*reply);
    *reply = NULL;
    return status;
}

/* A server that is out of memory queues nothing in a MULTI, so PTTL and GET go apart. PTTL goes first: the value that
 * GET then reads ends no earlier than PTTL said. */
static hf_status ask_apart(struct hfi_fetch *f, redisReply **reply, hf_error *error)
{
    hf_status status = ask(f, hfi_wire_pttl(f->key), reply, error);
    if (status != HF_OK)
        return status;
    f->left_ms = (*reply)->type == REDIS_REPLY_INTEGER ? (*reply)->integer : -2;
    freeReplyObject(*reply);
    return ask(f, read_command(f, false), reply, error);
}

static hf_status ask_together(struct hfi_fetch *f, redisReply **reply, hf_error *error)
{
    hf_status status = hfi_call(f->client, f->reads, read_command(f, true), f->options->cancel, reply, error);
    if (status != HF_OK || (*reply)->type != REDIS_REPLY_ERROR)
        return status;
    freeReplyObject(*reply);
    return ask_apart(f, reply, error);
}

/* A value of the same size as the one last seen is most often the same. If the bytes match, the remembered body serves:
 * nothing is taken from the reply, copied or remembered again. */
static struct hfi_body *body_of(const struct hfi_fetch *f, struct redisReply **reply)
{
    struct hfi_body *seen = f->seen.body;
    if (seen == NULL || seen->absent || seen->size != (size_t)(*reply)->len ||
        memcmp(seen->data, (*reply)->str, seen->size) != 0)
        return hfi_body_take(reply);
    hfi_body_ref(seen);
    return seen;
}

/* The server says whether it tracks what was read. */
static bool is_tracked(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 && reply->element[0]->type == REDIS_REPLY_STATUS;
}

static struct hfi_command *tracked_command(const struct hfi_fetch *f)
{
    struct hfi_command *command = hfi_wire_near_read(f->key);
    if (command != NULL)
        command->patient = f->again;
    return command;
}

static void end_tracked(struct hfi_fetch *f, const redisReply *reply, uint32_t connection)
{
    HFI_PERTURB("near-reply-to-keep");
    if (!hfi_near_end(f->client, f->key, &f->near, connection, is_tracked(reply)))
        f->near.epoch = 0;
}

/* A server that does not track it, or refuses the transaction, is read as if nothing was to be near. */
static hf_status ask_tracked(struct hfi_fetch *f, redisReply **reply, hf_error *error)
{
    uint32_t connection;
    hf_status status = hfi_call_on(f->client, f->lane, tracked_command(f), f->options->cancel, reply, &connection, error);
    if (status != HF_OK)
        return status;
    end_tracked(f, *reply, connection);
    if ((*reply)->type == REDIS_REPLY_ARRAY)
        return HF_OK;
    freeReplyObject(*reply);
    return ask_together(f, reply, error);
}

static bool wants_end(const struct hfi_fetch *f)
{
    const struct hfi_seen *seen = &f->seen;
    bool is_known = seen->body != NULL && !seen->body->absent && seen->end_ns > f->began_ns;
    return f->near.epoch != 0 || !is_known || f->began_ns - seen->asked_ns > END_IS_KNOWN_FOR;
}

/* It was read after since_ns, with its end. */
static void note_end(struct hfi_fetch *f, int64_t since_ns)
{
    bool ends = f->found != NULL && f->left_ms >= 0;
    f->end_from_ns = ends ? hfi_after_ms(since_ns, f->left_ms) : 0;
    f->end_till_ns = ends ? hfi_after_ms(hfi_now(f->client->clock), f->left_ms) : 0;
}

/* What the reply says, which is freed. *is_kept: what was found is near now. */
static hf_status take(struct hfi_fetch *f, redisReply *reply, bool *is_kept, hf_error *error)
{
    hf_status status = HF_OK;
    bool both = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2;
    redisReply **got = both ? &reply->element[reply->elements - 2] : &reply;
    *is_kept = false;
    if ((*got)->type == REDIS_REPLY_STRING) {
        if (both)
            f->left_ms = hfi_wire_number(reply, reply->elements - 1, -1);
        f->found = body_of(f, got);
        status = f->found != NULL ? HF_OK : hfi_fail(error, HF_NOMEM, "", "no memory for a value");
    } else if ((*got)->type == REDIS_REPLY_ERROR) {
        status = hfi_fail(error, HF_FOREIGN, "another program keeps something else under this key; choose another one",
                          "the cached value is not a string");
    } else if ((*got)->type != REDIS_REPLY_NIL) {
        status = hfi_fail(error, HF_PROTOCOL, "", "the server's answer to GET has another form");
    }
    freeReplyObject(reply);
    if (f->found == NULL)
        return status;
    if (f->left_ms == -2 && f->found == f->seen.body) { /* use the end remembered with these bytes */
        f->left_ms = f->seen.end_ns == HFI_NEVER ? -1 : (f->seen.end_ns - f->began_ns) / HFI_MS;
        f->end_from_ns = f->end_till_ns = f->seen.end_ns;
    } else {
        note_end(f, f->began_ns);
        *is_kept = remember(f, &f->found, f->left_ms, f->left_ms, 0, true);
    }
    return status;
}

/* Other bytes than those whose end is known: that of these is not. */
static bool has_changed(struct hfi_fetch *f)
{
    if (f->found == NULL || f->left_ms != -2 || f->found == f->seen.body)
        return false;
    hfi_body_unref(f->found);
    f->found = NULL;
    return true;
}

static hf_status read(struct hfi_fetch *f, bool *is_kept, hf_error *error)
{
    redisReply *reply;
    hf_status status = f->near.epoch != 0 ? ask_tracked(f, &reply, error)
                       : wants_end(f)     ? ask_together(f, &reply, error)
                                          : ask(f, read_command(f, false), &reply, error);
    *is_kept = false;
    if (status == HF_OK)
        status = take(f, reply, is_kept, error);
    if (status == HF_OK && has_changed(f)) {
        status = ask_together(f, &reply, error);
        if (status == HF_OK)
            status = take(f, reply, is_kept, error);
    }
    return status;
}

/* ---- read beside others ---- */

struct hfi_command *hfi_fetch_read_begin(struct hfi_fetch *f)
{
    hfi_near_note(f->client, f->key, f->began_ns, &f->near);
    if (f->options->near_ms > 0)
        hfi_near_begin(f->client, f->key, f->lane, &f->near);
    return f->near.epoch != 0 ? tracked_command(f) : read_command(f, wants_end(f));
}

hf_status hfi_fetch_read_end(struct hfi_fetch *f, redisReply *reply, uint32_t connection, bool *again, hf_error *error)
{
    bool is_kept;
    if (f->near.epoch != 0)
        end_tracked(f, reply, connection);
    if (reply->type == REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        return HF_BUSY;
    }
    hf_status status = take(f, reply, &is_kept, error);
    *again = status == HF_OK && has_changed(f);
    return status;
}

/* ---- read together ---- */

/* Another thread's read serves this call if it was listed after the call began; or shortly before it, and nothing has changed
 * since. HF_OK: done; BUSY: it does not. */
static hf_status take_from_reader(struct hfi_fetch *f, struct hfi_near_read *read, hf_error *error)
{
    int64_t lag_ms = hfi_near_lag_ms(f->client), near_ms = f->options->near_ms;
    hf_status status = hfi_near_read_wait(f->client, read, f->options->cancel, hfi_after_ms(f->began_ns, f->client->command_ms + 500));
    const struct hfi_near_found *found = &read->found;
    if (status == HF_CANCELED)
        return hfi_fail(error, HF_CANCELED, "", "waiting for the server was canceled");
    if (status != HF_OK || !found->is_read)
        return HF_BUSY;
    bool is_new = found->stamp_ns >= f->began_ns;
    bool is_recent = f->began_ns < hfi_after_ms(found->stamp_ns, near_ms < lag_ms ? near_ms : lag_ms);
    if (found->body != NULL && !is_new && !(found->is_near && is_recent)) {
        hfi_body_unref(found->body);
        return HF_BUSY;
    }
    f->found = found->body;
    f->left_ms = found->left_ms;
    note_end(f, found->stamp_ns);
    f->near.stamp_ns = found->stamp_ns; /* "there is none" may be near by that */
    if (!is_new)
        f->came_ns = found->stamp_ns;
    return HF_OK;
}

static hf_status read_for_all(struct hfi_fetch *f, struct hfi_near_read *together, hf_error *error)
{
    bool is_kept;
    f->near.stamp_ns = hfi_now(f->client->clock); /* so that those who have waited for another read find this one new */
    hf_status status = read(f, &is_kept, error);
    const struct hfi_near_found found = {status == HF_OK, is_kept, f->found, f->left_ms, f->near.stamp_ns};
    hfi_near_read_end(f->client, together, &found);
    return status;
}

/* A second read begins after the first is over, so for who has waited for that it is new. */
hf_status hfi_fetch_read(struct hfi_fetch *f, hf_error *error)
{
    struct hfi_near_read together;
    bool is_kept;
    hfi_near_note(f->client, f->key, f->began_ns, &f->near);
    f->came_ns = f->began_ns;
    for (int tries = 0; f->options->near_ms > 0 && tries < 3; tries++) {
        hfi_near_begin(f->client, f->key, f->lane, &f->near);
        if (f->near.epoch == 0)
            break;
        if (hfi_near_read_begin(f->client, f->key, &f->near, &together))
            return read_for_all(f, &together, error);
        hf_status status = take_from_reader(f, &together, error);
        if (status != HF_BUSY)
            return status;
    }
    return read(f, &is_kept, error);
}
