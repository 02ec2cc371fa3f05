/* SPDX-License-Identifier: MIT */
/* keyspace.h - the keys of a Redis server and the few commands that holdfast's scripts and lanes send, answered in
 * RESP as Redis 7 answers them. Pure: it gets the time as an argument and knows no network. */
#ifndef SIM_KEYSPACE_H
#define SIM_KEYSPACE_H

#include "base/buffer.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SIM_WORDS_MOST 260

struct sim_words { /* a command, or what a script is called with */
    int count;
    const char *text[SIM_WORDS_MOST]; /* each ends with a NUL byte beyond its size */
    size_t size[SIM_WORDS_MOST];
};

enum sim_refusal { SIM_TAKES_ALL, SIM_NO_MEMORY, SIM_NO_DISK };

struct sim_key;
struct sim_keyspace {
    struct sim_key *first;
    int64_t now_us; /* the server's clock; frozen while a script runs */
    enum sim_refusal refuses;
    bool wrote; /* the running script has written: from then on the memory limit refuses none of its commands */
    const char *forbidden, *forbidden_key; /* a command that scripts may not run (NULL: none), on this key (NULL: on any) */
    /* What the keyspace tells its server; `self` is for them. */
    void *self;
    int64_t (*publish)(void *self, const char *channel, size_t channel_size, const char *message,
                       size_t size);
    int64_t (*subscribers)(void *self, const char *channel, size_t channel_size);
    /* set, del, expired, evicted, zadd, zrem: as key events; `value` is the new value or the member. */
    void (*changed)(void *self, const char *event, const char *key, const char *value);
    /* It ends at another time now. May be NULL. */
    void (*moved)(void *self, const char *key);
    /* A command that writes has run on this key, or it has expired: replicas are to get what it is now. May be NULL. */
    void (*touched)(void *self, const char *key);
};

/* The error with which a server that is out of memory or cannot save refuses this command; NULL: it runs it. */
const char *sim_keyspace_refusal(const struct sim_keyspace *keys, const struct sim_words *words);
/* Runs one command and appends its reply. False: an unknown command or wrong arguments, answered by an error. */
bool sim_keyspace_run(struct sim_keyspace *keys, const struct sim_words *words, struct hfi_buffer *reply);
void sim_keyspace_clear(struct sim_keyspace *keys); /* everything is gone, nobody is told */
/* Copies all keys to `to`, which is empty or loses what it has; `changed` is not called. */
void sim_keyspace_copy(struct sim_keyspace *to, const struct sim_keyspace *from);
/* The same with one key. Where it is missing it is removed. */
void sim_keyspace_copy_key(struct sim_keyspace *to, const struct sim_keyspace *from, const char *name);
/* When a string ends, by the server's clock (ms; 0: never), and whether that is over, noticed or not. NULL: there is none. */
const char *sim_keyspace_look(const struct sim_keyspace *keys, const char *key, int64_t *expire_ms, bool *over);
/* As eviction does. False: there is no such key. */
bool sim_keyspace_evict(struct sim_keyspace *keys, const char *key);
/* Removes what has expired, as the active expiry does. */
void sim_keyspace_expire(struct sim_keyspace *keys);
/* Visits every key with its name and its expiry (ms of the server's clock; 0: none). */
void sim_keyspace_each(struct sim_keyspace *keys,
                       void (*visit)(void *arg, const char *key, int64_t expire_ms), void *arg);
/* Visits the members of a sorted set, in its order. */
void sim_keyspace_members(struct sim_keyspace *keys, const char *key,
                          void (*visit)(void *arg, const char *member), void *arg);
double sim_keyspace_score(struct sim_keyspace *keys, const char *key, const char *member); /* NAN: none */
const char *sim_keyspace_field(struct sim_keyspace *keys, const char *key, const char *field); /* of a hash; NULL: none */
const char *sim_keyspace_first(struct sim_keyspace *keys, const char *key); /* field or member; NULL: there is none */
const char *sim_keyspace_string(struct sim_keyspace *keys, const char *key); /* NULL: none */

/* The framing. Parses one command from the front of the bytes; returns its length in bytes, 0 if it is not complete. */
size_t sim_words_parse(struct sim_words *words, char *bytes, size_t size);
void sim_reply_bulk(struct hfi_buffer *reply, const void *bytes, size_t size);
void sim_reply_nil(struct hfi_buffer *reply);
void sim_reply_number(struct hfi_buffer *reply, char kind,
                      int64_t number); /* ':', or '*' and how many follow */
void sim_reply_line(struct hfi_buffer *reply, char kind, const char *text); /* '+' */
void sim_reply_error(struct hfi_buffer *reply, const char *text);
size_t sim_number_text(char *text, size_t room, double number); /* as %.17g */
size_t sim_digits(char *text, int64_t number); /* with a NUL byte at the end; how many bytes before it */

/* Commands are written in capitals, by scripts and lanes alike. */
static inline bool sim_is(const struct sim_words *words, const char *command)
{
    size_t size = strlen(command);
    return words->size[0] == size && memcmp(words->text[0], command, size) == 0;
}

#endif
