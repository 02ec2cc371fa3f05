/* SPDX-License-Identifier: MIT */
/* keyspace.c - see keyspace.h. A history has a dozen keys, so a linear search is enough. */
#include "tests/sim/keyspace.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MOST 9e15 /* a double that is whole and below this is written with all its digits and no fraction */

enum type { STRING, ZSET, HASH };

struct member { /* of a sorted set, in its order; or a field of a hash */
    struct member *next;
    double score;
    char *name, *value;
};

struct sim_key {
    struct sim_key *next;
    char *name;
    size_t name_size;
    enum type type;
    int64_t expire_ms; /* 0: never */
    char *value;
    size_t size;
    struct member *members;
};

/* ---- replies ---- */

static void say_number(struct hfi_buffer *reply, int64_t number)
{
    sim_reply_number(reply, ':', number);
}

static void say_text(struct hfi_buffer *reply, const char *text)
{
    sim_reply_bulk(reply, text, strlen(text));
}

static bool refuse(struct hfi_buffer *reply, const char *text)
{
    sim_reply_error(reply, text);
    return false;
}

static bool refuse_type(struct hfi_buffer *reply)
{
    return refuse(reply, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

size_t sim_number_text(char *text, size_t room, double number)
{
    bool whole =
        fabs(number) < WHOLE_MOST && number == (double)(int64_t)number && (number != 0 || !signbit(number));
    return whole ? sim_digits(text, (int64_t)number) : (size_t)snprintf(text, room, "%.17g", number);
}

static void say_score(struct hfi_buffer *reply, double score)
{
    char text[40];
    sim_reply_bulk(reply, text, sim_number_text(text, sizeof text, score));
}

/* ---- keys ---- */

static char *copy(const char *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        abort();
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

static void tell(struct sim_keyspace *keys, const char *event, const char *key, const char *value)
{
    if (keys->changed != NULL)
        keys->changed(keys->self, event, key, value);
}

static void drop_members(struct sim_key *key)
{
    while (key->members != NULL) {
        struct member *member = key->members;
        key->members = member->next;
        free(member->name);
        free(member->value);
        free(member);
    }
}

static void drop(struct sim_keyspace *keys, struct sim_key *key, const char *event)
{
    struct sim_key **at = &keys->first;
    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    if (event != NULL)
        tell(keys, event, key->name, "");
    drop_members(key);
    free(key->value);
    free(key->name);
    free(key);
}

static bool is_over(const struct sim_keyspace *keys, const struct sim_key *key)
{
    return key->expire_ms != 0 && keys->now_us / 1000 > key->expire_ms;
}

static struct sim_key *find(struct sim_keyspace *keys, const char *name)
{
    size_t size = strlen(name);
    for (struct sim_key *key = keys->first; key != NULL; key = key->next) {
        if (key->name_size != size || memcmp(key->name, name, size) != 0)
            continue;
        if (!is_over(keys, key))
            return key;
        drop(keys, key, "expired");
        return NULL;
    }
    return NULL;
}

static struct sim_key *make(struct sim_keyspace *keys, const char *name, enum type type)
{
    struct sim_key *key = calloc(1, sizeof *key);
    if (key == NULL)
        abort();
    key->name_size = strlen(name);
    key->name = copy(name, key->name_size);
    key->type = type;
    key->next = keys->first;
    keys->first = key;
    return key;
}

/* Finds the key if it is of this type or missing (NULL). False: it has another type, and the error reply is written. */
static bool typed(struct sim_keyspace *keys, const char *name, enum type type, struct hfi_buffer *reply,
                  struct sim_key **key)
{
    *key = find(keys, name);
    return *key == NULL || (*key)->type == type || refuse_type(reply);
}

static void put_string(struct sim_keyspace *keys, const char *name, const char *bytes, size_t size,
                       int64_t expire_ms)
{
    struct sim_key *key = find(keys, name);
    if (key != NULL)
        drop(keys, key, NULL);
    key = make(keys, name, STRING);
    key->value = copy(bytes, size);
    key->size = size;
    key->expire_ms = expire_ms;
    tell(keys, "set", name, key->value);
}

/* ---- strings and lifetimes ---- */

static bool set(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    const struct sim_key *key = find(keys, words->text[1]);
    int64_t expire_ms = 0;
    bool only_new = false;
    for (int i = 3; i < words->count; i++) {
        if (strcmp(words->text[i], "NX") == 0) {
            only_new = true;
        } else if (strcmp(words->text[i], "KEEPTTL") == 0) {
            expire_ms = key != NULL ? key->expire_ms : 0;
        } else if (strcmp(words->text[i], "PX") == 0 && i + 1 < words->count) {
            int64_t ms = strtoll(words->text[++i], NULL, 10);
            if (ms <= 0)
                return refuse(reply, "ERR invalid expire time in 'set' command");
            expire_ms = keys->now_us / 1000 + ms;
        } else {
            return refuse(reply, "ERR syntax error");
        }
    }
    if (only_new && key != NULL) {
        sim_reply_nil(reply);
        return true;
    }
    put_string(keys, words->text[1], words->text[2], words->size[2], expire_ms);
    sim_reply_line(reply, '+', "OK");
    return true;
}

static bool get(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!typed(keys, words->text[1], STRING, reply, &key))
        return false;
    if (key == NULL)
        sim_reply_nil(reply);
    else
        sim_reply_bulk(reply, key->value, key->size);
    return true;
}

static bool del(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    int count = 0;
    for (int i = 1; i < words->count; i++) {
        struct sim_key *key = find(keys, words->text[i]);
        count += key != NULL;
        if (key != NULL)
            drop(keys, key, "del");
    }
    say_number(reply, count);
    return true;
}

static bool pexpire(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key = find(keys, words->text[1]);
    char *end;
    int64_t ms = strtoll(words->text[2], &end, 10);
    if (*end != 0 || words->size[2] == 0)
        return refuse(reply, "ERR value is not an integer or out of range");
    say_number(reply, key != NULL);
    if (key != NULL && ms <= 0)
        drop(keys, key, "del");
    else if (key != NULL)
        key->expire_ms = keys->now_us / 1000 + ms;
    return true;
}

static bool pttl(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    const struct sim_key *key = find(keys, words->text[1]);
    int64_t left = key == NULL ? -2 : key->expire_ms == 0 ? -1 : key->expire_ms - keys->now_us / 1000;
    say_number(reply, left);
    return true;
}

static bool exists(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    int64_t count = 0;
    for (int i = 1; i < words->count; i++)
        count += find(keys, words->text[i]) != NULL;
    say_number(reply, count);
    return true;
}

static bool persist(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key = find(keys, words->text[1]);
    say_number(reply, key != NULL && key->expire_ms != 0);
    if (key != NULL)
        key->expire_ms = 0;
    return true;
}

static bool incrby(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    char *end, text[32];
    int64_t step = strtoll(words->text[2], &end, 10), number = 0;
    bool whole = *end == 0 && words->size[2] > 0;
    if (!typed(keys, words->text[1], STRING, reply, &key))
        return false;
    if (key != NULL && whole) {
        number = strtoll(key->value, &end, 10);
        whole = *end == 0 && key->size > 0 && key->size < 21;
    }
    if (!whole)
        return refuse(reply, "ERR value is not an integer or out of range");
    if (__builtin_add_overflow(number, step, &number))
        return refuse(reply, "ERR increment or decrement would overflow");
    (void)sim_digits(text, number);
    put_string(keys, words->text[1], text, strlen(text), key != NULL ? key->expire_ms : 0);
    say_number(reply, number);
    return true;
}

/* ---- sorted sets ---- */

static struct member **place_of(struct sim_key *key, const char *name)
{
    struct member **at = &key->members;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static bool take_out(struct sim_keyspace *keys, struct sim_key *key, const char *name)
{
    struct member **at = place_of(key, name), *member = *at;
    if (member == NULL)
        return false;
    *at = member->next;
    free(member->name);
    free(member->value);
    free(member);
    if (key->members == NULL)
        drop(keys, key, "del");
    return true;
}

/* Of a key that may be gone with the last of them. */
static int take_all_out(struct sim_keyspace *keys, struct sim_key *key, const struct sim_words *words, const char *event)
{
    int count = 0;
    for (int i = 2; i < words->count && key != NULL; i++) {
        bool last = key->members != NULL && key->members->next == NULL;
        if (!take_out(keys, key, words->text[i]))
            continue;
        count++;
        if (event != NULL)
            tell(keys, event, words->text[1], words->text[i]);
        if (last)
            key = NULL;
    }
    return count;
}

static bool zadd(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    char *end;
    double score = strtod(words->text[2], &end);
    if (*end != 0 || words->size[2] == 0)
        return refuse(reply, "ERR value is not a valid float");
    if (!typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    if (key == NULL)
        key = make(keys, words->text[1], ZSET);
    struct member **at = place_of(key, words->text[3]), *member = *at;
    say_number(reply, member == NULL);
    bool changed = member == NULL || member->score != score;
    if (member == NULL) {
        member = calloc(1, sizeof *member);
        if (member == NULL)
            abort();
        member->name = copy(words->text[3], words->size[3]);
    } else {
        *at = member->next;
    }
    member->score = score;
    at = &key->members;
    while (*at != NULL &&
           ((*at)->score < score || ((*at)->score == score && strcmp((*at)->name, member->name) < 0)))
        at = &(*at)->next;
    member->next = *at;
    *at = member;
    if (changed)
        tell(keys, "zadd", key->name, member->name);
    return true;
}

static bool zrem(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    say_number(reply, take_all_out(keys, key, words, "zrem"));
    return true;
}

static bool zcard(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    int64_t count = 0;
    if (!typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    for (const struct member *member = key != NULL ? key->members : NULL; member != NULL; member = member->next)
        count++;
    say_number(reply, count);
    return true;
}

static bool zrange(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    bool scores = words->count > 4 && strcmp(words->text[4], "WITHSCORES") == 0;
    int64_t from = strtoll(words->text[2], NULL, 10), to = strtoll(words->text[3], NULL, 10), count = 0,
            at = 0, found;
    if (!typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    const struct member *first = key != NULL ? key->members : NULL;
    for (const struct member *member = first; member != NULL; member = member->next)
        count++;
    from = from < 0 ? from + count : from;
    from = from < 0 ? 0 : from;
    to = to < 0 ? to + count : to;
    to = to >= count ? count - 1 : to;
    found = to >= from ? to - from + 1 : 0;
    sim_reply_number(reply, '*', scores ? 2 * found : found);
    for (const struct member *member = first; member != NULL; member = member->next, at++) {
        if (at < from || at > to)
            continue;
        say_text(reply, member->name);
        if (scores)
            say_score(reply, member->score);
    }
    return true;
}

static bool rank_or_score(struct sim_keyspace *keys, const struct sim_words *words, bool rank,
                          struct hfi_buffer *reply)
{
    struct sim_key *key;
    int64_t at = 0;
    if (!typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    const struct member *member = key != NULL ? key->members : NULL;
    for (; member != NULL && strcmp(member->name, words->text[2]) != 0; member = member->next)
        at++;
    if (member == NULL)
        sim_reply_nil(reply);
    else if (rank)
        say_number(reply, at);
    else
        say_score(reply, member->score);
    return true;
}

static bool zrank(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return rank_or_score(keys, words, true, reply);
}

static bool zscore(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return rank_or_score(keys, words, false, reply);
}

/* ---- hashes ---- */

static bool hset(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!typed(keys, words->text[1], HASH, reply, &key))
        return false;
    if (key == NULL)
        key = make(keys, words->text[1], HASH);
    struct member **at = place_of(key, words->text[2]), *field = *at;
    say_number(reply, field == NULL);
    if (field == NULL) {
        field = *at = calloc(1, sizeof *field);
        if (field == NULL)
            abort();
        field->name = copy(words->text[2], words->size[2]);
    }
    free(field->value);
    field->value = copy(words->text[3], words->size[3]);
    return true;
}

static bool hget(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!typed(keys, words->text[1], HASH, reply, &key))
        return false;
    const struct member *field = key != NULL ? *place_of(key, words->text[2]) : NULL;
    if (field == NULL)
        sim_reply_nil(reply);
    else
        say_text(reply, field->value);
    return true;
}

static bool hdel(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!typed(keys, words->text[1], HASH, reply, &key))
        return false;
    say_number(reply, take_all_out(keys, key, words, NULL));
    return true;
}

/* ---- the rest ---- */

static bool publish(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    int64_t heard = keys->publish == NULL ? 0
                                          : keys->publish(keys->self, words->text[1], words->size[1],
                                                          words->text[2], words->size[2]);
    say_number(reply, heard);
    return true;
}

static bool pubsub(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    if (strcmp(words->text[1], "NUMSUB") != 0)
        return refuse(reply, "ERR unknown subcommand: the virtual server does not have it");
    sim_reply_number(reply, '*', 2);
    sim_reply_bulk(reply, words->text[2], words->size[2]);
    say_number(reply, keys->subscribers(keys->self, words->text[2], words->size[2]));
    return true;
}

static bool tell_time(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    char text[32];
    (void)words;
    sim_reply_number(reply, '*', 2);
    sim_reply_bulk(reply, text, sim_digits(text, keys->now_us / 1000000));
    sim_reply_bulk(reply, text, sim_digits(text, keys->now_us % 1000000));
    return true;
}

/* ---- which one it is ---- */

enum effect { READS, SHRINKS, GROWS };

struct command {
    const char *name;
    int least; /* words */
    enum effect effect;
    bool (*run)(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply);
};

static const struct command *command_of(const struct sim_words *words)
{
    static const struct command commands[] = {
        {"GET", 2, READS, get},         {"PEXPIRE", 3, SHRINKS, pexpire}, {"PTTL", 2, READS, pttl},
        {"TIME", 1, READS, tell_time},  {"HDEL", 3, SHRINKS, hdel},       {"ZREM", 3, SHRINKS, zrem},
        {"SET", 3, GROWS, set},         {"INCRBY", 3, GROWS, incrby},     {"DEL", 2, SHRINKS, del},
        {"PUBLISH", 3, READS, publish}, {"ZRANGE", 4, READS, zrange},     {"ZADD", 4, GROWS, zadd},
        {"HSET", 4, GROWS, hset},       {"HGET", 3, READS, hget},         {"ZRANK", 3, READS, zrank},
        {"ZSCORE", 3, READS, zscore},   {"PERSIST", 2, SHRINKS, persist},
        {"EXISTS", 2, READS, exists},   {"PUBSUB", 3, READS, pubsub},     {"ZCARD", 2, READS, zcard}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (sim_is(words, commands[i].name))
            return &commands[i];
    return NULL;
}

static const char *refusal_of(const struct sim_keyspace *keys, enum effect effect)
{
    if (keys->refuses == SIM_NO_MEMORY && effect == GROWS && !keys->wrote)
        return "OOM command not allowed when used memory > 'maxmemory'.";
    if (keys->refuses == SIM_NO_DISK && effect != READS)
        return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
               "disk.";
    return NULL;
}

const char *sim_keyspace_refusal(const struct sim_keyspace *keys, const struct sim_words *words)
{
    const struct command *command = command_of(words);
    return command != NULL ? refusal_of(keys, command->effect) : NULL;
}

bool sim_keyspace_run(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    const struct command *command = command_of(words);
    if (command == NULL || words->count < command->least)
        return refuse(reply, "ERR unknown command or arguments: the virtual server does not have it");
    const char *refusal = refusal_of(keys, command->effect);
    if (refusal != NULL)
        return refuse(reply, refusal);
    keys->wrote = keys->wrote || command->effect != READS;
    return command->run(keys, words, reply);
}

void sim_keyspace_clear(struct sim_keyspace *keys)
{
    while (keys->first != NULL)
        drop(keys, keys->first, NULL);
}

void sim_keyspace_copy(struct sim_keyspace *to, const struct sim_keyspace *from)
{
    sim_keyspace_clear(to);
    for (const struct sim_key *key = from->first; key != NULL; key = key->next) {
        struct sim_key *twin = make(to, key->name, key->type);
        struct member **end = &twin->members;
        twin->expire_ms = key->expire_ms;
        twin->size = key->size;
        twin->value = key->value != NULL ? copy(key->value, key->size) : NULL;
        for (const struct member *member = key->members; member != NULL; member = member->next) {
            struct member *other = calloc(1, sizeof *other);
            if (other == NULL)
                abort();
            other->name = copy(member->name, strlen(member->name));
            other->value = member->value != NULL ? copy(member->value, strlen(member->value)) : NULL;
            other->score = member->score;
            *end = other;
            end = &other->next;
        }
    }
}

bool sim_keyspace_evict(struct sim_keyspace *keys, const char *name)
{
    struct sim_key *key = find(keys, name);
    if (key != NULL)
        drop(keys, key, "evicted");
    return key != NULL;
}

void sim_keyspace_expire(struct sim_keyspace *keys)
{
    for (struct sim_key *key = keys->first, *next; key != NULL; key = next) {
        next = key->next;
        if (is_over(keys, key))
            drop(keys, key, "expired");
    }
}

void sim_keyspace_each(struct sim_keyspace *keys,
                       void (*visit)(void *arg, const char *key, int64_t expire_ms), void *arg)
{
    for (const struct sim_key *key = keys->first; key != NULL; key = key->next)
        visit(arg, key->name, key->expire_ms);
}

void sim_keyspace_members(struct sim_keyspace *keys, const char *name,
                          void (*visit)(void *arg, const char *member), void *arg)
{
    const struct sim_key *key = find(keys, name);
    for (const struct member *member = key != NULL ? key->members : NULL; member != NULL;
         member = member->next)
        visit(arg, member->name);
}

double sim_keyspace_score(struct sim_keyspace *keys, const char *name, const char *member)
{
    struct sim_key *key = find(keys, name);
    const struct member *one = key != NULL ? *place_of(key, member) : NULL;
    return one != NULL ? one->score : (double)NAN;
}

const char *sim_keyspace_field(struct sim_keyspace *keys, const char *name, const char *field)
{
    struct sim_key *key = find(keys, name);
    const struct member *one = key != NULL ? *place_of(key, field) : NULL;
    return one != NULL ? one->value : NULL;
}

const char *sim_keyspace_string(struct sim_keyspace *keys, const char *name)
{
    const struct sim_key *key = find(keys, name);
    return key != NULL && key->type == STRING ? key->value : NULL;
}
