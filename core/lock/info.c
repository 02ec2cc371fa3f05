/* SPDX-License-Identifier: MIT */
/* info.c - for operators: hf_lock_info, _waiters and _list, and hf_semaphore_info, _waiters and _list. */
#include "core/lock/info.h"
#include "core/context/call.h"
#include "core/context/callback.h"
#include "core/lock/event_sink.h"
#include "core/policy/observation.h"
#include "core/protocol/options.h"
#include "core/protocol/script_error.h"
#include "core/context/wait.h"
#include "core/protocol/wire.h"

#include <holdfast/semaphore.h>

#include <fnmatch.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAITERS_MOST 100

struct inquiry { /* a question to a holder, on the stack of the thread that asks */
    struct hfi_list link; /* in client->inquiries; the mutex of that list guards all fields */
    struct hfi_park park;
    const char *token;
    size_t  token_size;
    int64_t until_ns; /* deadline of the answer; 0: no client received the question */
    bool    answered;
    int64_t fence, held_ms;
    char    label[132];
};

struct holding { /* a holder of a lock, from the look at it until its visit */
    char    name[HF_NAME_MAX + 1];
    char    value[HFI_TOKEN_CAPACITY]; /* a token; another library's value is only in `foreign` */
    char    foreign[256];
    bool    shared;
    int64_t left_ms, waiting, permits;
    struct hfi_token_parts parts;
    struct inquiry inquiry; /* token NULL: the holder is another library */
};

struct survey { /* holders are asked in batches, so that the waits for silent ones overlap */
    hf_client    *client;
    enum hfi_use  use;
    hf_holder_fn *visit;
    void         *arg;
    bool   enough;
    size_t count;
    struct holding held[16];
};

void hfi_info_tell(struct hfi_lock *lock, const struct hfi_message *message)
{
    hf_client *client = lock->client;
    const hf_lease *holder = lock->holder;
    char channel[HFI_CHANNEL_SIZE + 1], text[HFI_MESSAGE_CAPACITY];
    if (holder == NULL || message->rest_size != HFI_CHANNEL_SIZE || memcmp(message->rest, "hf:c:", 5) != 0)
        return;
    memcpy(channel, message->rest, HFI_CHANNEL_SIZE);
    channel[HFI_CHANNEL_SIZE] = 0;
    int64_t now = hfi_now(client->clock);
    const char *label = holder->sink != NULL && holder->sink->label != NULL ? holder->sink->label : client->name;
    hfi_message_print_answer(message, holder->fence, (now - holder->since_ns) / HFI_MS, label, text);
    hfi_call_publish(client, lock->lane, channel, text, now);
}

void hfi_info_on_message(hf_client *client, const struct hfi_message *message)
{
    hfi_mutex_lock(&client->inquiry_mutex);
    for (struct hfi_list *at = client->inquiries.next; at != &client->inquiries; at = at->next) {
        struct inquiry *inquiry = hfi_container_of(at, struct inquiry, link);
        if (inquiry->answered || inquiry->token_size != message->token_size ||
            memcmp(inquiry->token, message->token, message->token_size) != 0)
            continue;
        size_t size = message->rest_size < sizeof inquiry->label ? message->rest_size : sizeof inquiry->label - 1;
        memcpy(inquiry->label, message->rest, size);
        inquiry->label[size] = 0;
        inquiry->fence = message->fence;
        inquiry->held_ms = message->held_ms;
        inquiry->answered = true;
        hfi_park_wake(&inquiry->park);
    }
    hfi_mutex_unlock(&client->inquiry_mutex);
}

static struct hfi_lane *lane_of(hf_client *client)
{
    return hfi_pool_lane(client->pool, HFI_USER_LANE, 0);
}

static void ask_holder(hf_client *client, const char *id, struct inquiry *inquiry)
{
    char channel[HFI_CHANNEL_SIZE + 1], text[HFI_MESSAGE_CAPACITY];
    redisReply *reply;
    (void)snprintf(channel, sizeof channel, "hf:c:%s", id);
    hfi_message_print_inquiry(inquiry->token, inquiry->token_size, client->identity.channel, text);
    hfi_park_init(&inquiry->park);
    hfi_mutex_lock(&client->inquiry_mutex);
    hfi_list_append(&client->inquiries, &inquiry->link);
    hfi_mutex_unlock(&client->inquiry_mutex);
    int64_t asked = hfi_now(client->clock);
    hf_status status =
        hfi_call(client, lane_of(client), hfi_wire_words("PUBLISH", channel, text, NULL), NULL, &reply, NULL);
    int64_t now = hfi_now(client->clock);
    if (status == HF_OK && reply->type == REDIS_REPLY_INTEGER && reply->integer > 0)
        inquiry->until_ns = hfi_after_ms(now, HFI_HOLDER_ANSWERS_MS) + 2 * (now - asked);
    if (status == HF_OK)
        freeReplyObject(reply);
}

