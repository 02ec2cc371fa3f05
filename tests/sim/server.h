/* SPDX-License-Identifier: MIT */
/* server.h - the virtual Redis server: its clock, its keys, its subscribers, and its faults. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "tests/sim/keyspace.h"
#include "tests/sim/wire.h"

struct sim_server {
    struct sim_keyspace keys;
    bool up;
    int epoch;                   /* the incarnation whose connections are served; a restart or failover begins
                                  * another */
    int64_t clock_us, clock_ppm; /* at true time 0, and its rate */
    int64_t started;
    int64_t frozen_until;
    uint64_t scripts_known; /* a bit each, in the order of server.c's script_at */
    int scripts_refused;    /* NOSCRIPT was said so often */
    bool takes_subscribers;                        /* false: no pub/sub at all */
    int lost_percent, twice_percent, late_percent; /* of messages */
    int64_t late_most;
    int64_t spared_ns; /* so long after a loss nothing more is lost on that connection */
    char notify[16]; /* notify-keyspace-events */
    bool refuses_config; /* so clients track keys */
    bool in_script; /* what changes now is a script's doing */
    uint64_t commands, scripts, messages;
};
extern struct sim_server sim_server;

void sim_server_begin(void);
int64_t sim_server_us(void);
void sim_server_step(int64_t us); /* the clock jumps */
void sim_server_freeze(int64_t until);
/* A crash: the server is down until then; its data stays or is lost; its clock is moved by `step_us`. */
enum sim_old_end { SIM_CLOSED, SIM_SILENT, SIM_DEMOTED }; /* what the old connections come to */
void sim_server_crash(int64_t until, bool keeps_data, int64_t step_us, enum sim_old_end old_end);
void sim_server_refuse(enum sim_refusal refuses);
/* Drops all scripts (SCRIPT FLUSH), or one, to make room for others', as a server does from 7.4 on. */
void sim_server_forget_scripts(bool all);
/* Restores the snapshot of the keys: a failover loses the last writes. */
void sim_server_remember(void);
bool sim_server_forget_since(void);                                      /* false: nothing was remembered */
void sim_server_set(const char *key, const char *value, int64_t ttl_ms); /* another program's doing */
void sim_server_del(const char *key);

bool sim_server_is_heard(const char *channel); /* a message there would be counted as received */

/* tokens.c: what the oracle wants to know. */
void sim_key_changed(const char *event, const char *key, const char *value);
void sim_script_over(void); /* whatever it has answered */
void sim_script_ran(const char *script, const struct sim_words *words);

#endif
