/* SPDX-License-Identifier: MIT */
/* pool_inside.h - the virtual pool as lane.c, pool.c and subscriber.c see it. */
#ifndef SIM_POOL_INSIDE_H
#define SIM_POOL_INSIDE_H

#include "pool/backoff.h"
#include "pool/confirmation.h"
#include "pool/pool.h"
#include "tests/sim/wire.h"

struct redisReader;
struct sim_topology;

enum sim_lane_state { COLD, DIALING, UP, CLOSED };

struct hfi_lane {
    struct hfi_pool *pool;
    enum hfi_lane_kind kind;
    int index;
    enum sim_lane_state state;
    bool failed; /* the last dial did, and the next is not over */
    unsigned cuts;
    bool silent; /* the last connection fell silent: whether the server answers a dial is not known yet */
    bool finishing, drop_after, again;
    struct hfi_list queue, flight, held, finished;
    int64_t written; /* by the last ROLE in front of a WAIT; */
    int connected;   /* how many replicas, by the last one behind it */
    bool confirming, confirms_again;
    struct sim_wire *wire;
    struct redisReader *parser;
    struct hfi_backoff backoff;
    int64_t dial_number; /* of the step of a dial that counts */
    int loads_left;
    struct hfi_command *floor; /* of the handshake under way */
    bool clock_by_key;         /* the server of `wire` refuses TIME in scripts */
    int64_t greeting_sent;
    int64_t rtt_ns, answered_ns, up_ns;
    int64_t up_at; /* true time */
    uint32_t times_up;
    char run_id[48];
    int64_t look_at, look_number;
    uint64_t commands;
};

struct sim_channel {
    struct sim_channel *next;
    int uses;
    bool asked, live;
    size_t size;
    char name[];
};

struct sim_subscriber {
    struct sim_wire *wire; /* NULL: none */
    struct sim_channel *channels;
    struct hfi_backoff backoff;
    bool served;
    int64_t number; /* of the dial that counts */
    bool prove;     /* a PING is wanted, behind what is asked */
    bool hearing;   /* whoever tells of it may have stopped on the way */
};

struct hfi_pool {
    struct hfi_pool_settings settings;
    struct hfi_pool_ops ops;
    void *self;
    struct sim_process *process;
    struct hfi_lane *lanes;
    int lane_count;
    struct sim_subscriber subscriber;
    struct hfi_losses losses;
    struct hfi_park quiet; /* a dial's verdict; while closing, commands that ended */
    int verdicts, kicks;   /* kicks: ops.kicked that run */
    uint64_t chosen;       /* lanes so far, for names and reads */
    bool hurried, closing, closed, closed_short;
    hf_error why;
    struct hfi_server server;
    struct sim_topology *topology; /* NULL: one server */
    struct hfi_replicas needed;    /* that have to confirm, */
    bool knows_needed;             /* if that is known */
    bool is_redirected;
    int asked_reign; /* of the server that it has asked for all its leases at once */
    int met; /* the server that a lane has met last, by its epoch; 0: none yet */
};

/* lane.c */
struct hfi_lane *sim_lane_warm(struct hfi_lane *lane); /* dialled, if nobody has asked for it yet */
/* Ends everything in flight as unanswered. silent: new commands are refused until a dial was answered. */
void sim_lane_give_up(struct hfi_lane *lane, bool silent, const char *why);
void sim_lane_finish(struct hfi_lane *lane);
/* True: the thread with the read role, or one that hands out outcomes, has stopped half-way. */
bool sim_lane_is_busy(const struct hfi_lane *lane);
void sim_lane_hurry(struct hfi_lane *lane, int64_t until_ns);
void sim_lane_settle(struct hfi_lane *lane, struct hfi_command *command, enum hfi_outcome outcome);
void sim_lane_redirect(struct hfi_lane *lane, const char *why); /* another server is meant: that one is dialled at once */

void sim_lane_lists(const struct hfi_command *command, bool counts); /* tokens.c: a client's command takes its place, and
                                                                        counts as a question if it is one */

/* pool.c */
void sim_pool_moves(struct hfi_pool *pool); /* the sentinels name another primary */
/* The server to dial. */
enum hfi_where sim_pool_primary(const struct hfi_pool *pool, struct sim_server **server);

/* confirm.c */
bool sim_lane_is_confirmation(const struct hfi_command *command);
bool sim_lane_needs_confirmation(const struct hfi_lane *lane, const struct hfi_command *command);
bool sim_lane_ask_for_confirmation(struct hfi_lane *lane, int64_t now_ns); /* true: it is queued */
void sim_lane_take_answer(struct hfi_lane *lane, struct hfi_command *command);
void sim_lane_drop_held(struct hfi_lane *lane);

/* asking.c */
void sim_topologies_begin(void);
void sim_topologies_cut(void);
void sim_topologies_heal(void);
struct sim_topology *sim_topology_new(struct hfi_pool *pool);
enum hfi_where sim_topology_primary(const struct sim_topology *topology, struct sim_server **server);
void sim_topology_doubt(struct sim_topology *topology);
void sim_topology_was_short(struct sim_topology *topology);

/* subscriber.c */
void sim_subscriber_gives_up(struct hfi_pool *pool);
void sim_subscriber_begin(struct hfi_pool *pool);
void sim_subscriber_end(struct hfi_pool *pool);

#endif
