/* SPDX-License-Identifier: MIT */
/* history.c - the processes of a history and their clients, drawn from the seed, from the first dial to the last
 * close. */
#include "base/random.h"
#include "tests/sim/near.h"
#include "tests/sim/neighbours.h"
#include "tests/sim/stops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAULTS_NS (4500 * HFI_MS) /* then all is well, and everybody goes on: */
#define SETTLE_NS (2500 * HFI_MS) /* when timeouts and dials are over, the bounds hold, */
#define WELL_NS   (2000 * HFI_MS) /* and are watched for so long, */
#define CONTENDS_NS (16000 * HFI_MS) /* or longer, where the others have to wait for their turn */

struct sim_history history;

/* ---- processes ---- */

static const char *uri(void)
{
    return history.by_sentinels ? "sentinel://s1,s2,s3/virtual" : "redis://virtual";
}

static void open_client(void *arg)
{
    struct sim_process *process = arg;
    hf_error error = {.status = HF_OK};
    hf_client_options options = {.size = sizeof options,
                                 .lease_ms = history.lease_ms,
                                 .guard_ms = history.guard_ms,
                                 .command_ms = history.command_ms,
                                 .quarantine_ms = history.quarantine_ms,
                                 .replicas = history.replicas,
                                 .replicas_ms = history.replicas_ms,
                                 .lanes = (int)sim_between(1, 2),
                                 .keyspace_events = sim_chance(30) && !(sim_beside.on && sim_beside.hears) ? "off" : "auto",
                                 .near_lag_ms = sim_near_lag_ms(process),
                                 .local_bytes = history.pages > 0 && !sim_near.on && sim_chance(30) ? HF_OFF : 0,
                                 .dialect = sim_beside.on && !sim_beside.by_call ? sim_beside.dialect : NULL,
                                 .lazy = sim_chance(50)};
    while (hf_client_open(uri(), &options, &process->client, &error) != HF_OK)
        sim_sleep(sim_between(1, 200) * HFI_MS);
    sim_say("the client is open");
    for (int i = 0; i < history.threads && history.actor_count < SIM_ACTORS; i++) {
        struct sim_actor *actor = &history.actors[history.actor_count];
        *actor = (struct sim_actor){.process = process, .number = history.actor_count++, .waits_for = -1, .keeps = -1};
        sim_thread_start(process, sim_act, actor);
    }
}

void sim_process_begin(void)
{
    struct sim_process *process = sim_process_new();
    sim_say("process %d begins, its clock %+lld ppm", process->id, (long long)process->clock_ppm);
    sim_thread_start(process, open_client, process);
}

static void begin(void *what, int64_t number)
{
    (void)what;
    (void)number;
    if (sim.process_count < SIM_PROCESSES)
        sim_process_begin();
}

static bool all_over(void)
{
    for (int i = 0; i < history.actor_count; i++)
        if (history.actors[i].process->alive && !history.actors[i].over)
            return false;
    return sim_neighbours_are_over();
}

static void check_nobody_hangs(void)
{
    for (int i = 0; i < history.actor_count; i++)
        if (history.actors[i].process->alive && !history.actors[i].over)
            sim_oracle_hangs(&history.oracle, "thread", i);
}

/* ---- the end: one more client acquires every lock, then all clients close ---- */

static int still_open;
static bool probed;

static void probe(void *arg)
{
    struct sim_process *process = arg;
    hf_client_options options = {
        .size = sizeof options, .lease_ms = history.lease_ms, .guard_ms = history.guard_ms,
        .replicas = history.replicas, .replicas_ms = history.replicas_ms};
    hf_error error = {.status = HF_OK};
    if (hf_client_open(uri(), &options, &process->client, &error) != HF_OK)
        sim_violation("[status] nobody can open a client though all is well: %s", error.message);
    for (int lock = 0; process->client != NULL && lock < history.locks; lock++) {
        char name[16];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "n%d", lock);
        struct sim_holding *holding = sim_watch_expect(lock);
        hf_lock_options wait = {.size = sizeof wait, .wait_ms = 600 + history.linger_ms + 6 * history.replicas_ms};
        if (sim_beside.on) { /* a list whose maker has died is made anew ten seconds after the last one of theirs has asked */
            wait.dialect = sim_beside.dialect;
            wait.wait_ms += sim_beside.recipe == SIM_TOKENS ? 10500 : 1500;
        }
        hf_status status = hf_lock_acquire(process->client, name, &wait, &lease, &error);
        if (status != HF_OK) {
            sim_violation("[keys-end] lock %d is nobody's and not to be had: %s", lock, error.message);
            return;
        }
        if (sim_watch_granted(holding, lease))
            sim_give_back(holding);
    }
    probed = true;
}

