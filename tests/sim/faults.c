/* SPDX-License-Identifier: MIT */
/* faults.c - the plan of a history's faults: which ones and when, by the profile and at random. */
#include "tests/sim/near.h"
#include "tests/sim/neighbours.h"
#include "tests/sim/hosts.h"
#include "tests/sim/pool_inside.h"
#include "tests/sim/sentinels.h"

#include <stdio.h>

const char *sim_profile_name(enum sim_profile profile)
{
    static const char *const names[] = {"calm",   "deaf",     "lossy",   "singles",  "kills",   "pauses",
                                        "cuts",   "stalls",   "freezes", "restarts", "amnesia", "failovers",
                                        "clocks", "refusals", "foreign", "lies", "storm", "replicas", "sentinels", "neighbours", "near"};
    _Static_assert(sizeof names / sizeof names[0] == SIM_PROFILES, "each profile has a name");
    return profile < SIM_PROFILES ? names[profile] : "any";
}

static bool is(enum sim_profile profile)
{
    return history.profile == profile;
}

/* ---- one fault each ---- */

static struct sim_process *somebody(void)
{
    struct sim_process *found = NULL;
    int count = 0;
    for (int i = 0; i < sim.process_count; i++)
        if (sim.processes[i].alive && sim.processes[i].client != NULL && sim_between(0, count++) == 0)
            found = &sim.processes[i];
    return found;
}

static struct sim_wire *some_wire(void)
{
    struct sim_wire *found = NULL;
    int count = 0;
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->client_open && wire->process->alive && sim_between(0, count++) == 0)
            found = wire;
    }
    return found;
}

static void come_back(void *what, int64_t number)
{
    (void)what;
    (void)number;
    if (sim.process_count < SIM_PROCESSES && history.healed == 0)
        sim_process_begin();
}

static void kill_one(void)
{
    struct sim_process *process = somebody();
    if (process == NULL || sim.process_count >= SIM_PROCESSES)
        return;
    sim_say("process %d is killed", process->id);
    sim_watch_killed(process);
    sim_permits_killed(process);
    sim_kill(process);
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->process == process)
            sim_wire_close(wire); /* the kernel still sends what it has */
    }
    sim_at(sim.now + sim_between(0, 2000 * HFI_MS), NULL, come_back, NULL, 0);
}

static void pause_one(void)
{
    struct sim_process *process = somebody();
    int64_t most = sim_chance(50) ? 2 * history.lease_ms : 300;
    if (process == NULL || sim_is_paused(process))
        return;
    int64_t until = sim.now + sim_between(1, most) * HFI_MS;
    sim_say("process %d is paused for %.0f ms", process->id, (double)(until - sim.now) / 1e6);
    sim_pause(process, until);
}

static void cut_one(void)
{
    struct sim_wire *wire = some_wire();
    if (wire == NULL)
        return;
    bool is_half = is(SIM_NEAR) && sim_chance(50); /* gone at the server and open here */
    sim_say("a connection of process %d is %s", wire->process->id, is_half ? "closed by the server" : "cut");
    if (is_half)
        sim_wire_drop(wire, sim_chance(30));
    else
        sim_wire_cut(wire);
}

static void stall_one(void)
{
    struct sim_wire *wire = some_wire();
    int64_t until = sim.now + sim_between(1, 2500) * HFI_MS;
    int which = (int)sim_between(1, 3);
    if (wire == NULL)
        return;
    sim_say("a connection of process %d is silent for %.0f ms (%s)", wire->process->id,
            (double)(until - sim.now) / 1e6,
            which == 1   ? "to the server"
            : which == 2 ? "from the server"
                         : "both ways");
    if ((which & 1) && until > wire->up_stalled_until)
        wire->up_stalled_until = until;
    if ((which & 2) && until > wire->down_stalled_until)
        wire->down_stalled_until = until;
}

static void isolate_one(void)
{
    struct sim_process *process = somebody();
    if (process == NULL)
        return;
    int64_t until = sim.now + sim_between(1, 2 * history.lease_ms) * HFI_MS;
    sim_say("process %d is cut off for %.0f ms", process->id, (double)(until - sim.now) / 1e6);
    process->isolated_until = until;
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->process != process || !wire->client_open)
            continue;
        wire->up_stalled_until = wire->up_stalled_until > until ? wire->up_stalled_until : until;
        wire->down_stalled_until = wire->down_stalled_until > until ? wire->down_stalled_until : until;
    }
}

