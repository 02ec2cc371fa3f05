/* SPDX-License-Identifier: MIT */
/* sentinels.h - three virtual sentinels: what each believes of the servers, how it answers, what it tells. They are late, cut
 * off, or wrong for a while; takeovers.c says when one of them makes another server the primary. */
#ifndef SIM_SENTINELS_H
#define SIM_SENTINELS_H

#include "tests/sim/hosts.h"

#define SIM_SENTINELS_COUNT 3

struct sim_view { /* of one server, by one sentinel */
    int64_t heard;    /* when it answered last */
    int64_t asked;    /* when it is asked next what it is */
    bool is_known;    /* it has been asked since it is listed as a replica */
    bool says_master, follows;
    int64_t said_out; /* when clients were told last that it cannot be promoted */
};

struct sim_sentinel {
    uint64_t epoch;
    struct sim_host *primary; /* by what it says */
    bool leads;               /* a takeover: it has the new epoch, and names the old primary */
    int64_t blind_until;      /* it hears nothing of servers and of other sentinels */
    struct sim_host *slandered, *omitted; /* which it calls down, or does not list; NULL: none */
    int64_t slanders_until, omits_until;
    struct sim_view views[SIM_SERVERS];
};
extern struct sim_sentinel sim_sentinels[SIM_SENTINELS_COUNT];

void sim_sentinels_begin(int64_t down_after_ns);
void sim_sentinels_heal(void); /* none is wrong or cut off any more */
/* The answers to SENTINEL MASTER and SENTINEL REPLICAS, one behind the other. */
void sim_sentinel_answers(struct sim_sentinel *sentinel, struct hfi_buffer *reply);
bool sim_sentinel_calls_down(const struct sim_sentinel *sentinel, const struct sim_host *host);
/* It names this one from now on, and says so to clients that listen. */
void sim_sentinel_switches(struct sim_sentinel *sentinel, struct sim_host *primary, uint64_t epoch);
/* All that can see it have seen it follow, since so long. */
bool sim_sentinels_saw_follow(const struct sim_host *host);
/* When enough sentinels for a client had said last, each within half a second, that it cannot be promoted; 0: never. */
int64_t sim_sentinels_left_out(const struct sim_host *host);

/* asking.c: a message on +switch-master leaves this sentinel. */
void sim_topologies_hear(int sentinel);

#endif