static void close_client(void *arg)
{
    struct sim_process *process = arg;
    hf_error error = {.status = HF_OK};
    hf_client *client = process->client;
    int64_t began = sim.now;
    for (int i = 0; i < history.actor_count; i++)
        if (history.actors[i].process == process)
            hf_cancel_close(history.actors[i].cancel);
    hf_status status = hf_client_close(client, &error);
    process->client = NULL;
    if (status != HF_OK)
        sim_violation("[status] close says %s: %s", hf_status_name(status), error.message);
    sim_call_took("close", began, 1000);
    still_open--;
}

static void close_all(void)
{
    still_open = 0;
    for (int i = 0; i < sim.process_count; i++) {
        struct sim_process *process = &sim.processes[i];
        if (!process->alive || process->client == NULL)
            continue;
        still_open++;
        sim_thread_start(process, close_client, process);
    }
    sim_run(sim.now + 3000 * HFI_MS);
    if (still_open != 0)
        sim_oracle_hangs(&history.oracle, "close of so many clients:", still_open);
}

/* Two: in the first one nothing is sent, so a connection to what is a replica by now is found out when it ends. */
static int64_t quarantines_ns(void)
{
    return 2 * history.quarantine_ms * HFI_MS / 98 * 100;
}

static void run_phases(void)
{
    sim_run(FAULTS_NS);
    sim_faults_end();
    history.settled = sim.now + SETTLE_NS + quarantines_ns() + history.second_life_ms * HFI_MS;
    for (int i = 0; i < sim.process_count; i++) /* a pause goes on to its end */
        if (sim.processes[i].last_pause_end + SETTLE_NS > history.settled)
            history.settled = sim.processes[i].last_pause_end + SETTLE_NS;
    sim_run(history.ops_end);
    int64_t most = sim.now + (2 * SIM_WAIT_MS + 10 * history.lease_ms + 10000) * HFI_MS;
    while (!all_over() && sim.now < most && sim.failure[0] == 0)
        sim_run(sim.now + 100 * HFI_MS);
    check_nobody_hangs();
    /* The keys of killed processes expire; after that no wait has a reason left. */
    sim_run(sim.now + (2 * history.lease_ms + history.lease_ms / 10 + history.guard_ms + 5000) * HFI_MS);
    sim.process_count = sim.process_count == SIM_PROCESSES ? SIM_PROCESSES - 1 : sim.process_count;
    probed = false;
    struct sim_process *stranger = sim_process_new();
    sim_thread_start(stranger, probe, stranger);
    for (int i = 0; i < 150 && !probed && sim.failure[0] == 0; i++)
        sim_run(sim.now + 200 * HFI_MS);
    if (!probed)
        sim_oracle_hangs(&history.oracle, "the stranger, process", stranger->id);
    if (sim.failure[0] == 0)
        close_all();
    if (sim.failure[0] == 0)
        sim_tokens_look_at_the_end();
}

/* ---- from the seed ---- */

/* What a failover may lose, and so what excuses what, depends on what the clients ask for. */
static void draw_deployment(void)
{
    bool confirms = history.profile == SIM_REPLICAS;
    history.pages = 0; /* a value is not confirmed */
    history.command_ms = sim_between(400, 1000);
    history.apart_us = history.guard_ms * 900;
    history.down_after_ms = sim_between(150, 600);
    history.second_life_ms = sim_between(200, 1500);
    history.replicas_ms = confirms ? sim_between(20, 150) : 0;
    history.replicas = !confirms ? 0 : sim_chance(80) ? HF_ALL : 1;
    if (!confirms && !history.uses_up_fences && sim_chance(50)) {
        history.lease_ms = history.lease_ms > 500 ? 500 : history.lease_ms;
        history.quarantine_ms = history.second_life_ms + 2 * history.lease_ms + history.lease_ms / 10 + history.guard_ms + 1100;
    }
}

