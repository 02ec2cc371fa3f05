/* SPDX-License-Identifier: MIT */
/* wire.h - the virtual network: connections that carry bytes in order, late, not at all, or only after one end has
 * given up. Knows neither Redis nor lanes. */
#ifndef SIM_WIRE_H
#define SIM_WIRE_H

#include "tests/sim/world.h"

#include <stddef.h>

enum sim_packet_kind { SIM_BYTES, SIM_MESSAGE, SIM_END };

struct sim_packet {
    struct sim_packet *next;
    int64_t due;
    enum sim_packet_kind kind;
    size_t size;
    char bytes[]; /* one NUL byte more */
};

struct sim_wire {
    struct hfi_list link; /* all wires of the history, from the first to the last */
    struct sim_process *process;
    int epoch; /* of the server at its other end */
    bool client_open, server_open;
    bool receiving; /* the client is at it, though it may have stopped: what comes meanwhile waits */
    bool
        demoted; /* the server there is a replica now: it refuses, and passes on what its primary publishes */
    int64_t last_up, last_down; /* when the last packet arrives, so that the next one comes behind it */
    int64_t up_stalled_until, down_stalled_until;
    struct sim_packet *up, **up_end, *down, **down_end;
    /* The client's end: set by whoever dialled. In its process's name. */
    void *client;
    void (*received)(void *client, struct sim_packet *packet);
    void (*broken)(void *client);
    /* The server's. */
    bool in_multi, aborted;
    struct sim_wire_channel *channels;
    int64_t spared_until; /* no message is lost before */
    struct sim_packet *transaction, **transaction_end;
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
struct sim_wire *sim_wire_new(struct sim_process *process, int epoch, void *client,
                              void (*received)(void *client, struct sim_packet *packet),
                              void (*broken)(void *client));
struct sim_packet *sim_packet_new(enum sim_packet_kind kind, const void *bytes, size_t size);
void sim_wire_up(struct sim_wire *wire, struct sim_packet *packet);   /* to the server */
void sim_wire_down(struct sim_wire *wire, struct sim_packet *packet); /* to the client */
/* The client closes its end: what it has sent still arrives, then the server is told. */
void sim_wire_close(struct sim_wire *wire);
/* The server closes its end: whatever is under way to it is lost; the client is told, or not (a host that died). */
void sim_wire_drop(struct sim_wire *wire, bool told);
/* It is silent no more, earlier than was planned: what waits arrives now. One that is cut stays so. */
void sim_wire_flows(struct sim_wire *wire);
/* The network loses it. What is under way to the server is lost, or arrives late. */
void sim_wire_cut(struct sim_wire *wire);

void sim_hears(const struct sim_process *process); /* watch.c: before something arrives, and after */

/* server.c: what arrives there. */
void sim_server_receive(struct sim_wire *wire, struct sim_packet *packet);
int64_t sim_server_frozen_until(void);
void sim_server_hung_up(struct sim_wire *wire);

#endif
