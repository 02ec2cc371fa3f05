/* SPDX-License-Identifier: MIT */
/* members.c - the sorted sets and hashes of keyspace.c. */
#include "tests/sim/keyspace_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- sorted sets ---- */

struct member **sim_key_place_of(struct sim_key *key, const char *name)
{
    struct member **at = &key->members;
    while (*at != NULL && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    return at;
}

static bool take_out(struct sim_keyspace *keys, struct sim_key *key, const char *name)
{
    struct member **at = sim_key_place_of(key, name), *member = *at;
    if (member == NULL)
        return false;
    *at = member->next;
    free(member->name);
    free(member->value);
    free(member);
    if (key->members == NULL)
        sim_key_drop(keys, key, "del");
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
            sim_key_tell(keys, event, words->text[1], words->text[i]);
        if (last)
            key = NULL;
    }
    return count;
}

int64_t sim_key_count(const struct sim_key *key)
{
    int64_t count = 0;
    for (const struct member *member = key != NULL ? key->members : NULL; member != NULL; member = member->next)
        count++;
    return count;
}

bool sim_say_count(struct sim_keyspace *keys, const struct sim_words *words, enum type type, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], type, reply, &key))
        return false;
    sim_say_number(reply, sim_key_count(key));
    return true;
}

static bool add_member(struct sim_keyspace *keys, struct sim_key *key, double score, const char *name)
{
    struct member **at = sim_key_place_of(key, name), *member = *at;
    bool is_new = member == NULL, changed = is_new || member->score != score;
    if (is_new) {
        member = calloc(1, sizeof *member);
        if (member == NULL)
            abort();
        member->name = sim_key_copy(name, strlen(name));
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
        sim_key_tell(keys, "zadd", key->name, member->name);
    return is_new;
}

bool sim_zadd(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    bool only_old = strcmp(words->text[2], "XX") == 0;
    int first = only_old ? 3 : 2, added = 0;
    for (int i = first; i < words->count; i += 2) {
        char *end;
        (void)strtod(words->text[i], &end);
        if (*end != 0 || words->size[i] == 0 || i + 1 == words->count)
            return sim_refuse(reply, "ERR value is not a valid float");
    }
    if (!sim_key_typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    if (key == NULL && !only_old)
        key = sim_key_make(keys, words->text[1], ZSET);
    for (int i = first; i < words->count && key != NULL; i += 2)
        if (!only_old || *sim_key_place_of(key, words->text[i + 1]) != NULL)
            added += add_member(keys, key, strtod(words->text[i], NULL), words->text[i + 1]);
    sim_say_number(reply, added);
    return true;
}

/* From -inf to below a score, the only range that the scripts remove. */
bool sim_zremrangebyscore(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    int64_t count = 0;
    if (strcmp(words->text[2], "-inf") != 0 || words->text[3][0] != '(')
        return sim_refuse(reply, "ERR the virtual server knows no such range");
    if (!sim_key_typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    double below = strtod(words->text[3] + 1, NULL);
    while (key != NULL && key->members->score < below) {
        char *name = sim_key_copy(key->members->name, strlen(key->members->name));
        bool last = key->members->next == NULL;
        (void)take_out(keys, key, name);
        sim_key_tell(keys, "zrem", words->text[1], name);
        free(name);
        key = last ? NULL : key;
        count++;
    }
    sim_say_number(reply, count);
    return true;
}

bool sim_zrem(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    sim_say_number(reply, take_all_out(keys, key, words, "zrem"));
    return true;
}

bool sim_zcard(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return sim_say_count(keys, words, ZSET, reply);
}

bool sim_zrange(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    bool scores = words->count > 4 && strcmp(words->text[4], "WITHSCORES") == 0;
    int64_t from = strtoll(words->text[2], NULL, 10), to = strtoll(words->text[3], NULL, 10), at = 0, found;
    if (!sim_key_typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    const struct member *first = key != NULL ? key->members : NULL;
    int64_t count = sim_key_count(key);
    from = from < 0 ? from + count : from;
    from = from < 0 ? 0 : from;
    to = to < 0 ? to + count : to;
    to = to >= count ? count - 1 : to;
    found = to >= from ? to - from + 1 : 0;
    sim_reply_number(reply, '*', scores ? 2 * found : found);
    for (const struct member *member = first; member != NULL; member = member->next, at++) {
        if (at < from || at > to)
            continue;
        sim_say_text(reply, member->name);
        if (scores)
            sim_say_score(reply, member->score);
    }
    return true;
}

static bool rank_or_score(struct sim_keyspace *keys, const struct sim_words *words, bool rank,
                          struct hfi_buffer *reply)
{
    struct sim_key *key;
    int64_t at = 0;
    if (!sim_key_typed(keys, words->text[1], ZSET, reply, &key))
        return false;
    const struct member *member = key != NULL ? key->members : NULL;
    for (; member != NULL && strcmp(member->name, words->text[2]) != 0; member = member->next)
        at++;
    if (member == NULL)
        sim_reply_nil(reply);
    else if (rank)
        sim_say_number(reply, at);
    else
        sim_say_score(reply, member->score);
    return true;
}

bool sim_zrank(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return rank_or_score(keys, words, true, reply);
}

bool sim_zscore(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return rank_or_score(keys, words, false, reply);
}

/* ---- hashes ---- */

bool sim_hset(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (words->count % 2 != 0)
        return sim_refuse(reply, "ERR wrong number of arguments for 'hset' command");
    if (!sim_key_typed(keys, words->text[1], HASH, reply, &key))
        return false;
    if (key == NULL)
        key = sim_key_make(keys, words->text[1], HASH);
    int count = 0;
    for (int i = 2; i < words->count; i += 2) {
        struct member **at = sim_key_place_of(key, words->text[i]), *field = *at;
        count += field == NULL;
        if (field == NULL) {
            field = *at = calloc(1, sizeof *field);
            if (field == NULL)
                abort();
            field->name = sim_key_copy(words->text[i], words->size[i]);
        }
        free(field->value);
        field->value = sim_key_copy(words->text[i + 1], words->size[i + 1]);
        sim_key_tell(keys, "hset", key->name, field->name);
    }
    sim_say_number(reply, count);
    return true;
}

bool sim_hkeys(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], HASH, reply, &key))
        return false;
    sim_reply_number(reply, '*', sim_key_count(key));
    for (const struct member *field = key != NULL ? key->members : NULL; field != NULL; field = field->next)
        sim_say_text(reply, field->name);
    return true;
}

bool sim_hlen(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    return sim_say_count(keys, words, HASH, reply);
}

bool sim_hget(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], HASH, reply, &key))
        return false;
    const struct member *field = key != NULL ? *sim_key_place_of(key, words->text[2]) : NULL;
    if (field == NULL)
        sim_reply_nil(reply);
    else
        sim_say_text(reply, field->value);
    return true;
}

bool sim_hdel(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply)
{
    struct sim_key *key;
    if (!sim_key_typed(keys, words->text[1], HASH, reply, &key))
        return false;
    sim_say_number(reply, take_all_out(keys, key, words, "hdel"));
    return true;
}