/* Waits for the holder's answer. A dead holder leaves the fields as they are. */
static void receive_holder(hf_client *client, struct inquiry *inquiry, bool enough)
{
    struct hfi_wait wait;
    hfi_wait_begin(&wait, client, NULL, &inquiry->park, enough ? 0 : inquiry->until_ns);
    hfi_mutex_lock(&client->inquiry_mutex);
    (void)hfi_wait_for(&wait, &inquiry->answered, &client->inquiry_mutex, NULL);
    hfi_list_remove(&inquiry->link);
    hfi_mutex_unlock(&client->inquiry_mutex);
}

static void show(struct survey *survey, const struct holding *held)
{
    hf_holder holder = {.size = sizeof holder, .name = held->name, .host = held->parts.host, .label = held->inquiry.label,
                        .pid = held->parts.pid, .fence = held->inquiry.fence, .held_ms = held->inquiry.held_ms,
                        .remaining_ms = held->left_ms, .waiting = held->waiting, .shared = held->shared, .permits = held->permits,
                        .foreign_value = held->inquiry.token == NULL ? held->foreign : NULL};
    struct hfi_callback callback;
    hfi_callback_begin(&callback, survey->client, NULL);
    survey->enough = !survey->visit(&holder, survey->arg);
    hfi_callback_end(&callback);
}

/* Waits for the answers of the batch and visits its holders. */
static void finish(struct survey *survey)
{
    for (size_t i = 0; i < survey->count; i++) {
        struct holding *held = &survey->held[i];
        if (held->inquiry.token != NULL)
            receive_holder(survey->client, &held->inquiry, survey->enough);
        if (!survey->enough)
            show(survey, held);
    }
    survey->count = 0;
}

/* Asks the holder of this value, if it is one of ours. */
static void add_holder(struct survey *survey, const struct hfi_keys *keys, const redisReply *value, const struct holding *seen)
{
    struct holding *held = &survey->held[survey->count];
    *held = *seen;
    held->inquiry.held_ms = -1;
    memcpy(held->name, hfi_keys_name(keys), (size_t)keys->name_size + 1);
    if (hfi_token_parse(value->str, value->len, &held->parts)) {
        memcpy(held->value, value->str, value->len);
        held->inquiry.token = held->value;
        held->inquiry.token_size = value->len;
        ask_holder(survey->client, held->parts.id, &held->inquiry);
    } else {
        (void)hfi_quote(held->foreign, sizeof held->foreign, value->str, value->len);
    }
    if (++survey->count == sizeof survey->held / sizeof survey->held[0])
        finish(survey);
}

/* What `look` or `look_permits` answered; reply_schema.c has checked it. */
static void add_holders(struct survey *survey, const struct hfi_keys *keys, const redisReply *reply)
{
    const char *word = reply->element[0]->str;
    bool shared = strcmp(word, "SHARED") == 0, counts = strcmp(word, "PERMITS") == 0;
    size_t first = counts ? 2 : shared ? 3 : 1, step = counts ? 3 : 1, last = counts || shared ? reply->elements : 2;
    for (size_t i = first; i < last && strcmp(word, "FREE") != 0 && !survey->enough; i += step) {
        struct holding seen = {.shared = shared, .left_ms = hfi_wire_number(reply, shared ? 1 : i + 1, -1),
                               .waiting = hfi_wire_number(reply, counts ? 1 : shared ? 2 : 3, 0),
                               .permits = counts ? hfi_wire_number(reply, i + 2, 1) : 1};
        add_holder(survey, keys, reply->element[i], &seen);
    }
}

/* Looks at the lock of these keys, which it takes over, and asks its holders. A free lock is left out. */
static hf_status inform(struct survey *survey, struct hfi_keys *keys, hf_error *error)
{
    redisReply *reply = NULL;
    hf_status status = hfi_call_done(survey->client, lane_of(survey->client), hfi_wire_look(keys), NULL,
                                     keys->use == HFI_SEMAPHORE ? "cannot look at the semaphore" : "cannot look at the lock", &reply,
                                     error);
    if (status == HF_OK && strcmp(reply->element[0]->str, "FOREIGN") == 0)
        status = hfi_script_error_key(keys, reply->element[1]->str, error);
    else if (status == HF_OK)
        add_holders(survey, keys, reply);
    if (reply != NULL)
        freeReplyObject(reply);
    hfi_keys_done(keys);
    return status;
}

