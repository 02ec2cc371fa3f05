/* SPDX-License-Identifier: MIT */
/* wire_replies.c - reads meanings from replies; see wire.h. */
#include "core/protocol/wire.h"
#include "core/protocol/reply_schema.h"
#include "pool/replies.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* The year 2109. No right clock shows a later time, and up to it 2048 fences per microsecond fit the counter. Without
 * this limit one time with a wrong digit, passed to fence_floor as an estimate, would exhaust the counter for good. */
#define TIME_MOST_US INT64_C(4400000000000000)

static int64_t number_of(const struct redisReply *reply, int64_t otherwise)
{
    if (reply->type == REDIS_REPLY_INTEGER)
        return reply->integer;
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0 || reply->len > 20)
        return otherwise;
    char *end;
    errno = 0;
    int64_t number = strtoll(reply->str, &end, 10);
    return end == reply->str + reply->len && errno == 0 ? number : otherwise;
}

int64_t hfi_wire_number(const struct redisReply *reply, size_t index, int64_t otherwise)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || index >= reply->elements)
        return otherwise;
    return number_of(reply->element[index], otherwise);
}

struct hfi_script_reply hfi_wire_script_reply(const struct redisReply *reply)
{
    struct hfi_script_reply said = {"", 0, 0};
    if (reply != NULL && reply->type == REDIS_REPLY_STRING)
        said.word = reply->str;
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || reply->elements < 1)
        return said;
    said.count = reply->elements;
    int64_t first = number_of(reply->element[0], -1);
    if (first >= 0) {
        said.now_us = first;
    } else if (reply->element[0]->type == REDIS_REPLY_STRING && reply->elements >= 2) {
        said.word = reply->element[0]->str;
        said.now_us = number_of(reply->element[1], 0);
    }
    if (said.now_us < 0 || said.now_us > TIME_MOST_US)
        said.now_us = 0;
    return said;
}

const char *hfi_wire_foreign(const struct redisReply *reply)
{
    static const char *const words[] = {"queue", "wait", "held", "permits", "fence", "data", "absent", "tag"};
    if (strcmp(hfi_wire_script_reply(reply).word, "FOREIGN") != 0)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (reply->elements > 2 && reply->element[2]->type == REDIS_REPLY_STRING &&
            strcmp(reply->element[2]->str, words[i]) == 0)
            return words[i];
    return "lock";
}

/* An error from the middle of a script is an answer too: an immediate retry would get the same one, and nothing of the
 * script comes later. A server that cannot serve refuses the first of the script's writes that matters. An error that we do
 * not know may come from a proxy between us and the server. Where MULTI itself is refused or unknown, which its error
 * says by name, the commands behind it were executed one by one. */
static struct hfi_answer answer_of_error(const struct redisReply *reply, bool native)
{
    const struct hfi_meaning *meaning = hfi_reply_meaning(reply->str, reply->len);
    bool unknown = meaning->prefix[0] == 0;
    bool no_multi = native && strcasestr(reply->str, "multi") != NULL;
    bool no_time = native && hfi_reply_is_withheld(reply) && strcasestr(reply->str, "time") != NULL;
    if (no_time) /* and nothing was executed: a script has another clock, or says what is missing */
        return (struct hfi_answer){.kind = HFI_LATE};
    return (struct hfi_answer){.kind = HFI_CANNOT,
                               .status = meaning->status,
                               .there = unknown || no_multi || (meaning->executed && meaning->status != HF_UNAVAILABLE),
                               .in_doubt = unknown};
}

static struct hfi_answer answer_of_exec(const struct redisReply *reply, int64_t *now_us)
{
    if (!hfi_schema_native(NULL, reply))
        return (struct hfi_answer){.kind = HFI_CANNOT, .status = HF_PROTOCOL};
    if (reply->element[0]->type != REDIS_REPLY_STATUS)
        return (struct hfi_answer){.kind = HFI_BUSY};
    bool timed = reply->elements == 3;
    int64_t seconds = timed ? hfi_wire_number(reply->element[2], 0, 0) : 0;
    bool is_time = seconds > 0 && seconds < TIME_MOST_US / 1000000;
    *now_us = is_time ? seconds * 1000000 + hfi_wire_number(reply->element[2], 1, 0) : 0;
    /* There is no fence if the counter is of another type, and none is taken if the time in the reply is not one. 0 is
     * a bad fence (P8): the fence_floor that it causes says why. */
    return (struct hfi_answer){.kind = HFI_GRANTED, .fence = is_time || !timed ? number_of(reply->element[1], 0) : 0};
}

