/* SPDX-License-Identifier: MIT */
/* wire.h - the virtual network: connections that carry bytes in order, late, not at all, or only after one end has
 * given up. It knows neither Redis nor lanes. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "tests/sim/world.h"

#include <stddef.h>

struct sim_server;

enum sim_packet_kind { SIM_BYTES, SIM_MESSAGE, SIM_NIL_MESSAGE, SIM_END };

struct sim_packet {
    struct sim_packet *next;
    int64_t due;
    enum sim_packet_kind kind;
    size_t size;
    char bytes[]; /* one NUL byte more */
};

struct sim_wire {
    int64_t id;           /* CLIENT ID: another run of the server may give it to somebody else */
    struct hfi_list link; /* all wires of the history, from the first to the last */
    struct sim_process *process;
    struct sim_server *server; /* at its other end */
    int epoch;                 /* of that one, when it was dialled */
    bool client_open, server_open;
    bool receiving; /* the client's read handler runs or has stopped half-way: new packets wait */
    bool
        demoted; /* the server is a replica now: it refuses commands, and forwards what its primary publishes */
    int64_t last_up, last_down; /* arrival time of the last packet each way; the next one arrives after it */
    int64_t up_stalled_until, down_stalled_until;
    struct sim_packet *up, **up_end, *down, **down_end;
    /* The client's end, set by the code that dialled, in the name of its process. */
    void *client;
    void (*received)(void *client, struct sim_packet *packet);
    void (*broken)(void *client);
    /* The server's. */
    bool in_multi, aborted;
    struct sim_wire_channel *channels;
    struct sim_wire_channel *tracked; /* keys whose next change is told */
    int64_t tracker;                  /* to the wire of this id; 0: CLIENT TRACKING was not said */
    bool caching;                     /* CLIENT CACHING YES was, for the next command or this transaction */
    int64_t spared_until; /* no message is lost before */
    struct sim_packet *transaction, **transaction_end;
    bool waits; /* for replicas: what comes meanwhile is kept */
    int wait_for; /* so many, */
    int64_t written; /* how far its server had written when it had written last */
    int64_t wait_offset, wait_number; /* until they have come so far; 0: none yet */
    struct sim_packet *kept, **kept_end;
};

struct sim_network {                 /* what the profile wants */
    int64_t delay_least, delay_most; /* ns, one way */
    int spike_percent;
    int64_t spike_most;
    struct hfi_list wires;
};
extern struct sim_network sim_network;

void sim_network_begin(void);
int64_t sim_delay(void);
struct sim_wire *sim_wire_new(struct sim_process *process, struct sim_server *server, void *client,
                              void (*received)(void *client, struct sim_packet *packet),
                              void (*broken)(void *client));
struct sim_packet *sim_packet_new(enum sim_packet_kind kind, const void *bytes, size_t size);
void sim_wire_up(struct sim_wire *wire, struct sim_packet *packet);   /* to the server */
void sim_wire_down(struct sim_wire *wire, struct sim_packet *packet); /* to the client */
/* The client closes its end: what it has sent still arrives, then the server is told. */
void sim_wire_close(struct sim_wire *wire);
/* The server closes its end: packets on the way to it are lost; the client is told, or not (a host that died). */
void sim_wire_drop(struct sim_wire *wire, bool told);
/* Ends a silence earlier than planned: waiting packets arrive now. A connection that is cut stays cut. */
void sim_wire_flows(struct sim_wire *wire);
/* The network loses the connection. Packets on the way to the server are lost, or arrive late. */
void sim_wire_cut(struct sim_wire *wire);

void sim_hears(const struct sim_process *process); /* watch.c: before something arrives, and after */

/* server.c: what arrives there. */
void sim_server_receive(struct sim_wire *wire, struct sim_packet *packet);
int sim_server_epoch(const struct sim_server *server);
int64_t sim_server_new_id(struct sim_server *server); /* of one more connection */
int64_t sim_server_frozen_until(const struct sim_server *server);
void sim_server_hung_up(struct sim_wire *wire);

#endif
