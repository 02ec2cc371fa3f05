/* SPDX-License-Identifier: MIT */
/* hosts.h - virtual servers that replicate: a primary, its replicas, and what WAIT and ROLE say of them. Who is the primary
 * decides somebody else (sentinels.h, takeovers.c). */
#ifndef SIM_HOSTS_H
#define SIM_HOSTS_H

#include "tests/sim/server.h"

struct sim_cargo;

struct sim_host {
    struct sim_server *server;
    int number;
    char address[16];
    int priority; /* 0: it is never promoted */
    int reign;    /* the number of the takeover that has made it the primary; the first primary's is 0 */
    bool is_replica;
    struct sim_host *master; /* whom it was told to follow */
    bool is_fed;             /* that one sends it what it writes; */
    bool is_linked;          /* and it has what was written before: its master lists it */
    int64_t offset;          /* how far it has written, or taken over */
    int64_t acked;           /* what its master knows of that */
    int64_t link;            /* the number of its connection to its master: what comes over an older one is void */
    int64_t last_due, still_until, lag_most;
    bool is_calm;         /* from now on it is near */
    int64_t unseen_until; /* by sentinels */
    /* takeovers.c: clients may have left it out until then (HFI_NEVER: they may still), because it was the primary, because
     * sentinels called it down; and how far it has to come before it may be chosen. */
    int64_t former_until, left_out_until, has_to_reach;
    struct sim_cargo *cargo, **cargo_end; /* on its way to it */
};
extern struct sim_host sim_hosts[SIM_SERVERS];

/* Servers of one deployment: their clocks are less than apart_us apart. */
void sim_hosts_begin(int64_t apart_us);
void sim_hosts_heal(void); /* from now on none is frozen or far behind; who is down comes back in its time */

/* server.c: one command, one transaction or one script has run; what it has written goes to the replicas. */
void sim_host_wrote(struct sim_host *host, int count, char *const *keys);
/* WAIT on this connection. True: it has its answer, *count; else that comes later. */
bool sim_host_waits(struct sim_host *host, struct sim_wire *wire, int wanted, int64_t patience_ms, int *count);
int sim_host_acks(const struct sim_host *host, int64_t offset); /* how many replicas have come so far, by what it knows */
void sim_host_role(const struct sim_host *host, struct hfi_buffer *reply);

/* All that is connected to it is told that it is closed, as a sentinel does whenever it changes what a server is. */
void sim_host_promote(struct sim_host *host);
void sim_host_follow(struct sim_host *host, struct sim_host *master);
void sim_host_crash(struct sim_host *host, bool told);
void sim_host_start(struct sim_host *host, bool keeps_data);
bool sim_host_runs(const struct sim_host *host); /* neither down nor frozen */

#endif
