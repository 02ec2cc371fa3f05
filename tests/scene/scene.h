/* SPDX-License-Identifier: MIT */
/*
 * scene.h - the whole core against the virtual Redis of sim/, in a schedule that a test writes down: which thread
 * does what when, which connection is silent, which process is stopped. Nothing is random and nothing waits for real
 * time, so "within a millisecond" may be asserted. Threads record, the main thread asserts.
 */
#ifndef HFT_SCENE_H
#define HFT_SCENE_H

#include "pool/lane.h"
#include "tests/sim/server.h"
#include "tests/sim/world.h"

#include <holdfast/holdfast.h>

#define HFT_TRIP_NS (HFI_MS / 10) /* one way, always */

/* The set-up of a test: a server without clients. The tear-down fails if the world has reported a violation. */
int hft_scene_begin(void **state);
int hft_scene_end(void **state);

/* Starts a process whose client is open and subscribed; its clock runs as true time does. */
struct sim_process *hft_process(const hf_client_options *options);
/* The same without a wait for anything; what hf_client_open said. */
hf_status hft_open(struct sim_process **process, const hf_client_options *options, hf_error *error);
void hft_pass_ms(int64_t ms);
/* Runs the world until the condition holds, in steps of 50 us; the test fails after 20 s of the world's time. */
#define HFT_UNTIL(condition)                                                                                   \
    do {                                                                                                       \
        int64_t until_ = sim.now + 20000 * HFI_MS;                                                             \
        while (!(condition))                                                                                   \
            hft_step(until_, #condition);                                                                      \
    } while (0)
void hft_step(int64_t until, const char *what);

struct hft_actor { /* a thread that makes one call; stays where it is until it is over */
    struct sim_process *process;
    const char *name;
    hf_lock_options options;
    hf_lease *lease;
    hf_status status;
    hf_error error;
    bool posts;
    int64_t began, ended; /* true time; ended 0: not yet */
};
void hft_take(struct hft_actor *actor, struct sim_process *process, const char *name, const hf_lock_options *options);
hf_lease *hft_must_take(struct sim_process *process, const char *name, const hf_lock_options *options);
void hft_give_back(struct hft_actor *actor, struct sim_process *process, hf_lease *lease);
hf_status hft_released(struct sim_process *process, hf_lease *lease); /* gives it back and waits for the end of it */
hf_status hft_close(struct sim_process *process);
/* Anything else, in a thread of the process, to its end. */
void hft_run(struct sim_process *process, void (*run)(void *arg), void *arg);

bool hft_is_valid(struct sim_process *process, hf_lease *lease);
hf_stats hft_stats(struct sim_process *process);

/* The number of commands that this process (NULL: all) has listed: "native", a script's name, else the command's
 * first word. */
int hft_listed(const struct sim_process *process, const char *command);
/* The number of the script's runs at the server, without those that ended in an error. */
int hft_ran(const char *script);
/* The n-th argument (1, 2, ...) of the last run of that script. */
const char *hft_argument(const char *script, int n);
/* Messages that the server has sent, by their letter. */
int hft_said(char letter);

/* Another program's command, and the text it is answered with. */
const char *hft_answered(const char *line);
void hft_tell(const char *line);
/* What the server has under the key; "": nothing. */
const char *hft_key(const char *key);
/* What a break leaves of the token, into as much room as that has; its last random digit tells several from each other. */
void hft_revoked(const char *token, char last, char *out);
/* Somebody publishes a text to the channel of this process. */
void hft_publish(struct sim_process *process, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A connection of the process: its first lock lane, its first value lane, its reserved lane, its subscriber. */
struct sim_wire *hft_lock_wire(struct sim_process *process);
struct sim_wire *hft_value_wire(struct sim_process *process);
struct sim_wire *hft_reserved_wire(struct sim_process *process);
struct sim_wire *hft_subscriber_wire(struct sim_process *process);
void hft_stall_up(struct sim_wire *wire, int64_t ms);   /* what it sends arrives then */
void hft_stall_down(struct sim_wire *wire, int64_t ms); /* what it is told arrives then */
void hft_lose_last(struct sim_wire *wire);              /* what it has sent last, and has not arrived, never does */

#endif