hf_status hfi_info_enter(hf_client *client, enum hfi_use use, const char *text, struct hfi_keys *keys, hf_error *error)
{
    struct hfi_name name;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_name_take(use, text, 0, &name, error);
    if (status == HF_OK)
        name = hfi_name_in(use == HFI_MUTEX ? client->dialect : NULL, name);
    if (status == HF_OK)
        status = hfi_keys_make(client->key_template, &name, keys, error);
    if (status != HF_OK)
        hfi_client_leave(client);
    return status;
}

static hf_status info(hf_client *client, enum hfi_use use, const char *name, hf_holder_fn *visit, void *arg, hf_error *error)
{
    struct hfi_keys keys;
    struct survey survey = {.client = client, .visit = visit, .arg = arg};
    if (visit == NULL)
        return hfi_fail(error, HF_INVALID, "", "visit is NULL");
    hf_status status = hfi_info_enter(client, use, name, &keys, error);
    if (status != HF_OK)
        return status;
    status = inform(&survey, &keys, error);
    finish(&survey);
    hfi_client_leave(client);
    return status;
}

hf_status hf_lock_info(hf_client *client, const char *name, hf_holder_fn *visit, void *arg, hf_error *error)
{
    return info(client, HFI_MUTEX, name, visit, arg, error);
}

hf_status hf_semaphore_info(hf_client *client, const char *name, hf_holder_fn *visit, void *arg, hf_error *error)
{
    return info(client, HFI_SEMAPHORE, name, visit, arg, error);
}

static hf_status ask_clock_key(hf_client *client, const char *command, int64_t *ms, hf_error *error)
{
    redisReply *reply;
    hf_status status = hfi_call_done(client, lane_of(client), hfi_wire_words(command, HFI_CLOCK_KEY, NULL), NULL,
                                     "cannot ask the server for the time", &reply, error);
    if (status == HF_OK) {
        *ms = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
        freeReplyObject(reply);
    }
    return status;
}

/* Server time: no other reply on a user lane carries it. Whoever waits where TIME is refused has made that key. */
static hf_status ask_time(hf_client *client, int64_t *now_us, hf_error *error)
{
    redisReply *reply;
    hf_error why;
    hf_status status = hfi_call_done(client, lane_of(client), hfi_wire_words("TIME", NULL), NULL,
                                     "cannot ask the server for the time", &reply, &why);
    int64_t end_ms = -1, left_ms = -1;
    bool withheld = status == HF_DENIED || status == HF_PROTOCOL; /* from this user, or by the operator from all */
    if (withheld && ask_clock_key(client, "PEXPIRETIME", &end_ms, NULL) == HF_OK &&
        ask_clock_key(client, "PTTL", &left_ms, NULL) == HF_OK && end_ms >= 0 && left_ms >= 0) {
        *now_us = (end_ms - left_ms) * 1000;
        return HF_OK;
    }
    if (status != HF_OK)
        return hfi_fail_by(error, status, &why);
    *now_us = hfi_wire_number(reply, 0, 0) * 1000000 + hfi_wire_number(reply, 1, 0);
    freeReplyObject(reply);
    return HF_OK;
}

/* A ticket is the server's time in us at which its waiter came. */
static void show_waiters(hf_client *client, const redisReply *reply, int64_t now_us, hf_waiter_fn *visit, void *arg)
{
    struct hfi_token_parts parts;
    struct hfi_callback callback;
    bool enough = reply->type != REDIS_REPLY_ARRAY;
    for (size_t i = 0; !enough && i + 1 < reply->elements; i += 2) {
        const redisReply *token = reply->element[i];
        int64_t waits_us = now_us - hfi_wire_number(reply, i + 1, now_us);
        if (token->type != REDIS_REPLY_STRING || !hfi_token_parse(token->str, token->len, &parts))
            continue;
        hf_waiter waiter = {sizeof waiter, parts.host, parts.pid, waits_us > 0 ? waits_us / 1000 : 0};
        hfi_callback_begin(&callback, client, NULL);
        enough = !visit(&waiter, arg);
        hfi_callback_end(&callback);
    }
}

static hf_status queue(hf_client *client, enum hfi_use use, const char *name, hf_waiter_fn *visit, void *arg, hf_error *error)
{
    struct hfi_keys keys;
    redisReply *reply = NULL;
    int64_t now_us;
    if (visit == NULL)
        return hfi_fail(error, HF_INVALID, "", "visit is NULL");
    hf_status status = hfi_info_enter(client, use, name, &keys, error);
    if (status != HF_OK)
        return status;
    status = hfi_call_done(client, lane_of(client), hfi_wire_waiters(&keys, WAITERS_MOST), NULL, "cannot look at the queue",
                           &reply, error);
    if (status == HF_OK)
        status = ask_time(client, &now_us, error);
    if (status == HF_OK)
        show_waiters(client, reply, now_us, visit, arg);
    if (reply != NULL)
        freeReplyObject(reply);
    hfi_keys_done(&keys);
    hfi_client_leave(client);
    return status;
}