static void draw(enum sim_profile profile)
{
    static const int64_t leases[] = {150, 300, 500, 1000, 2000, 3000};
    int64_t die = sim_between(0, SIM_REPLICAS - 1);
    uint64_t rng = sim.seed ^ UINT64_C(0x7265706c69636173); /* one in eight; the others are what they were without */
    if (profile == SIM_PROFILES && hfi_rng_next(&rng) % 8 == 0)
        die = hfi_rng_next(&rng) % 3 != 0 ? SIM_REPLICAS : SIM_SENTINELS;
    history = (struct sim_history){.profile = profile < SIM_PROFILES ? profile : (enum sim_profile)die};
    history.locks = (int)sim_between(1, 2);
    history.pages = sim_chance(40) ? (int)sim_between(1, SIM_PAGES) : 0;
    history.process_goal = (int)sim_between(2, 4);
    history.threads = (int)sim_between(1, 4);
    history.lease_ms = leases[sim_between(0, (int64_t)(sizeof leases / sizeof leases[0]) - 1)];
    history.guard_ms = sim_chance(40) ? 250 : sim_chance(80) ? sim_between(1, 60) : sim_between(60, 500);
    history.command_ms = sim_chance(50) ? 1000 : sim_between(100, 1000);
    history.linger_ms = sim_chance(50) ? sim_between(1, 600) : 0;
    history.hold_most = sim_chance(70) ? history.lease_ms : sim_between(1, 2 * history.lease_ms);
    history.think_most = sim_between(1, 300);
    history.same_leases = history.profile == SIM_KILLS || sim_chance(50);
    if (sim_chance(5)) { /* its threads pass it on, each after another time */
        sim_stops_often();
        history.uses_up_fences = true;
        history.same_leases = history.profile == SIM_KILLS; /* whose bounds are exact */
        history.locks = 1;
        history.process_goal = sim_chance(70) ? 1 : 2;
        history.lease_ms = sim_between(1000, 3000);
    } else if (history.profile == SIM_CALM && sim_chance(30)) { /* always one of them waits: it can pass it on for ever */
        history.locks = 1;
        history.threads = 4;
        history.think_most = 0;
        history.hold_most = 2;
    }
    rng = sim.seed ^ UINT64_C(0x6c6f6f7073); /* one in five; of its own, so the others are what they were without */
    history.loops = hfi_rng_next(&rng) % 5 == 0;
    rng = sim.seed ^ UINT64_C(0x72656164657273); /* one in four */
    history.reads = hfi_rng_next(&rng) % 4 == 0 ? 20 + (int)(hfi_rng_next(&rng) % 75) : 0;
    history.counts = hfi_rng_next(&rng) % 4 == 0 ? 20 + (int)(hfi_rng_next(&rng) % 75) : 0;
    history.limit = 1 + (int)(hfi_rng_next(&rng) % 5);
    rng = sim.seed ^ UINT64_C(0x71756172616e74); /* every other one that loses data: then nothing excuses two holders */
    bool loses = history.profile == SIM_FAILOVERS || history.profile == SIM_AMNESIA;
    if (loses && !history.uses_up_fences && hfi_rng_next(&rng) % 2 == 0) /* which asks without being asked */
        history.quarantine_ms = 2 * history.lease_ms + history.lease_ms / 10 + history.guard_ms + 20;
    history.by_sentinels = history.profile == SIM_REPLICAS || history.profile == SIM_SENTINELS;
    if (history.by_sentinels)
        draw_deployment();
    sim_beside.on = false;
    if (history.profile == SIM_NEIGHBOURS)
        sim_beside_draw();
    sim_near.on = false;
    if (history.profile == SIM_NEAR)
        sim_near_draw();
    history.ops_end = FAULTS_NS + SETTLE_NS + WELL_NS + quarantines_ns() + history.second_life_ms * HFI_MS;
    if (sim_beside.on && sim_beside.contends)
        history.ops_end += CONTENDS_NS;
}

void sim_history_run(uint64_t seed, enum sim_profile profile, bool verbose, struct sim_result *result)
{
    sim_begin(seed, verbose);
    sim_stops_begin();
    sim_network_begin();
    sim_server_begin();
    if (seed % 4 == 3)
        sim_server->keys.forbidden = "TIME"; /* to scripts: their clock is a key */
    draw(profile);
    sim_say("seed %llu: %s, %d processes of %d threads, %d locks, %d pages, lease %lld ms, guard %lld ms",
            (unsigned long long)seed, sim_profile_name(history.profile), history.process_goal,
            history.threads, history.locks, history.pages, (long long)history.lease_ms,
            (long long)history.guard_ms);
    sim_watch_begin();
    history.oracle.strict = history.quarantine_ms > 0 || history.replicas != 0 ? history.locks : 0;
    history.oracle.by_several = history.by_sentinels;
    history.oracle.lossless = history.replicas != 0;
    history.oracle.apart = (1000 + history.guard_ms) * HFI_MS;
    for (int lock = 0; sim_is_beside(lock); lock++)
        sim_oracle_has_room(&history.oracle, lock, sim_beside.room);
    sim_permits_begin();
    sim_near_begin();
    sim_faults_plan();
    sim_neighbours_begin();
    for (int i = 0; i < history.process_goal; i++)
        sim_at(sim_chance(70) ? sim.now : sim_between(0, 1000 * HFI_MS), NULL, begin, NULL, 0);
    run_phases();
    uint64_t commands = 0, messages = 0;
    for (int i = 0; i < (history.by_sentinels ? SIM_SERVERS : 1); i++) {
        commands += sim_servers[i].commands;
        messages += sim_servers[i].messages;
    }
    *result = (struct sim_result){.grants = history.grants,
                                  .acquires = history.acquires,
                                  .fetches = history.fetches,
                                  .near = sim_near.hits,
                                  .loads = history.loads,
                                  .faults = history.faults,
                                  .events = sim.events,
                                  .commands = commands,
                                  .losses = history.oracle.losses,
                                  .messages = messages,
                                  .digest = sim.digest,
                                  .longest_gap = history.oracle.longest_gap,
                                  .length = sim.now,
                                  .profile = history.profile};
    if (sim.failure[0] != 0)
        (void)snprintf(result->failure, sizeof result->failure, "%s: %s", sim_profile_name(history.profile),
                       sim.failure);
}
