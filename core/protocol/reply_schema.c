/* SPDX-License-Identifier: MIT */
/* reply_schema.c - see reply_schema.h. */
#include "core/protocol/reply_schema.h"

#include <hiredis/hiredis.h>
#include <string.h>

/* An array of `word` and one element for each letter of `rest`. n: an integer, or a string of digits; s: any string. */
struct form {
    const char *word, *rest;
};

static bool is_digits(const struct redisReply *reply)
{
    if (reply->type != REDIS_REPLY_STRING || reply->len == 0 || reply->len > 20)
        return false;
    size_t sign = reply->len > 1 && reply->str[0] == '-';
    return strspn(reply->str + sign, "0123456789") + sign == (size_t)reply->len;
}

static bool is_number(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_INTEGER || is_digits(reply);
}

static bool is_of_kind(const struct redisReply *reply, char kind)
{
    return kind == 'n' ? is_number(reply) : reply->type == REDIS_REPLY_STRING;
}

static bool is_word(const struct redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, word) == 0;
}

static bool has_form(const struct redisReply *reply, const struct form *form)
{
    if (reply->elements != 1 + strlen(form->rest) || !is_word(reply->element[0], form->word))
        return false;
    for (size_t i = 1; i < reply->elements; i++)
        if (!is_of_kind(reply->element[i], form->rest[i - 1]))
            return false;
    return true;
}

static bool is_one_of(const struct redisReply *reply, const struct form *forms, size_t count)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return false;
    for (size_t i = 0; i < count; i++)
        if (has_form(reply, &forms[i]))
            return true;
    return false;
}

#define IS_ONE_OF(reply, forms) is_one_of((reply), (forms), sizeof(forms) / sizeof(forms)[0])

/* Seconds and microseconds, as TIME replies. */
static bool is_time(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && is_digits(reply->element[0]) &&
           is_digits(reply->element[1]) && reply->element[1]->len <= 6 && reply->element[1]->str[0] != '-';
}

/* SET replied OK or nil, INCRBY a number. Either may be an error, for example over another program's key. */
bool hfi_schema_native(const struct hfi_command *command, const struct redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY || (reply->elements != 2 && reply->elements != 3) ||
        (command != NULL && reply->elements != (size_t)command->element_count))
        return false;
    const struct redisReply *set = reply->element[0], *fence = reply->element[1];
    bool said_ok = set->type == REDIS_REPLY_STATUS && strcmp(set->str, "OK") == 0;
    return (said_ok || set->type == REDIS_REPLY_NIL || set->type == REDIS_REPLY_ERROR) &&
           (fence->type == REDIS_REPLY_INTEGER || fence->type == REDIS_REPLY_ERROR) && (reply->elements == 2 || is_time(reply->element[2]));
}

bool hfi_schema_acquire(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"GRANTED", "nn"}, {"KEPT", "nn"},    {"QUEUED", "nnnnnn"}, {"BUSY", "nnnn"},
                                        {"LATE", "n"},     {"FOREIGN", "ns"}, {"VALUE", "nsn"},     {"ABSENT", "nn"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

bool hfi_schema_acquire_permits(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"GRANTED", "nnnn"}, {"QUEUED", "nnnnnn"}, {"BUSY", "nnnn"}, {"LATE", "n"}, {"FOREIGN", "ns"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

bool hfi_schema_release(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"HANDED", "n"}, {"GONE", "n"}, {"LEFT", "n"}, {"MORE", "n"}, {"OTHERS", "n"},
                                        {"REVOKED", "ns"}};
    (void)command;
    return is_word(reply, "FREE") || IS_ONE_OF(reply, forms);
}

