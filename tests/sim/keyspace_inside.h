/* SPDX-License-Identifier: MIT */
/* keyspace_inside.h - what keyspace.c, members.c (sorted sets and hashes) and collections.c (sets and lists) share. */
#ifndef SIM_KEYSPACE_INSIDE_H
#define SIM_KEYSPACE_INSIDE_H

#include "tests/sim/keyspace.h"

enum type { STRING, ZSET, HASH, SET, LIST };

struct member { /* of a sorted set or a list, in its order; of a set; or a field of a hash */
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

void sim_say_number(struct hfi_buffer *reply, int64_t number);
void sim_say_text(struct hfi_buffer *reply, const char *text);
bool sim_refuse(struct hfi_buffer *reply, const char *text);
void sim_say_score(struct hfi_buffer *reply, double score);
char *sim_key_copy(const char *bytes, size_t size);
void sim_key_tell(struct sim_keyspace *keys, const char *event, const char *key, const char *value);
void sim_key_drop(struct sim_keyspace *keys, struct sim_key *key, const char *event);
struct sim_key *sim_key_make(struct sim_keyspace *keys, const char *name, enum type type);
bool sim_key_typed(struct sim_keyspace *keys, const char *name, enum type type, struct hfi_buffer *reply, struct sim_key **key);
int64_t sim_key_count(const struct sim_key *key); /* of its members; NULL: there is none */
bool sim_say_count(struct sim_keyspace *keys, const struct sim_words *words, enum type type, struct hfi_buffer *reply);
struct member **sim_key_place_of(struct sim_key *key, const char *name);

typedef bool sim_command(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply);
sim_command sim_zadd, sim_zremrangebyscore, sim_zrem, sim_zcard, sim_zrange, sim_zrank, sim_zscore, sim_hset, sim_hget, sim_hdel;
sim_command sim_hkeys, sim_hlen, sim_sadd, sim_srem, sim_sismember, sim_smismember, sim_scard, sim_llen, sim_lpop, sim_lpush, sim_rpush,
    sim_lrange;

#endif
