/* SPDX-License-Identifier: MIT */
/* stage.h - the processes of a campaign, the memory they share with its director, and the sum of the results. The
 * director is one thread; each process has one thread of its own that acquires leases. */
#ifndef HFT_STAGE_H
#define HFT_STAGE_H

#include "tests/support/server.h"
#include "tests/torture/ledger.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum hft_act { HFT_STARTING, HFT_ASKING, HFT_HOLDING, HFT_GIVING_BACK };

/* What a process tells of itself. It outlives its kill -9. */
struct hft_mark {
    _Atomic(int) act;
    _Atomic(int64_t) asked_ns;
    _Atomic(int64_t) due_ns;     /* while it holds: when the director may strike; INT64_MAX: let it be */
    _Atomic(int64_t) resumed_ns; /* written by the director: when it let the process run again; 0: not in this stay */
    _Atomic(int) stroke;         /* the director's: the number of the pause it is in, -1: none */
};

/* The result of one pause; written by the paused process once it runs again. */
struct hft_pause {
    int64_t stopped_ns, resumed_ns; /* the director's */
    int32_t lock;
    _Atomic(int64_t) told_ns, readable_ns; /* on_event ran, the descriptor was readable; 0: never */
    _Atomic(bool) believed, lost, over;    /* is_valid said true; release said HF_LOST; all is written */
};

struct hft_stage;
typedef void hft_act_fn(struct hft_stage *stage, int process, unsigned seed);

#define HFT_SLACK_MS 300 /* what is promised; a test on a busy machine may grant more */

struct hft_stage {
    const char *name;
    int count; /* strokes wanted */
    unsigned seed;
    int slack_ms; /* what a new holder may be late beyond lease and guard */
    struct hft_ledger *ledger;
    struct hft_server *server, *store; /* store: of `stale` only */
    struct hft_mark *marks;
    struct hft_pause *pauses; /* shared; count of them */
    _Atomic(int64_t) *sums;   /* shared; what they mean is the campaign's */
    hft_act_fn *act;
    pid_t *pids;
    unsigned incarnations, rng;
    int64_t latest_wake_ns;    /* of the director: how late this machine is */
    int64_t slowest_answer_ns; /* of the server to the director's PING */
    int64_t ping_ns;
};

/* The line that a soak adds up. Negative numbers are not told. */
struct hft_summary {
    long operations, faults, violations, false_losses;
    double wait_p99_ms, wait_ms, wait_bound_ms;           /* after a death */
    double lost_p50_ms, lost_p99_ms, lost_ms, lost_bound_ms; /* how late LOST was told */
};

void hft_stage_open(struct hft_stage *stage, int processes, int names, int64_t lease_ms, hft_act_fn *act);
void hft_stage_start(struct hft_stage *stage); /* all processes */
void hft_stage_spawn(struct hft_stage *stage, int process);
void hft_stage_kill(struct hft_stage *stage, int process); /* and reaps */
void hft_stage_tick(struct hft_stage *stage);              /* a millisecond; sees whether a process ended by itself */
/* Kills all processes; then no key but the fence counter may be without expiry. */
void hft_stage_end(struct hft_stage *stage);
void hft_stage_close(struct hft_stage *stage);

struct hft_mark *hft_stage_mark(struct hft_stage *stage, int process);
int hft_stage_roll(struct hft_stage *stage, int sides);
void hft_stage_key(int lock, char key[32]);
/* Lease, guard(x) = 2.1 % + 3 ms + guard_ms, and the slack. */
int64_t hft_stage_bound_ns(const struct hft_stage *stage);
/* Judges the sections of all processes; returns the number of violations and prints the first. Only after
 * hft_stage_end. */
long hft_stage_judge(struct hft_stage *stage, struct hft_interval **history, size_t *count);
long hft_stage_lost(struct hft_stage *stage); /* leases that nothing excuses the loss of */
bool hft_summary_tell(const struct hft_stage *stage, const struct hft_summary *summary);

#endif