bool hfi_schema_more(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"GRANTED", "nn"}, {"GONE", "n"}, {"FOREIGN", "ns"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

bool hfi_schema_downgrade(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"SHARED", "n"}, {"GONE", "n"}, {"REVOKED", "ns"}, {"FOREIGN", "ns"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

bool hfi_schema_take_many(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"GRANTED", "nn"}, {"BUSY", "nn"}, {"LATE", "n"}, {"FOREIGN", "ns"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

bool hfi_schema_fill(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"FILLED", "n"}, {"FREE", "n"}, {"REFUSED", "n"}, {"MISSING", "n"}, {"FOREIGN", "ns"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

bool hfi_schema_break(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"BROKEN", "n"}, {"FREE", "n"}, {"FOREIGN", "ns"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

/* The TTL, the number of waiters, and the readers' tokens. */
static bool is_shared(const struct redisReply *reply)
{
    bool fits = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 3 && is_word(reply->element[0], "SHARED");
    for (size_t i = 1; fits && i < reply->elements; i++)
        fits = is_of_kind(reply->element[i], i < 3 ? 'n' : 's');
    return fits;
}

/* The number of waiters; each token, its TTL, and how many permits it has. */
static bool is_permits(const struct redisReply *reply)
{
    bool fits = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 5 && reply->elements % 3 == 2 &&
                is_word(reply->element[0], "PERMITS");
    for (size_t i = 1; fits && i < reply->elements; i++)
        fits = is_of_kind(reply->element[i], i % 3 == 2 ? 's' : 'n');
    return fits;
}

bool hfi_schema_look(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"HELD", "snn"}, {"FREE", ""}, {"FOREIGN", "s"}};
    (void)command;
    return IS_ONE_OF(reply, forms) || is_shared(reply) || is_permits(reply);
}

bool hfi_schema_forget(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"DONE", "n"}};
    (void)command;
    return IS_ONE_OF(reply, forms);
}

/* How many values there were, and the keys of all. */
static bool is_forgotten(const struct redisReply *reply)
{
    bool fits = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 3 &&
                (is_word(reply->element[0], "DONE") || is_word(reply->element[0], "MORE"));
    for (size_t i = 1; fits && i < reply->elements; i++)
        fits = is_of_kind(reply->element[i], i < 3 ? 'n' : 's');
    return fits;
}

bool hfi_schema_forget_tag(const struct hfi_command *command, const struct redisReply *reply)
{
    static const struct form forms[] = {{"FOREIGN", "ns"}};
    (void)command;
    return IS_ONE_OF(reply, forms) || is_forgotten(reply);
}

bool hfi_schema_floor(const struct hfi_command *command, const struct redisReply *reply)
{
    (void)command;
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && is_number(reply->element[0]) &&
           is_number(reply->element[1]);
}

/* The server's time, then one element for each name in the command. */
static bool is_time_and(const struct hfi_command *command, const struct redisReply *reply,
                        bool (*is_one)(const struct redisReply *reply))
{
    bool fits = reply->type == REDIS_REPLY_ARRAY && reply->elements == (size_t)command->element_count &&
                is_number(reply->element[0]);
    for (size_t i = 1; fits && i < reply->elements; i++)
        fits = is_one(reply->element[i]);
    return fits;
}

/* A code, or the token that has taken the holder's place in the key. */
static bool is_renewed(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_STRING ||
           (reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0 && reply->integer <= 5);
}

bool hfi_schema_renew(const struct hfi_command *command, const struct redisReply *reply)
{
    return is_time_and(command, reply, is_renewed);
}

/* `pttl position ours heard`, or 0: this name needs an acquire of its own. */
static bool is_place(const struct redisReply *reply)
{
    static const char *const ends[] = {" 0 -1", " 1 -1", " 1 0", " 1 1"};
    if (reply->type == REDIS_REPLY_INTEGER)
        return reply->integer == 0;
    if (reply->type != REDIS_REPLY_STRING || reply->len > 44 || strlen(reply->str) != (size_t)reply->len)
        return false;
    const char *at = reply->str + (reply->str[0] == '-');
    size_t left = strspn(at, "0123456789"), position = at[left] == ' ' ? strspn(at + left + 1, "0123456789") : 0;
    bool fits = false;
    for (size_t i = 0; left > 0 && position > 0 && i < sizeof ends / sizeof ends[0]; i++)
        fits = fits || strcmp(at + left + 1 + position, ends[i]) == 0;
    return fits;
}

bool hfi_schema_recheck(const struct hfi_command *command, const struct redisReply *reply)
{
    return is_time_and(command, reply, is_place);
}