static int64_t forward(void)
{
    int64_t step = sim_between(0, history.forward_budget_us);
    history.forward_budget_us -= step;
    return step;
}

static void fail_over(void)
{
    bool loses = !history.clock_goes_back && sim_chance(50);
    int64_t step = history.clock_goes_back && sim_chance(50) ? -sim_between(0, 2000000) : forward();
    if (loses && sim_server_forget_since()) {
        sim_oracle_goes_back(&history.oracle);
        sim_tokens_after_loss();
    }
    sim_server_crash(sim.now + sim_between(0, 1000) * HFI_MS, true, step,
                     (enum sim_old_end)sim_between(0, 2));
}

static void remember(void *what, int64_t number)
{
    (void)what;
    (void)number;
    if (history.healed != 0)
        return;
    sim_server_remember();
    sim_oracle_remembers(&history.oracle);
    sim_at(sim.now + sim_between(10, 500) * HFI_MS, NULL, remember, NULL, 0);
}

/* A key that has ended and was not removed yet lives again when the clock goes back: those of locks may, but a value's tags
 * do not know it any more, and no forgetting finds it (guarantees.md). */
static void remove_ended_values(void)
{
    char key[32];
    sim_server->keys.now_us = sim_server_us() + 1000; /* also what ends in this millisecond */
    for (int page = 0; page < history.pages; page++) {
        (void)snprintf(key, sizeof key, "page%d", page);
        (void)sim_keyspace_string(&sim_server->keys, key);
    }
}

static void trouble_clocks(void)
{
    bool back = history.clock_goes_back && sim_chance(50);
    if (back)
        remove_ended_values();
    sim_server_step(back ? -sim_between(0, 1000000) : forward());
}

static void meddle(void)
{
    char key[32];
    (void)snprintf(key, sizeof key, "hf:{n%d}", (int)sim_between(0, history.locks - 1));
    sim_server->keys.now_us = sim_server_us();
    const char *value = sim_keyspace_string(&sim_server->keys, key);
    if (value == NULL) {
        sim_say("another program takes %s", key);
        sim_server_set(key, "somebody else", sim_between(10, SIM_FOREIGN_MS));
    } else if (value[0] == 's') {
        sim_say("another program gives %s back", key);
        sim_server_del(key);
    }
}

static void freeze_or_flush(void)
{
    if (sim_chance(30)) {
        sim_server_forget_scripts(true);
    } else if (sim_server->up && sim_server->frozen_until <= sim.now) {
        sim_server_freeze(sim.now + sim_between(1, sim_chance(30) ? 3000 : 800) * HFI_MS);
    }
}

static void crash(bool keeps_data)
{
    if (!sim_server->up)
        return;
    sim_server_crash(sim.now + sim_between(1, 1000) * HFI_MS, keeps_data, 0,
                     sim_chance(70) ? SIM_CLOSED : SIM_SILENT);
    if (!keeps_data)
        sim_tokens_after_loss();
}

static void hurt(enum sim_profile how)
{
    static const enum sim_profile beside[] = {SIM_KILLS, SIM_KILLS, SIM_PAUSES, SIM_CUTS, SIM_STALLS, SIM_FREEZES, SIM_REFUSALS};
    static const enum sim_profile near[] = {SIM_KILLS,  SIM_PAUSES,  SIM_CUTS,     SIM_CUTS,    SIM_STALLS,
                                            SIM_STALLS, SIM_FREEZES, SIM_RESTARTS, SIM_AMNESIA, SIM_FAILOVERS};
    history.faults++;
    switch (how) {
    case SIM_KILLS:
        kill_one();
        break;
    case SIM_PAUSES:
        pause_one();
        break;
    case SIM_CUTS:
        cut_one();
        break;
    case SIM_STALLS:
        if (sim_chance(40))
            isolate_one();
        else
            stall_one();
        break;
    case SIM_FREEZES:
        freeze_or_flush();
        break;
    case SIM_RESTARTS:
    case SIM_AMNESIA:
        crash(how == SIM_RESTARTS);
        break;
    case SIM_FAILOVERS:
        if (sim_server->up && sim_server->frozen_until <= sim.now)
            fail_over();
        break;
    case SIM_CLOCKS:
        trouble_clocks();
        break;
    case SIM_REFUSALS:
        sim_server_refuse((enum sim_refusal)sim_between(0, 2));
        break;
    case SIM_FOREIGN:
        meddle();
        break;
    case SIM_LIES:
        sim_lie();
        break;
    case SIM_NEIGHBOURS:
        if (!sim_beside.mild)
            hurt(beside[sim_between(0, (int64_t)(sizeof beside / sizeof beside[0]) - 1)]);
        break;
    case SIM_NEAR:
        if (sim_near.hurt == SIM_STORM)
            hurt(near[sim_between(0, (int64_t)(sizeof near / sizeof near[0]) - 1)]);
        else if (sim_near.hurt != SIM_CALM)
            hurt(sim_near.hurt);
        break;
    case SIM_REPLICAS:
    case SIM_SENTINELS:
        if (sim_chance(90))
            sim_takeovers_hurt();
        else if (sim_chance(50))
            cut_one();
        else
            kill_one();
        break;
    default:
        break;
    }
}

