/* SPDX-License-Identifier: MIT */
/* keyspace.c - see keyspace.h. A history has a dozen keys, so a linear search is enough. */
#include "tests/sim/keyspace_inside.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_MOST 9e15 /* a double that is whole and below this is written with all its digits and no fraction */

/* ---- replies ---- */

void sim_say_number(struct hfi_buffer *reply, int64_t number)
{
    sim_reply_number(reply, ':', number);
}

void sim_say_text(struct hfi_buffer *reply, const char *text)
{
    sim_reply_bulk(reply, text, strlen(text));
}

bool sim_refuse(struct hfi_buffer *reply, const char *text)
{
    sim_reply_error(reply, text);
    return false;
}

static bool refuse_type(struct hfi_buffer *reply)
{
    return sim_refuse(reply, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

size_t sim_number_text(char *text, size_t room, double number)
{
    bool whole =
        fabs(number) < WHOLE_MOST && number == (double)(int64_t)number && (number != 0 || !signbit(number));
    return whole ? sim_digits(text, (int64_t)number) : (size_t)snprintf(text, room, "%.17g", number);
}

void sim_say_score(struct hfi_buffer *reply, double score)
{
    char text[40];
    sim_reply_bulk(reply, text, sim_number_text(text, sizeof text, score));
}

/* ---- keys ---- */

char *sim_key_copy(const char *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        abort();
    memcpy(text, bytes, size);
    text[size] = 0;
    return text;
}

void sim_key_tell(struct sim_keyspace *keys, const char *event, const char *key, const char *value)
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

void sim_key_drop(struct sim_keyspace *keys, struct sim_key *key, const char *event)
{
    struct sim_key **at = &keys->first;
    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    if (event != NULL)
        sim_key_tell(keys, event, key->name, "");
    drop_members(key);
    free(key->value);
    free(key->name);
    free(key);
}

static bool is_over(const struct sim_keyspace *keys, const struct sim_key *key)
{
    return key->expire_ms != 0 && keys->now_us / 1000 > key->expire_ms;
}

static void touch(struct sim_keyspace *keys, const char *name)
{
    if (keys->touched != NULL)
        keys->touched(keys->self, name);
}

static struct sim_key *find(struct sim_keyspace *keys, const char *name)
{
    size_t size = strlen(name);
    for (struct sim_key *key = keys->first; key != NULL; key = key->next) {
        if (key->name_size != size || memcmp(key->name, name, size) != 0)
            continue;
        if (!is_over(keys, key))
            return key;
        sim_key_drop(keys, key, "expired");
        touch(keys, name);
        return NULL;
    }
    return NULL;
}

struct sim_key *sim_key_make(struct sim_keyspace *keys, const char *name, enum type type)
{
    struct sim_key *key = calloc(1, sizeof *key);
    if (key == NULL)
        abort();
    key->name_size = strlen(name);
    key->name = sim_key_copy(name, key->name_size);
    key->type = type;
    key->next = keys->first;
    keys->first = key;
    return key;
}

/* Finds the key if it is of this type or missing (NULL). False: it has another type, and the error reply is written. */
bool sim_key_typed(struct sim_keyspace *keys, const char *name, enum type type, struct hfi_buffer *reply,
                  struct sim_key **key)
{
    *key = find(keys, name);
    return *key == NULL || (*key)->type == type || refuse_type(reply);
}

static void put_string(struct sim_keyspace *keys, const char *event, const char *name, const char *bytes, size_t size,
                       int64_t expire_ms)
{
    struct sim_key *key = find(keys, name);
    if (key != NULL)
        sim_key_drop(keys, key, NULL);
    key = sim_key_make(keys, name, STRING);
    key->value = sim_key_copy(bytes, size);
    key->size = size;
    key->expire_ms = expire_ms;
    sim_key_tell(keys, event, name, key->value);
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
                return sim_refuse(reply, "ERR invalid expire time in 'set' command");
            expire_ms = keys->now_us / 1000 + ms;
        } else {
            return sim_refuse(reply, "ERR syntax error");
        }
    }
    if (only_new && key != NULL) {
        sim_reply_nil(reply);
        return true;
    }
    put_string(keys, "set", words->text[1], words->text[2], words->size[2], expire_ms);
    sim_reply_line(reply, '+', "OK");
    return true;
}

static bool get(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], STRING, reply, &key))
        return false;
    if (key == NULL)
        sim_reply_nil(reply);
    else
        sim_reply_bulk(reply, key->value, key->size);
    return true;
}

static bool string_length(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], STRING, reply, &key))
        return false;
    sim_say_number(reply, key == NULL ? 0 : (int64_t)key->size);
    return true;
}

static bool del(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    int count = 0;
    for (int i = 1; i < words->count; i++) {
        struct sim_key *key = find(keys, words->text[i]);
        count += key != NULL;
        if (key != NULL)
            sim_key_drop(keys, key, "del");
    }
    sim_say_number(reply, count);
    return true;
}

