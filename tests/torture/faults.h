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

struct hft_fleet {
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

void hft_fleet_start(struct hft_fleet *fleet, struct hft_ledger *ledger, struct hft_server *server);
/* False, with a complaint: a process ended by itself, or a call hangs. */
bool hft_fleet_is_well(struct hft_fleet *fleet);
void hft_fleet_kill_one(struct hft_fleet *fleet);      /* anyone, by kill -9; another one takes its place */
bool hft_fleet_freeze_holder(struct hft_fleet *fleet); /* false: nobody holds anything just now */
void hft_fleet_thaw(struct hft_fleet *fleet);
/* Half a lease after a failed call or a release the server has no key of that process; otherwise a complaint is
 * made. Since well_since_ns no process was frozen. */
void hft_fleet_look_for_leftovers(struct hft_fleet *fleet, int64_t well_since_ns);
/* All processes end by themselves, soon; one that does not is named in a complaint and killed. */
void hft_fleet_end(struct hft_fleet *fleet);

#endif
