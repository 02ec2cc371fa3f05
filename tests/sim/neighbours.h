/* SPDX-License-Identifier: MIT */
/* neighbours.h - other programs with whom our locks are shared, in a dialect: what is drawn of them, how a lock is spelled there
 * (spelling.c), how they live (neighbours.c), and what must hold between them and us (beside.c). */
#ifndef SIM_NEIGHBOURS_H
#define SIM_NEIGHBOURS_H

#include "core/protocol/scripts.h"
#include "tests/sim/history.h"

enum sim_recipe { SIM_STRING, SIM_SIGNAL, SIM_SPRING, SIM_REDISSON, SIM_SETNX, SIM_SET, SIM_COUNTER, SIM_TOKENS };

#define SIM_THEIRS_MOST 3
#define SIM_PLAIN_LOCK (SIM_LOCKS - 1) /* of no dialect, beside those of one, where only part of the acquires name it */

struct sim_beside { /* as the seed has it; recipe and the rest mean nothing unless `on` */
    bool on;
    enum sim_recipe recipe;
    char dialect[40];
    int room;      /* so many hold it at a time */
    int count;     /* of neighbours */
    bool by_call;  /* the clients are opened without the dialect, and part of the acquires name it */
    bool mild;     /* nothing of ours is hurt: no lease is lost, and the bounds hold all the time */
    bool hears;    /* mild, and all clients hear of key events: what is let go is taken at once, not after a re-check */
    bool contends; /* for so long that the others' turn comes */
};
extern struct sim_beside sim_beside;

/* spelling.c */
void sim_beside_draw(void);
bool sim_is_beside(int lock); /* it is shared with them */
void sim_beside_key(char *out, size_t room, int lock);                        /* what a library calls it at the server */
void sim_beside_side(char *out, size_t room, const char *kind, int lock);      /* "queue", "wait", "lease" */
int sim_beside_lock(const char *key);                                          /* whose key it is; -1: none's */
bool sim_beside_has(const char *token, int lock); /* the server has it marked as this token's */
/* As sim_tokens_holder: a token of ours, another word, NULL. Of several: NULL where one more would get it. */
const char *sim_beside_holder(int lock);
int sim_beside_records(int lock); /* tokens of ours in the hash of leases, over or not */
bool sim_beside_is_recorded(const struct sim_process *process, int lock); /* it has a token there */
int sim_beside_marks(int lock);   /* what the server has of counts, of the member, of tokens that are there */
bool sim_beside_is_left(int lock); /* it is left to the others now */
/* It is left to them, and to who tracks the key its being gone is news each time: a process asks every 10 ms then. */
bool sim_beside_is_noisy(int lock);
int sim_beside_misses(int lock);   /* so often they have missed that in a row */
const char *sim_beside_rest(int lock); /* what is not as it was when nobody had it; NULL: nothing */
bool sim_beside_has_end(int lock); /* the key that is there, if one is, ends by itself */
int64_t sim_ask_server(const char **text, const char *first, ...) __attribute__((sentinel)); /* a command, at this moment */
#define SIM_NIL     INT64_MIN       /* its answer, */
#define SIM_REFUSED (INT64_MIN + 1) /* or an error; *text: that of a bulk reply, until the next command */

struct hfi_command;
bool sim_beside_is_spoken(const struct hfi_command *command, enum hfi_dialect_script which); /* it is some dialect's script */

/* neighbours.c */
void sim_neighbours_begin(void);
bool sim_neighbours_are_over(void);
int sim_neighbours_hold(int lock);  /* so many, in their own and in the server's view */
int sim_neighbours_marks(int lock); /* so many of their marks are at the server, dead ones' too */
bool sim_neighbours_serve(void);    /* a command or script is over: who waits for an element of a list gets it. False: nobody waited */
void sim_neighbours_hear(const char *channel, size_t size);
int64_t sim_neighbours_wait_since(int lock); /* since when one of them has waited; -1: none does */
bool sim_neighbours_were_told(int lock);     /* by this script, as their recipe is told of a release */
void sim_neighbours_script_over(const char *script, const char *key);

/* beside.c */
void sim_beside_begin(void);
void sim_beside_look(int lock);
int64_t sim_beside_broken_at(int lock); /* when an operator took it from one of us, by force; -1: never */
void sim_beside_changed(const char *event, const char *key, const char *value);
void sim_beside_script_ran(const char *script, const struct sim_words *words);
void sim_beside_look_at_the_end(void);

#endif
