/* SPDX-License-Identifier: MIT */
/*
 * world.h - virtual time, events, and processes whose threads are coroutines. One history at a time runs in one
 * thread, and every choice comes from one of two random number generators: the same seed gives the same history.
 *
 * What runs between two yields is atomic. A thread yields in a wait (hfi_park_wait, hfi_lane_wait), for a mutex whose
 * owner has stopped, and at a mark of base/perturb.h where it is stopped (stops.h).
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/clock.h"
#include "base/list.h"
#include "base/park.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf_client;
struct sim_thread;

#define SIM_PROCESSES 8

struct sim_process {
    int id; /* 1, 2, ... */
    bool alive;
    int64_t paused_until;   /* true time; 0: it runs */
    int64_t last_pause_end; /* true time; 0: never paused */
    int64_t isolated_until; /* true time; no connection of its gets through */
    int64_t clock_start, clock_ppm;
    struct hf_client *client; /* NULL: not open (yet, any more) */
    struct hfi_list threads;  /* of struct sim_thread */
    int next_thread;
    int moved, met; /* the newest reign of a server that it has asked, and heard from (history.h) */
    void *pool; /* pool.c */
};

struct sim_world {
    int64_t now; /* true time, ns from the history's start */
    uint64_t seed, rng;
    bool verbose;
    struct sim_process *self;   /* whose code runs now; NULL: nobody's */
    struct sim_thread *running; /* NULL: an event, not a thread */
    struct sim_process processes[SIM_PROCESSES];
    int process_count;
    uint64_t events;
    uint64_t digest; /* of all that happened: the same in every run of the seed */
    char failure[400]; /* "": none so far */
};
extern struct sim_world sim;

void sim_begin(uint64_t seed, bool verbose);
/* Runs events until the true time, or until something failed. */
void sim_run(int64_t until);
bool sim_next(int64_t until); /* runs one event; false: none is due until then, or something failed */

/* random numbers */
uint64_t sim_roll(void);
int64_t sim_between(int64_t least, int64_t most); /* both included */
bool sim_chance(int percent);

/* What goes into the digest besides every event's time. */
void sim_note(uint64_t word);
void sim_note_bytes(const void *bytes, size_t size);

/* An event runs at `when` (true time, not before now) in the name of `owner` (NULL: the world). That of a paused
 * process waits for the end of the pause, and may come after a later one then; that of a dead process is dropped. */
typedef void sim_event_fn(void *what, int64_t number);
void sim_at(int64_t when, struct sim_process *owner, sim_event_fn *run, void *what, int64_t number);

/* processes */
struct sim_process *sim_process_new(void);
int64_t sim_clock(const struct sim_process *process, int64_t when); /* what its clock says then */
int64_t sim_when(const struct sim_process *process,
                 int64_t clock); /* the first true time at which it says so */
void sim_kill(struct sim_process *process);
void sim_pause(struct sim_process *process, int64_t until);
bool sim_is_paused(const struct sim_process *process);

/* threads.c */
void sim_threads_begin(void);
void sim_threads_end(void); /* frees the threads of a history that is over; the simulator itself drops a whole
                             * history at once */
typedef void sim_thread_fn(void *arg);
void sim_thread_start(struct sim_process *process, sim_thread_fn *run, void *arg); /* runs a moment later */
void sim_sleep(int64_t ns); /* the running thread, by its process's clock */
int sim_thread_id(void);
void **sim_thread_own(void);
void sim_stop(int64_t ns); /* stops the running thread or event for this long (true time) */
/* The replacements of pthread_mutex_lock and _unlock with which core/ is compiled. */
int sim_mutex_lock(pthread_mutex_t *mutex);
int sim_mutex_unlock(pthread_mutex_t *mutex);

/* What happened, in words; printed where asked for. */
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports a broken promise and ends the history. Only the first one counts. */
void sim_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