static void end_at(struct sim_keyspace *keys, struct sim_key *key, int64_t ms)
{
    key->expire_ms = ms;
    if (keys->moved != NULL)
        keys->moved(keys->self, key->name);
}

static bool pexpire(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key = find(keys, words->text[1]);
    char *end;
    int64_t ms = strtoll(words->text[2], &end, 10);
    if (*end != 0 || words->size[2] == 0)
        return sim_refuse(reply, "ERR value is not an integer or out of range");
    sim_say_number(reply, key != NULL);
    if (key != NULL && ms <= 0)
        sim_key_drop(keys, key, "del");
    else if (key != NULL)
        end_at(keys, key, keys->now_us / 1000 + ms);
    return true;
}

static bool pttl(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    const struct sim_key *key = find(keys, words->text[1]);
    int64_t left = key == NULL ? -2 : key->expire_ms == 0 ? -1 : key->expire_ms - keys->now_us / 1000;
    sim_say_number(reply, left);
    return true;
}

static bool pexpiretime(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    const struct sim_key *key = find(keys, words->text[1]);
    sim_say_number(reply, key == NULL ? -2 : key->expire_ms == 0 ? -1 : key->expire_ms);
    return true;
}

static bool exists(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    int64_t count = 0;
    for (int i = 1; i < words->count; i++)
        count += find(keys, words->text[i]) != NULL;
    sim_say_number(reply, count);
    return true;
}

static bool persist(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key = find(keys, words->text[1]);
    sim_say_number(reply, key != NULL && key->expire_ms != 0);
    if (key != NULL && key->expire_ms != 0)
        end_at(keys, key, 0);
    return true;
}

static bool setnx(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    bool is_new = find(keys, words->text[1]) == NULL;
    if (is_new)
        put_string(keys, "set", words->text[1], words->text[2], words->size[2], 0);
    sim_say_number(reply, is_new);
    return true;
}

static bool getset(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    if (!get(keys, words, reply))
        return false;
    put_string(keys, "set", words->text[1], words->text[2], words->size[2], 0);
    return true;
}

static bool count_by(struct sim_keyspace *keys, const struct sim_words *words, const char *by, struct hfi_buffer *reply)
{
    struct sim_key *key;
    char *end, text[32];
    int64_t step = strtoll(by, &end, 10), number = 0;
    bool whole = *end == 0 && *by != 0;
    if (!sim_key_typed(keys, words->text[1], STRING, reply, &key))
        return false;
    if (key != NULL && whole) {
        number = strtoll(key->value, &end, 10);
        whole = *end == 0 && key->size > 0 && key->size < 21;
    }
    if (!whole)
        return sim_refuse(reply, "ERR value is not an integer or out of range");
    if (__builtin_add_overflow(number, step, &number))
        return sim_refuse(reply, "ERR increment or decrement would overflow");
    (void)sim_digits(text, number);
    put_string(keys, "incrby", words->text[1], text, strlen(text), key != NULL ? key->expire_ms : 0);
    sim_say_number(reply, number);
    return true;
}

static bool incrby(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return count_by(keys, words, words->text[2], reply);
}

static bool incr(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return count_by(keys, words, "1", reply);
}

static bool decr(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return count_by(keys, words, "-1", reply);
}

/* ---- the rest ---- */

static bool publish(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    int64_t heard = keys->publish == NULL ? 0
                                          : keys->publish(keys->self, words->text[1], words->size[1],
                                                          words->text[2], words->size[2]);
    sim_say_number(reply, heard);
    return true;
}