static void fault(void *what, int64_t number)
{
    static const enum sim_profile all[] = {SIM_KILLS,  SIM_PAUSES,  SIM_CUTS,    SIM_CUTS,
                                           SIM_STALLS, SIM_STALLS,  SIM_FREEZES, SIM_RESTARTS,
                                           SIM_CLOCKS, SIM_FOREIGN, SIM_REFUSALS, SIM_LIES};
    (void)what;
    (void)number;
    if (history.healed != 0)
        return;
    hurt(is(SIM_STORM) ? all[sim_between(0, (int64_t)(sizeof all / sizeof all[0]) - 1)] : history.profile);
    bool often = is(SIM_CUTS) || is(SIM_STALLS) || is(SIM_PAUSES) || is(SIM_FOREIGN);
    often = often || is(SIM_NEAR) || is(SIM_REPLICAS) || is(SIM_SENTINELS);
    int64_t apart_ms = is(SIM_LIES) ? sim_between(1, 60) : sim_between(10, often ? 500 : 2000);
    sim_at(sim.now + apart_ms * HFI_MS, NULL, fault, NULL, 0);
}

/* Evicts the fence counter, only in histories whose clock never goes back and whose data stay: there the fence floor
 * is enough to keep fences rising (P8), if a clock that is a key, exact to 1 ms, goes on before the next grant. */
static void evict(void *what, int64_t number)
{
    (void)what;
    (void)number;
    if (history.healed != 0)
        return;
    int64_t served_ms = sim_server->keys.now_us / 1000;
    sim_server->keys.now_us = sim_server_us();
    if (sim_server->keys.forbidden != NULL && sim_server->keys.now_us / 1000 == served_ms) {
        sim_at(sim.now + HFI_MS, NULL, evict, NULL, 0);
        return;
    }
    if (sim_keyspace_evict(&sim_server->keys, "hf:fence"))
        sim_say("the fence counter is evicted");
    sim_at(sim.now + sim_between(5, 1000) * HFI_MS, NULL, evict, NULL, 0);
}

/* In histories of all kinds, for no promise depends on it. */
static void forget_scripts(void *what, int64_t most_ms)
{
    (void)what;
    if (history.healed != 0)
        return;
    sim_server_forget_scripts(sim_chance(20));
    sim_at(sim.now + sim_between(1, most_ms) * HFI_MS, NULL, forget_scripts, NULL, most_ms);
}

/* ---- the plan ---- */

