/* SPDX-License-Identifier: MIT */
/* fault.h - a named fault: what is done, what is promised all the same, and how the promise is judged. */
#ifndef HFT_FAULT_H
#define HFT_FAULT_H

#include "tests/fault/preload.h"
#include "tests/support/proxy.h"
#include "tests/support/server.h"

#include <holdfast/holdfast.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define HFT_NS_PER_MS INT64_C(1000000)

struct hft_run { /* one run of one fault */
    unsigned seed;
    int times; /* rounds; what a round is, the fault says */
    bool full; /* no hurry */
    _Atomic(int) broken;
    bool cannot;      /* hft_cannot was called */
    long count;       /* hft_tally: what was tried, */
    int64_t worst_ns; /* ... and the worst of what was measured; -1: nothing was */
    char note[512];   /* the numbers, for the last line */
    unsigned rng;
};

enum {
    HFT_PRELOADED = 1, /* the preload library */
    HFT_MEASURES = 2,  /* hft_in_time */
    HFT_UNLOADS = 4    /* a product that can be unloaded */
};

struct hft_named {
    const char *name;
    const char *promise;
    void (*run)(struct hft_run *run);
    int times; /* in a short run */
    int full_times;
    unsigned needs;
};

/* Ended by a NULL name; one table per file. */
extern const struct hft_named hft_lease_faults[], hft_wait_faults[], hft_reply_faults[], hft_server_faults[],
    hft_storm_faults[], hft_call_faults[], hft_clock_faults[], hft_process_faults[], hft_thread_faults[],
    hft_race_faults[], hft_ending_faults[], hft_fetch_faults[], hft_network_faults[], hft_hostile_faults[],
    hft_replica_faults[], hft_restart_faults[], hft_confined_faults[], hft_rule_faults[], hft_promise_faults[],
    hft_refusal_faults[], hft_vain_faults[], hft_commotion_faults[], hft_prefork_faults[],
    hft_loader_faults[];

/* Reports, in these words, that the promise is broken; the first twenty reports are printed at once. Any thread may
 * call. */
void hft_broken(struct hft_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define HFT_CHECK(run, condition, ...)                                                                       \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            hft_broken(run, __VA_ARGS__);                                                                    \
    } while (0)
void hft_note(struct hft_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds to `count` and `worst_ms` of the last line: the number of tries, and the longest of them (-1: not measured). */
void hft_tally(struct hft_run *run, long count, int64_t worst_ns);
/* Reports, in one sentence, that this machine cannot show the fault (no right, no controller): exit 77. The run
 * returns after it. */
void hft_cannot(struct hft_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What is said if the run hangs. */
void hft_doing(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* True: the time is within the limit on this machine as it is now. A thread measures how late it is woken, and the
 * lateness of four such wakes in a row is added to the limit; with _of, of as many as the timed path has. */
bool hft_in_time(int64_t took_ns, int64_t limit_ns);
bool hft_in_time_of(int wakes, int64_t took_ns, int64_t limit_ns);

int hft_roll(struct hft_run *run, int sides); /* 0 .. sides - 1; the main thread's */
void hft_sleep_ms(int64_t ms);
int64_t hft_lock_keys_after(struct hft_server *server, int64_t ms); /* hft_lock_keys once there is none, or after so long */
void hft_sleep_until(int64_t at_ns); /* true time */
/* When the lease ends, in true time; as before once it has. A renewal under way may still put it off: note it till the loss is told. */
void hft_note_end(const hf_lease *lease, int64_t *end_ns);
hf_client *hft_open(const char *url,
                    const hf_client_options *options); /* or ends the program with the reason */
void hft_server_say(struct hft_server *server, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
