/* SPDX-License-Identifier: MIT */
/* server.h - the virtual Redis server: its clock, its keys, its subscribers, and its faults. */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include "tests/sim/keyspace.h"
#include "tests/sim/wire.h"

#define SIM_SERVERS 3
#define SIM_SCRIPTS_MOST 160 /* of both sets, dialects' included */

struct sim_host;

struct sim_server {
    struct sim_host *host; /* NULL: it is alone */
    struct sim_keyspace keys;
    bool up;
    int epoch;                   /* the incarnation whose connections are served; a restart or failover begins
                                  * another */
    int64_t ids;                 /* of connections, so far in this run */
    int64_t clock_us, clock_ppm; /* at true time 0, and its rate */
    int64_t started;
    int64_t frozen_until;
    bool scripts_known[SIM_SCRIPTS_MOST]; /* in the order of server.c's script_at */
    bool speaks;            /* dialects' scripts too */
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
extern struct sim_server *sim_server; /* whose command runs; at all other times the one that counts */
extern struct sim_server *sim_server_that_counts; /* the only one, or the newest primary: what promises are compared with */
extern struct sim_server sim_servers[SIM_SERVERS]; /* all but the first stay as they are unless there are replicas (hosts.h) */

void sim_server_begin(void);
void sim_server_listens(struct sim_keyspace *keys); /* its keys tell their server from now on */
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
void sim_server_flush(void); /* FLUSHALL */

/* WAIT has this answer: the connection goes on with what came meanwhile. */
void sim_server_answers_wait(struct sim_wire *wire, int count);

bool sim_server_is_heard(const char *channel); /* a message there would be counted as received */

/* tokens.c: what the oracle wants to know. */
void sim_key_changed(const char *event, const char *key, const char *value);
void sim_script_over(void); /* whatever it has answered */
void sim_command_over(void); /* or the script, or the transaction, at one of several servers */
void sim_script_ran(const char *script, const struct sim_words *words, const struct sim_process *process);

#endif