void sim_faults_plan(void)
{
    history.forward_budget_us = history.guard_ms * 800;
    if (is(SIM_DEAF) && sim_chance(50))
        sim_server->takes_subscribers = false;
    else if (is(SIM_DEAF))
        sim_server->lost_percent = 100;
    if (is(SIM_DEAF))
        history.linger_ms = 0;
    if (is(SIM_SINGLES)) {
        sim_server->lost_percent = (int)sim_between(5, 60);
        sim_server->twice_percent = (int)sim_between(0, 30);
        sim_server->spared_ns = 1000 * HFI_MS;
    }
    if (is(SIM_LOSSY) || is(SIM_STORM)) {
        sim_server->lost_percent = (int)sim_between(0, 60);
        sim_server->twice_percent = (int)sim_between(0, 30);
        sim_server->late_percent = (int)sim_between(0, 30);
        sim_server->late_most = (sim_chance(50) ? 2000 : history.lease_ms + 2 * history.guard_ms) * HFI_MS;
    }
    if (is(SIM_STALLS) || is(SIM_STORM) || is(SIM_LOSSY)) {
        sim_network.delay_most = sim_between(1, 20) * HFI_MS;
        sim_network.spike_percent = (int)sim_between(0, 5);
        sim_network.spike_most = sim_between(1, 200) * HFI_MS;
    }
    if (history.by_sentinels) {
        sim_topologies_begin();
        sim_hosts_begin(history.apart_us);
        sim_sentinels_begin(history.down_after_ms * HFI_MS);
        sim_takeovers_begin();
    }
    history.clock_goes_back = is(SIM_STORM) || ((is(SIM_CLOCKS) || is(SIM_FAILOVERS)) && sim_chance(50));
    if (is(SIM_FAILOVERS) || (is(SIM_NEAR) && sim_near.hurt == SIM_FAILOVERS))
        remember(NULL, 0);
    if (sim_chance(30))
        forget_scripts(NULL, sim_chance(50) ? 50 : 500);
    if (!is(SIM_CALM) && !is(SIM_DEAF) && !is(SIM_LOSSY) && !is(SIM_SINGLES))
        sim_at(sim_between(200, 1500) * HFI_MS, NULL, fault, NULL, 0);
    if (is(SIM_LOSSY) || is(SIM_SINGLES) || is(SIM_KILLS) || (is(SIM_CLOCKS) && !history.clock_goes_back))
        sim_at(sim_between(100, 1500) * HFI_MS, NULL, evict, NULL, 0);
}

void sim_faults_end(void)
{
    history.healed = sim.now;
    sim_say("from here on all is well");
    if (history.by_sentinels) {
        sim_hosts_heal();
        sim_sentinels_heal();
        sim_topologies_heal();
    }
    if (sim_server->frozen_until > sim.now)
        sim_server->frozen_until = sim.now;
    sim_server->keys.refuses = SIM_TAKES_ALL;
    if (!is(SIM_DEAF) && !is(SIM_SINGLES))
        sim_server->lost_percent = sim_server->late_percent = 0;
    sim_network.spike_percent = 0;
    sim_network.spike_most = 0;
    sim_network.delay_most = HFI_MS;
    sim_network.delay_least = HFI_MS / 20;
    for (struct hfi_list *at = sim_network.wires.next; at != &sim_network.wires; at = at->next) {
        struct sim_wire *wire = hfi_container_of(at, struct sim_wire, link);
        if (wire->client_open &&
            !wire->server_open) /* else an idle one would be found out at its next use only */
            sim_wire_down(wire, sim_packet_new(SIM_END, NULL, 0));
        sim_wire_flows(wire);
    }
    for (int i = 0; i < sim.process_count; i++)
        sim.processes[i].isolated_until = 0;
    for (int i = 0; i < SIM_LOCKS; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "hf:{n%d}", i);
        const char *value = sim_keyspace_string(&sim_server->keys, key);
        if (value != NULL && value[0] == 's')
            sim_server_del(key);
    }
}

bool sim_faults_may_hurt(const struct sim_process *process, int64_t since)
{
    return process->last_pause_end != 0 && process->last_pause_end >= since;
}

static bool is_mild(void)
{
    return (is(SIM_NEIGHBOURS) && sim_beside.mild) || (is(SIM_NEAR) && sim_near.hurt == SIM_CALM);
}

bool sim_connections_are_well(void)
{
    return is(SIM_CALM) || is(SIM_DEAF) || is(SIM_SINGLES) || is(SIM_KILLS) || is(SIM_CLOCKS) || is(SIM_LIES) || is_mild();
}

bool sim_faults_cost_nothing(void)
{
    return is(SIM_CALM) || is(SIM_LIES) || is_mild();
}

bool sim_world_is_well(void)
{
    bool always = is(SIM_CALM) || is(SIM_DEAF) || is(SIM_SINGLES) || is(SIM_KILLS) || is(SIM_LIES) || is_mild();
    return always || (history.settled != 0 && sim.now > history.settled);
}
