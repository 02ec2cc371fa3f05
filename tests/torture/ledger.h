/* SPDX-License-Identifier: MIT */
/* ledger.h - the memory that all processes of a torture share: the plan, and each thread's record of its own
 * sections, which survives a kill -9 of its process. */
#ifndef HFT_LEDGER_H
#define HFT_LEDGER_H

#include "tests/torture/oracle.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HFT_WAIT_MS 10000 /* how long a thread asks for a lock */
#define HFT_REASONS 16
#define HFT_MS      INT64_C(1000000)

enum hft_fault { HFT_CALM, HFT_KILL, HFT_FREEZE, HFT_FREEZE_SERVER, HFT_FAIL_OVER };

struct hft_plan {
    const char *mode;
    enum hft_fault fault;
    bool bare; /* empty sections: as many as will go */
    int readers; /* percent of the sections that share the lock */
    int limit;   /* above 0: each section takes some of so many permits */
    int processes, threads, locks;
    int64_t seconds, lease_ms, kill_ms;
    int64_t slack_ms; /* what a new holder may be late beyond lease and guard */
    unsigned seed;
    const char *url;
};

/* Calls may find no server, or get no answer. */
static inline bool hft_server_rests(const struct hft_plan *plan)
{
    return plan->fault == HFT_FREEZE_SERVER || plan->fault == HFT_FAIL_OVER;
}

enum hft_doing { HFT_WORKING, HFT_ACQUIRING, HFT_RELEASING };

/* A thread's seat. The process that replaces a killed one continues in its seats. */
struct hft_seat {
    _Atomic(int) doing;
    _Atomic(int) lock;
    _Atomic(int) wants; /* the lock that it asks for or has; -1: none */
    _Atomic(int64_t) since_ns;
    _Atomic(uint32_t) count;
    struct hft_interval *history; /* the last one is still open: its leave_ns moves while the holder is inside */
};

struct hft_ledger {
    struct hft_plan plan;
    _Atomic(bool) stop, full;
    _Atomic(int64_t) lost[HFT_REASONS], timeouts, unknown, in_vain; /* lost: by hf_reason */
    _Atomic(int) complaints;
    char complaint[400]; /* the first one */
    int64_t began_ns;
    uint32_t room;       /* intervals a seat can take */
    _Atomic(int64_t) *left_ns; /* by process and lock: the last time at which one of its threads stopped wanting it */
    struct hft_seat seats[];
};

int64_t hft_now_ns(void); /* CLOCK_BOOTTIME */

struct hft_ledger *hft_ledger_new(const struct hft_plan *plan);
struct hft_seat *hft_ledger_seat(struct hft_ledger *ledger, int process, int thread);
/* A thread wants this lock from now on, until its acquire fails or it has released the lock. */
void hft_ledger_wants(struct hft_ledger *ledger, int process, int thread, int lock);
void hft_ledger_wants_no_more(struct hft_ledger *ledger, int process, int thread);
/* INT64_MAX: a thread of the process does. Else since when none does. */
int64_t hft_ledger_unwanted_since(const struct hft_ledger *ledger, int process, int lock);
/* The run has failed, in these words; only the first ones count. Any process, any thread. */
void hft_complain(struct hft_ledger *ledger, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Judges the number of scripts since it began: ten a second for a process and name, and two for a section, are
 * enough whatever the server answers; more are a complaint. */
void hft_ledger_judge_scripts(struct hft_ledger *ledger, int64_t scripts);
/* All sections of all seats in one array, which the caller frees. Only when no process runs any more. */
struct hft_interval *hft_ledger_history(struct hft_ledger *ledger, size_t *count);

#endif
