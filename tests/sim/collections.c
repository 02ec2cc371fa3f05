/* SPDX-License-Identifier: MIT */
/* collections.c - the sets and lists of keyspace.c. Their events come as a real server's: one for a command, then `del`. */
#include "tests/sim/keyspace_inside.h"

#include <stdlib.h>

static void put(struct member **at, const char *name)
{
    struct member *member = calloc(1, sizeof *member);
    if (member == NULL)
        abort();
    member->name = sim_key_copy(name, strlen(name));
    member->next = *at;
    *at = member;
}

static void take_away(struct member **at)
{
    struct member *member = *at;
    *at = member->next;
    free(member->name);
    free(member);
}

/* Some have been taken away. */
static void tell(struct sim_keyspace *keys, struct sim_key *key, const char *event, const char *value)
{
    sim_key_tell(keys, event, key->name, value);
    if (key->members == NULL)
        sim_key_drop(keys, key, "del");
}

/* ---- sets ---- */

bool sim_sadd(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    int64_t added = 0;
    if (!sim_key_typed(keys, words->text[1], SET, reply, &key))
        return false;
    if (key == NULL)
        key = sim_key_make(keys, words->text[1], SET);
    for (int i = 2; i < words->count; i++) {
        struct member **at = sim_key_place_of(key, words->text[i]);
        if (*at != NULL)
            continue;
        put(at, words->text[i]);
        added++;
    }
    if (added > 0)
        sim_key_tell(keys, "sadd", words->text[1], words->text[2]);
    sim_say_number(reply, added);
    return true;
}

bool sim_srem(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    int64_t removed = 0;
    if (!sim_key_typed(keys, words->text[1], SET, reply, &key))
        return false;
    for (int i = 2; i < words->count && key != NULL; i++) {
        struct member **at = sim_key_place_of(key, words->text[i]);
        if (*at == NULL)
            continue;
        take_away(at);
        removed++;
    }
    if (removed > 0)
        tell(keys, key, "srem", words->text[2]);
    sim_say_number(reply, removed);
    return true;
}

static bool has(struct sim_key *key, const char *name)
{
    return key != NULL && *sim_key_place_of(key, name) != NULL;
}

bool sim_sismember(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], SET, reply, &key))
        return false;
    sim_say_number(reply, has(key, words->text[2]));
    return true;
}

bool sim_smismember(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], SET, reply, &key))
        return false;
    sim_reply_number(reply, '*', words->count - 2);
    for (int i = 2; i < words->count; i++)
        sim_say_number(reply, has(key, words->text[i]));
    return true;
}

bool sim_scard(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return sim_say_count(keys, words, SET, reply);
}

/* ---- lists ---- */

bool sim_llen(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return sim_say_count(keys, words, LIST, reply);
}

bool sim_lpop(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], LIST, reply, &key))
        return false;
    if (key == NULL) {
        sim_reply_nil(reply);
        return true;
    }
    sim_say_text(reply, key->members->name);
    take_away(&key->members);
    tell(keys, key, "lpop", "");
    return true;
}

static bool push(struct sim_keyspace *keys, const struct sim_words *words, bool in_front, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], LIST, reply, &key))
        return false;
    if (key == NULL)
        key = sim_key_make(keys, words->text[1], LIST);
    for (int i = 2; i < words->count; i++) {
        struct member **at = &key->members;
        while (!in_front && *at != NULL)
            at = &(*at)->next;
        put(at, words->text[i]);
    }
    sim_say_number(reply, sim_key_count(key));
    sim_key_tell(keys, in_front ? "lpush" : "rpush", words->text[1], words->text[2]);
    return true;
}

bool sim_lpush(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return push(keys, words, true, reply);
}

bool sim_rpush(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return push(keys, words, false, reply);
}

bool sim_lrange(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], LIST, reply, &key))
        return false;
    int64_t count = sim_key_count(key), from = strtoll(words->text[2], NULL, 10), to = strtoll(words->text[3], NULL, 10), at = 0;
    from = from < 0 ? from + count : from;
    from = from < 0 ? 0 : from;
    to = to < 0 ? to + count : to;
    to = to >= count ? count - 1 : to;
    sim_reply_number(reply, '*', to >= from ? to - from + 1 : 0);
    for (const struct member *member = key != NULL ? key->members : NULL; member != NULL; member = member->next, at++)
        if (at >= from && at <= to)
            sim_say_text(reply, member->name);
    return true;
}