hf_status hf_lock_waiters(hf_client *client, const char *name, hf_waiter_fn *visit, void *arg, hf_error *error)
{
    return queue(client, HFI_MUTEX, name, visit, arg, error);
}

hf_status hf_semaphore_waiters(hf_client *client, const char *name, hf_waiter_fn *visit, void *arg, hf_error *error)
{
    return queue(client, HFI_SEMAPHORE, name, visit, arg, error);
}

static hf_status inform_of_key(struct survey *survey, const redisReply *key, const char *glob, hf_error *error)
{
    const hf_client *client = survey->client;
    struct hfi_keys keys = {0};
    struct hfi_name name;
    if (!hfi_key_name(client->key_template, key->str, key->len, &name) || name.use != survey->use)
        return HF_OK;
    hf_status status = hfi_keys_make(client->key_template, &name, &keys, error);
    if (status == HF_INVALID) /* one of our side keys under a template */
        return HF_OK;
    if (status == HF_OK && keys.lock_size == key->len && memcmp(keys.lock, key->str, key->len) == 0 &&
        (glob == NULL || fnmatch(glob, hfi_keys_name(&keys), 0) == 0))
        status = inform(survey, &keys, error);
    else
        hfi_keys_done(&keys);
    return status == HF_FOREIGN ? HF_OK : status; /* its type has changed since SCAN */
}

/* SCAN's pattern for all keys of that use: the template's text with its special bytes escaped. */
static void scan_pattern(const hf_client *client, enum hfi_use use, char *out, size_t capacity)
{
    const char *template = use == HFI_SEMAPHORE ? "hf:sem:%s" : client->key_template != NULL ? client->key_template : "hf:%s";
    size_t at = 0;
    for (const char *from = template; *from != 0 && at + 3 < capacity; from++) {
        if (from[0] == '%' && from[1] == 's') {
            out[at++] = '*';
            from++;
            continue;
        }
        if (strchr("*?[]\\", *from) != NULL)
            out[at++] = '\\';
        out[at++] = *from;
    }
    out[at] = 0;
}

static hf_status list(struct survey *survey, const char *glob, hf_error *error)
{
    hf_client *client = survey->client;
    char cursor[24] = "0", pattern[1100];
    hf_status status = HF_OK;
    bool counts = survey->use == HFI_SEMAPHORE;
    scan_pattern(client, survey->use, pattern, sizeof pattern);
    do {
        redisReply *reply;
        status = hfi_call_done(client, lane_of(client),
                               hfi_wire_words("SCAN", cursor, "MATCH", pattern, "COUNT", "1000", "TYPE", counts ? "zset" : "string", NULL),
                               NULL, counts ? "cannot list the semaphores" : "cannot list the locks", &reply, error);
        if (status != HF_OK)
            break;
        bool good = reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                    reply->element[0]->type == REDIS_REPLY_STRING && reply->element[1]->type == REDIS_REPLY_ARRAY;
        (void)snprintf(cursor, sizeof cursor, "%s", good ? reply->element[0]->str : "0");
        for (size_t i = 0; good && status == HF_OK && !survey->enough && i < reply->element[1]->elements; i++)
            status = inform_of_key(survey, reply->element[1]->element[i], glob, error);
        freeReplyObject(reply);
    } while (status == HF_OK && !survey->enough && strcmp(cursor, "0") != 0);
    finish(survey);
    return status;
}

static hf_status list_all(hf_client *client, enum hfi_use use, const char *glob, hf_holder_fn *visit, void *arg, hf_error *error)
{
    struct survey survey = {.client = client, .use = use, .visit = visit, .arg = arg};
    hf_error why; /* of a key that is left out, too */
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = visit == NULL ? hfi_fail(&why, HF_INVALID, "", "visit is NULL")
             : client->dialect != NULL && use == HFI_MUTEX
                 ? hfi_fail(&why, HF_INVALID, "ask for a name (show), or list with a client that has no dialect",
                            "the locks of a dialect cannot be listed: their keys are other programs'")
                 : list(&survey, glob, &why);
    hfi_client_leave(client);
    return hfi_fail_by(error, status, &why);
}

hf_status hf_lock_list(hf_client *client, const char *glob, hf_holder_fn *visit, void *arg, hf_error *error)
{
    return list_all(client, HFI_MUTEX, glob, visit, arg, error);
}

hf_status hf_semaphore_list(hf_client *client, const char *glob, hf_holder_fn *visit, void *arg, hf_error *error)
{
    return list_all(client, HFI_SEMAPHORE, glob, visit, arg, error);
}
