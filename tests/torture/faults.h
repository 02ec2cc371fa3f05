/* SPDX-License-Identifier: MIT */
/* faults.h - the processes of a torture, and the faults that strike them. One thread. */
#ifndef HFT_FAULTS_H
#define HFT_FAULTS_H

#include "tests/support/server.h"
#include "tests/torture/ledger.h"

/* A process that the server names as the holder was killed or frozen. */
struct hft_death {
    int64_t at_ns;   /* when it stopped */
    int64_t seen_ns; /* when the server had said so: whoever enters later is its heir */
    int32_t lock;
};

struct hft_crowd {
    struct hft_ledger *ledger;
    struct hft_server *server;
    pid_t *pids;
    char *ask_holders; /* MGET of all locks */
    struct hft_death *deaths;
    size_t death_count, death_room;
    int kills, holders; /* processes killed or frozen; how many of them held something */
    int frozen;         /* process, -1: none */
    long looks;         /* at keys that a living process has */
    unsigned rng, incarnations;
};

void hft_crowd_start(struct hft_crowd *crowd, struct hft_ledger *ledger, struct hft_server *server);
/* False, with a complaint: a process ended by itself, or a call hangs. */
bool hft_crowd_is_well(struct hft_crowd *crowd);
void hft_crowd_kill_one(struct hft_crowd *crowd);      /* anyone, by kill -9; another one takes its place */
bool hft_crowd_freeze_holder(struct hft_crowd *crowd); /* false: nobody holds anything just now */
void hft_crowd_thaw(struct hft_crowd *crowd);
/* Half a lease after a failed call or a release the server has no key of that process; otherwise a complaint is
 * made. Since well_since_ns no process was frozen. */
void hft_crowd_look_for_leftovers(struct hft_crowd *crowd, int64_t well_since_ns);
/* All processes end by themselves, soon; one that does not is named in a complaint and killed. */
void hft_crowd_end(struct hft_crowd *crowd);

#endif