static int64_t natural(const struct redisReply *reply, size_t index)
{
    int64_t number = hfi_wire_number(reply, index, 0);
    return number > 0 ? number : 0;
}

/* Of a semaphore's grant; no other reply tells a number there. */
static int32_t permits_of(const struct redisReply *reply)
{
    int64_t permits = hfi_wire_number(reply, 3, 1);
    return permits >= 1 && permits <= HFI_PERMITS_MOST ? (int32_t)permits : 1;
}

struct hfi_answer hfi_wire_answer(const struct redisReply *reply, bool native, int64_t *now_us)
{
    struct hfi_answer answer = {.kind = HFI_CANNOT, .status = HF_PROTOCOL};
    *now_us = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        answer = answer_of_error(reply, native);
    } else if (native) {
        answer = answer_of_exec(reply, now_us);
    } else {
        struct hfi_script_reply said = hfi_wire_script_reply(reply);
        *now_us = said.now_us;
        bool anew = strcmp(said.word, "GRANTED") == 0;
        if (anew || strcmp(said.word, "KEPT") == 0)
            answer = (struct hfi_answer){.kind = HFI_GRANTED,
                                         .anew = anew,
                                         .fence = *now_us > 0 ? hfi_wire_number(reply, 2, 0) : 0,
                                         .permits = permits_of(reply),
                                         .out = natural(reply, 4)};
        else if (strcmp(said.word, "BUSY") == 0)
            answer = (struct hfi_answer){.kind = HFI_BUSY,
                                         .left_ms = hfi_wire_number(reply, 2, -1),
                                         .unheard = hfi_wire_number(reply, 4, -1) == 0};
        else if (strcmp(said.word, "QUEUED") == 0)
            answer = (struct hfi_answer){.kind = HFI_IN_QUEUE,
                                         .left_ms = hfi_wire_number(reply, 2, -1),
                                         .position = natural(reply, 3),
                                         .ticket = hfi_wire_number(reply, 4, 0),
                                         .ours = hfi_wire_number(reply, 5, 1) == 1,
                                         .unheard = hfi_wire_number(reply, 6, -1) == 0};
        else if (strcmp(said.word, "LATE") == 0)
            answer = (struct hfi_answer){.kind = HFI_LATE};
        else if (strcmp(said.word, "FOREIGN") == 0)
            answer = (struct hfi_answer){.kind = HFI_FOREIGN_TYPE};
        else if (strcmp(said.word, "VALUE") == 0 || strcmp(said.word, "ABSENT") == 0)
            answer = (struct hfi_answer){.kind = HFI_HAS_VALUE};
    }
    answer.native = native;
    answer.there = answer.there || answer.kind == HFI_GRANTED || answer.kind == HFI_IN_QUEUE;
    return answer;
}

struct hfi_answer hfi_wire_rechecked(const struct redisReply *reply, int index)
{
    struct hfi_answer answer = {.kind = HFI_ASK_ALONE};
    size_t at = (size_t)index + 1;
    if (reply->type != REDIS_REPLY_ARRAY || at >= reply->elements || reply->element[at]->type != REDIS_REPLY_STRING)
        return answer;
    char *position, *ours, *heard;
    answer.left_ms = strtoll(reply->element[at]->str, &position, 10);
    answer.position = strtoll(position, &ours, 10);
    answer.ours = strtoll(ours, &heard, 10) == 1;
    answer.unheard = strcmp(heard, " 0") == 0;
    answer.kind = HFI_IN_QUEUE;
    return answer;
}

enum hfi_renewed hfi_wire_renewed(const struct redisReply *reply, int index, const struct redisReply **revoked)
{
    size_t at = (size_t)index + 1;
    if (reply->type == REDIS_REPLY_ARRAY && at < reply->elements && reply->element[at]->type == REDIS_REPLY_STRING) {
        *revoked = reply->element[at];
        return HFI_RENEW_REVOKED;
    }
    switch (hfi_wire_number(reply, at, -1)) {
    case 1:
        return HFI_RENEW_OK;
    case 4:
        return HFI_RENEW_REMOTE_WAITER;
    case 0:
        return HFI_RENEW_GONE;
    case 2:
    case 3:
        return HFI_RENEW_TAKEN;
    default:
        return HFI_RENEW_FAILED;
    }
}