static bool pubsub(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    if (strcmp(words->text[1], "NUMSUB") != 0)
        return sim_refuse(reply, "ERR unknown subcommand: the virtual server does not have it");
    sim_reply_number(reply, '*', 2);
    sim_reply_bulk(reply, words->text[2], words->size[2]);
    sim_say_number(reply, keys->subscribers(keys->self, words->text[2], words->size[2]));
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
        {"TIME", 1, READS, tell_time},  {"HDEL", 3, SHRINKS, sim_hdel},       {"ZREM", 3, SHRINKS, sim_zrem},
        {"SET", 3, GROWS, set},         {"INCRBY", 3, GROWS, incrby},     {"DEL", 2, SHRINKS, del},
        {"PUBLISH", 3, READS, publish}, {"ZRANGE", 4, READS, sim_zrange},     {"ZADD", 4, GROWS, sim_zadd},
        {"HSET", 4, GROWS, sim_hset},       {"HGET", 3, READS, sim_hget},         {"ZRANK", 3, READS, sim_zrank},
        {"ZSCORE", 3, READS, sim_zscore},   {"PERSIST", 2, SHRINKS, persist},
        {"EXISTS", 2, READS, exists},   {"PUBSUB", 3, READS, pubsub},     {"ZCARD", 2, READS, sim_zcard},
        {"PEXPIRETIME", 2, READS, pexpiretime},                           {"STRLEN", 2, READS, string_length},
        {"ZREMRANGEBYSCORE", 4, SHRINKS, sim_zremrangebyscore},
        {"SETNX", 3, GROWS, setnx},     {"GETSET", 3, GROWS, getset},     {"INCR", 2, GROWS, incr},
        {"DECR", 2, GROWS, decr},       {"HKEYS", 2, READS, sim_hkeys},   {"HLEN", 2, READS, sim_hlen},
        {"SADD", 3, GROWS, sim_sadd},   {"SREM", 3, SHRINKS, sim_srem},   {"SISMEMBER", 3, READS, sim_sismember},
        {"SMISMEMBER", 3, READS, sim_smismember}, {"SCARD", 2, READS, sim_scard}, {"LLEN", 2, READS, sim_llen},
        {"LPOP", 2, SHRINKS, sim_lpop}, {"LPUSH", 3, GROWS, sim_lpush},   {"RPUSH", 3, GROWS, sim_rpush},
        {"LRANGE", 4, READS, sim_lrange}};
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
        return sim_refuse(reply, "ERR unknown command or arguments: the virtual server does not have it");
    const char *refusal = refusal_of(keys, command->effect);
    if (refusal != NULL)
        return sim_refuse(reply, refusal);
    keys->wrote = keys->wrote || command->effect != READS;
    bool good = command->run(keys, words, reply);
    if (command->effect != READS) /* all have one key, but DEL, which has nothing else */
        for (int i = 1; i < (command->run == del ? words->count : 2); i++)
            touch(keys, words->text[i]);
    return good;
}

void sim_keyspace_clear(struct sim_keyspace *keys)
{
    while (keys->first != NULL)
        sim_key_drop(keys, keys->first, NULL);
}

static void make_twin(struct sim_keyspace *to, const struct sim_key *key)
{
    struct sim_key *twin = sim_key_make(to, key->name, key->type);
    struct member **end = &twin->members;
    twin->expire_ms = key->expire_ms;
    twin->size = key->size;
    twin->value = key->value != NULL ? sim_key_copy(key->value, key->size) : NULL;
    for (const struct member *member = key->members; member != NULL; member = member->next) {
        struct member *other = calloc(1, sizeof *other);
        if (other == NULL)
            abort();
        other->name = sim_key_copy(member->name, strlen(member->name));
        other->value = member->value != NULL ? sim_key_copy(member->value, strlen(member->value)) : NULL;
        other->score = member->score;
        *end = other;
        end = &other->next;
    }
}

void sim_keyspace_copy(struct sim_keyspace *to, const struct sim_keyspace *from)
{
    sim_keyspace_clear(to);
    for (const struct sim_key *key = from->first; key != NULL; key = key->next)
        make_twin(to, key);
}

/* Over or not: whoever gets a copy has a clock of its own. */
static struct sim_key *named(const struct sim_keyspace *keys, const char *name)
{
    struct sim_key *key = keys->first;
    while (key != NULL && strcmp(key->name, name) != 0)
        key = key->next;
    return key;
}

void sim_keyspace_copy_key(struct sim_keyspace *to, const struct sim_keyspace *from, const char *name)
{
    struct sim_key *old = named(to, name);
    const struct sim_key *key = named(from, name);
    if (old != NULL)
        sim_key_drop(to, old, NULL);
    if (key != NULL)
        make_twin(to, key);
}

const char *sim_keyspace_look(const struct sim_keyspace *keys, const char *name, int64_t *expire_ms, bool *over)
{
    const struct sim_key *key = named(keys, name);
    if (key == NULL || key->type != STRING)
        return NULL;
    *expire_ms = key->expire_ms;
    *over = is_over(keys, key);
    return key->value;
}

bool sim_keyspace_evict(struct sim_keyspace *keys, const char *name)
{
    struct sim_key *key = find(keys, name);
    if (key != NULL)
        sim_key_drop(keys, key, "evicted");
    return key != NULL;
}

void sim_keyspace_expire(struct sim_keyspace *keys)
{
    for (struct sim_key *key = keys->first, *next; key != NULL; key = next) {
        next = key->next;
        if (is_over(keys, key))
            sim_key_drop(keys, key, "expired");
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
    const struct member *one = key != NULL ? *sim_key_place_of(key, member) : NULL;
    return one != NULL ? one->score : (double)NAN;
}

const char *sim_keyspace_field(struct sim_keyspace *keys, const char *name, const char *field)
{
    struct sim_key *key = find(keys, name);
    const struct member *one = key != NULL ? *sim_key_place_of(key, field) : NULL;
    return one != NULL ? one->value : NULL;
}

const char *sim_keyspace_first(struct sim_keyspace *keys, const char *name)
{
    const struct sim_key *key = find(keys, name);
    return key != NULL && key->members != NULL ? key->members->name : NULL;
}

const char *sim_keyspace_string(struct sim_keyspace *keys, const char *name)
{
    const struct sim_key *key = find(keys, name);
    return key != NULL && key->type == STRING ? key->value : NULL;
}
