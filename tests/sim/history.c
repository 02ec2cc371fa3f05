/* SPDX-License-Identifier: MIT */
/* history.c - processes whose threads lock, hold, fetch, cancel and release; from the first dial to the last close. */
#include "tests/sim/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLACK_NS  (20 * HFI_MS)
#define FAULTS_NS (4500 * HFI_MS) /* then all is well, and everybody goes on: */
#define SETTLE_NS (2500 * HFI_MS) /* when timeouts and dials are over, the bounds hold, */
#define WELL_NS   (2000 * HFI_MS) /* and are watched for so long */
#define WAIT_MOST 3000

struct sim_history history;

static int64_t here(void)
{
    return sim_clock(sim.self, sim.now);
}

/* ---- what a call may take ---- */

static void check_length(const char *call, int64_t began, int64_t most_ms)
{
    if (!sim_faults_may_hurt(sim.self, began))
        sim_oracle_took(&history.oracle, call, sim.now - began, most_ms * HFI_MS / 98 * 100 + SLACK_NS);
}

static void check_status(const char *call, hf_status status, const hf_error *error)
{
    bool well = history.profile == SIM_CALM || history.profile == SIM_DEAF ||
                history.profile == SIM_SINGLES || history.profile == SIM_KILLS;
    bool expected = status == HF_OK || status == HF_BUSY || status == HF_TIMEOUT || status == HF_CANCELED;
    bool server_away = status == HF_UNAVAILABLE || status == HF_UNKNOWN || status == HF_LOST;
    sim_say("%s: %s%s%s", call, hf_status_name(status), status != HF_OK ? ", " : "",
            status != HF_OK ? error->message : "");
    if (!expected && !(server_away && !well) && !(status == HF_LOST && history.profile == SIM_KILLS))
        sim_violation("[status] %s says %s: %s", call, hf_status_name(status), error->message);
}

/* ---- a thread's deeds ---- */

static void fire(void *what, int64_t number)
{
    (void)number;
    sim_say("cancel is fired");
    hf_cancel_fire(what);
}

static int64_t some_lease_ms(void)
{
    return history.same_leases || sim_chance(80) ? history.lease_ms : sim_between(100, 2 * history.lease_ms);
}

static int64_t some_wait_ms(void)
{
    int die = (int)sim_between(0, 9);
    return die < 2 ? 0 : die < 4 ? sim_between(1, 100) : sim_between(100, WAIT_MOST);
}

static void ask_the_server(const struct sim_holding *holding)
{
    hf_error error = {.status = HF_OK};
    int64_t began = sim.now;
    hf_status status = hf_lease_verify(holding->lease, &error);
    bool unclear = status == HF_UNKNOWN || status == HF_UNAVAILABLE;
    sim_say("verify: %s", hf_status_name(status));
    if (status != HF_OK && status != HF_LOST && !unclear)
        sim_violation("[release-is-honest] verify says %s: %s", hf_status_name(status), error.message);
    if (status == HF_LOST && hf_lease_is_valid(holding->lease))
        sim_violation("[release-is-honest] verify says LOST, and the lease is valid");
    check_length("verify", began, history.command_ms);
}

/* Works under the lease for a while, unless it is lost. */
static void work(const struct sim_holding *holding)
{
    int die = (int)sim_between(0, 9);
    int64_t until = here() + (die < 6   ? sim_between(0, 10)
                              : die < 9 ? sim_between(0, history.hold_most)
                                        : sim_between(0, 3 * history.hold_most)) *
                                 HFI_MS;
    while (here() < until && hf_lease_is_valid(holding->lease)) {
        int64_t left = until - here();
        sim_sleep(left < 50 * HFI_MS ? left : 50 * HFI_MS);
        if (sim_chance(2))
            ask_the_server(holding);
    }
}

static void give_back(struct sim_holding *holding)
{
    hf_error error = {.status = HF_OK};
    hf_lease *lease = holding->lease;
    bool posts = sim_chance(40), valid = hf_lease_is_valid(lease);
    int64_t began = sim.now;
    sim_say("%s lock %d%s", posts ? "posts the release of" : "releases", holding->lock,
            valid ? "" : " (it is over)");
    sim_watch_releases(holding);
    hf_status status = posts ? hf_lease_post_release(lease, &error) : hf_lease_release(lease, &error);
    sim_oracle_released(&history.oracle, holding->grant, valid, status == HF_OK);
    holding->lease = NULL;
    holding->released = true;
    if (!valid && history.profile == SIM_CALM)
        sim_violation("[no-false-loss] a lease is lost though nothing is wrong");
    check_status("release", status, &error);
    check_length("release", began, history.command_ms);
}

static void lock_once(struct sim_actor *actor)
{
    hf_error error = {.status = HF_OK};
    hf_lease *lease;
    int lock = (int)sim_between(0, history.locks - 1);
    char name[16];
    (void)snprintf(name, sizeof name, "n%d", lock);
    struct sim_holding *holding = sim_watch_expect(lock);
    hf_lock_options options = {.size = sizeof options,
                               .lease_ms = some_lease_ms(),
                               .wait_ms = some_wait_ms(),
                               .linger_ms = sim_chance(30) ? history.linger_ms : 0,
                               .max_hold_ms = sim_chance(5) ? sim_between(10, history.lease_ms) : 0,
                               .on_event = sim_watch_event,
                               .arg = holding};
    if (actor->cancel != NULL && sim_chance(10)) {
        hf_cancel_reset(actor->cancel);
        options.cancel = actor->cancel;
        sim_at(sim.now + sim_between(0, 300 * HFI_MS), sim.self, fire, actor->cancel, 0);
    }
    bool calm = options.max_hold_ms == 0;
    int64_t began = sim.now;
    history.acquires++;
    sim_say("thread %d wants lock %d, waits %lld ms, lease %lld ms", actor->number, lock,
            (long long)options.wait_ms, (long long)options.lease_ms);
    sim_oracle_calls(&history.oracle, sim.self->id, lock);
    actor->waits_since = sim.now;
    actor->waits_for = options.wait_ms > 0 ? lock : -1;
    hf_status status = hf_lock_acquire(actor->process->client, name, &options, &lease, &error);
    actor->waits_for = -1;
    check_status("acquire", status, &error);
    check_length("acquire", began, options.wait_ms > 0 ? options.wait_ms : history.command_ms + 500);
    if (status != HF_OK)
        return;
    sim_watch_granted(holding, lease);
    work(holding);
    if (!calm && !hf_lease_is_valid(lease)) {
        sim_watch_releases(holding);
        (void)hf_lease_release(lease, &error);
        sim_oracle_released(&history.oracle, holding->grant, false, false);
        return;
    }
    give_back(holding);
}

/* ---- fetching ---- */

static hf_status load(hf_loading *loading, void *arg)
{
    char value[64];
    int page = *(const int *)arg;
    hf_lease *lease = hf_loading_lease(loading);
    struct sim_holding *holding = NULL;
    int64_t began = sim.now;
    history.loads++;
    if (lease != NULL && hf_lease_is_valid(lease)) {
        holding = sim_watch_expect(SIM_LOCKS + page);
        sim_watch_granted(holding, lease);
    }
    sim_sleep(sim_between(0, sim_chance(20) ? 2 * history.lease_ms : 100) * HFI_MS);
    int size = snprintf(value, sizeof value, "%lld %lld",
                        lease != NULL ? (long long)hf_lease_fence(lease) : 0LL, (long long)began);
    if (holding != NULL)
        sim_watch_releases(holding);
    if (sim_chance(10))
        return hf_loading_fail(loading, 0, "the origin is away");
    if (sim_chance(10))
        return hf_loading_absent(loading);
    return hf_loading_set(loading, value, (size_t)size);
}

/* What Redis has now is never from before the last forget, unless a failover brought it back; what others or this
 * process loaded or saw may be, until the message of the forget is there. */
static void check_value(int page, const hf_value *value, int64_t began)
{
    long long fence, load_began;
    if (value->absent)
        return;
    if (sscanf(value->data, "%lld %lld", &fence, &load_began) != 2 || load_began > sim.now)
        sim_violation("[no-stale-value] a fetch gets what nobody has loaded: %s", (const char *)value->data);
    else if (history.profile == SIM_CALM || (history.profile != SIM_FAILOVERS && value->source == HF_CACHED))
        sim_oracle_fetched(&history.oracle, SIM_LOCKS + page, load_began, began,
                           value->source == HF_CACHED ? 0 : SLACK_NS);
}

static void fetch_once(struct sim_actor *actor)
{
    hf_error error = {.status = HF_OK};
    hf_value *value;
    char key[16];
    int page = (int)sim_between(0, history.pages - 1);
    (void)snprintf(key, sizeof key, "page%d", page);
    hf_fetch_options options = {.size = sizeof options,
                                .load = load,
                                .arg = &page,
                                .ttl_ms = sim_between(10, 1000),
                                .stale_ms = sim_chance(50) ? sim_between(1, 1000) : 0,
                                .early = sim_chance(30) ? 1.0 : 0,
                                .negative_ttl_ms = sim_between(0, 300),
                                .wait_ms = sim_chance(20) ? HF_OFF : sim_between(1, WAIT_MOST),
                                .lease_ms = history.lease_ms};
    int64_t began = sim.now;
    history.fetches++;
    sim_oracle_calls(&history.oracle, sim.self->id, SIM_LOCKS + page);
    if (sim_chance(5)) {
        hf_status status = hf_fetch_forget(actor->process->client, key, &error);
        check_status("forget", status, &error);
        check_length("forget", began, history.command_ms);
        return;
    }
    hf_status status = hf_fetch(actor->process->client, key, &options, &value, &error);
    sim_say("fetch %s: %s", key, hf_status_name(status));
    if (status != HF_LOAD_FAILED)
        check_status("fetch", status, &error);
    /* A read; others' load; a load of one's own, here or after them; its fill. */
    check_length("fetch", began, 3 * (history.command_ms + 500) + WAIT_MOST + 4 * history.lease_ms + 100);
    if (status == HF_OK) {
        check_value(page, value, began);
        hf_value_free(value);
    }
}

static void break_once(struct sim_actor *actor)
{
    hf_error error = {.status = HF_OK};
    char name[16];
    (void)snprintf(name, sizeof name, "n%d", (int)sim_between(0, history.locks - 1));
    hf_status status = hf_lock_break(actor->process->client, name, NULL, &error);
    if (status != HF_FOREIGN)
        check_status("break", status, &error);
}

static void act(void *arg)
{
    struct sim_actor *actor = arg;
    hf_error error;
    bool breaks = history.profile == SIM_FOREIGN || history.profile == SIM_STORM;
    if (hf_cancel_open(actor->process->client, &actor->cancel, &error) != HF_OK)
        actor->cancel = NULL;
    while (history.ops_end > sim.now) {
        sim_sleep(sim_between(0, history.think_most) * HFI_MS);
        if (history.pages > 0 && sim_chance(25))
            fetch_once(actor);
        else if (breaks && history.healed == 0 && sim_chance(3)) /* whoever is broken has a moment to stop */
            break_once(actor);
        else
            lock_once(actor);
    }
    sim_say("thread %d has done its work", actor->number);
    actor->over = true;
}

/* ---- processes ---- */

static void open_client(void *arg)
{
    struct sim_process *process = arg;
    hf_error error = {.status = HF_OK};
    hf_client_options options = {.size = sizeof options,
                                 .lease_ms = history.lease_ms,
                                 .guard_ms = history.guard_ms,
                                 .command_ms = history.command_ms,
                                 .lanes = (int)sim_between(1, 2),
                                 .keyspace_events = sim_chance(30) ? "off" : "auto",
                                 .lazy = sim_chance(50)};
    while (hf_client_open("redis://virtual", &options, &process->client, &error) != HF_OK)
        sim_sleep(sim_between(1, 200) * HFI_MS);
    sim_say("the client is open");
    for (int i = 0; i < history.threads && history.actor_count < SIM_ACTORS; i++) {
        struct sim_actor *actor = &history.actors[history.actor_count];
        *actor = (struct sim_actor){.process = process, .number = history.actor_count++, .waits_for = -1};
        sim_thread_start(process, act, actor);
    }
}

void sim_process_begin(void)
{
    struct sim_process *process = sim_process_new();
    sim_say("process %d begins, its clock %+lld ppm", process->id, (long long)process->clock_ppm);
    sim_thread_start(process, open_client, process);
}

static bool all_over(void)
{
    for (int i = 0; i < history.actor_count; i++)
        if (history.actors[i].process->alive && !history.actors[i].over)
            return false;
    return true;
}

static void check_nobody_hangs(void)
{
    for (int i = 0; i < history.actor_count; i++)
        if (history.actors[i].process->alive && !history.actors[i].over)
            sim_oracle_hangs(&history.oracle, "thread", i);
}

/* ---- the end: a stranger gets every lock, everybody closes ---- */

static int still_open;
static bool probed;

static void probe(void *arg)
{
    struct sim_process *process = arg;
    hf_client_options options = {
        .size = sizeof options, .lease_ms = history.lease_ms, .guard_ms = history.guard_ms};
    hf_error error = {.status = HF_OK};
    if (hf_client_open("redis://virtual", &options, &process->client, &error) != HF_OK)
        sim_violation("[status] nobody can open a client though all is well: %s", error.message);
    for (int lock = 0; process->client != NULL && lock < history.locks; lock++) {
        char name[16];
        hf_lease *lease;
        (void)snprintf(name, sizeof name, "n%d", lock);
        struct sim_holding *holding = sim_watch_expect(lock);
        hf_lock_options wait = {.size = sizeof wait, .wait_ms = 600 + history.linger_ms};
        hf_status status = hf_lock_acquire(process->client, name, &wait, &lease, &error);
        if (status != HF_OK) {
            sim_violation("[keys-end] lock %d is nobody's and not to be had: %s", lock, error.message);
            return;
        }
        sim_watch_granted(holding, lease);
        give_back(holding);
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
    check_length("close", began, 1000);
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

static void run_phases(void)
{
    sim_run(FAULTS_NS);
    sim_faults_end();
    history.settled = sim.now + SETTLE_NS;
    for (int i = 0; i < sim.process_count; i++) /* a pause goes on to its end */
        if (sim.processes[i].last_pause_end + SETTLE_NS > history.settled)
            history.settled = sim.processes[i].last_pause_end + SETTLE_NS;
    sim_run(history.ops_end);
    int64_t most = sim.now + (2 * WAIT_MOST + 10 * history.lease_ms + 10000) * HFI_MS;
    while (!all_over() && sim.now < most && sim.failure[0] == 0)
        sim_run(sim.now + 100 * HFI_MS);
    check_nobody_hangs();
    /* What is left of the dead ends by itself; then there is no reason to wait for anything. */
    sim_run(sim.now + (2 * history.lease_ms + history.lease_ms / 10 + history.guard_ms + 5000) * HFI_MS);
    sim.process_count = sim.process_count == SIM_PROCESSES ? SIM_PROCESSES - 1 : sim.process_count;
    probed = false;
    struct sim_process *stranger = sim_process_new();
    sim_thread_start(stranger, probe, stranger);
    for (int i = 0; i < 50 && !probed && sim.failure[0] == 0; i++)
        sim_run(sim.now + 200 * HFI_MS);
    if (!probed)
        sim_oracle_hangs(&history.oracle, "the stranger, process", stranger->id);
    if (sim.failure[0] == 0)
        close_all();
    if (sim.failure[0] == 0)
        sim_tokens_look_at_the_end();
}

/* ---- from the seed ---- */

static void draw(enum sim_profile profile)
{
    static const int64_t leases[] = {150, 300, 500, 1000, 2000, 3000};
    int64_t die = sim_between(0, SIM_PROFILES - 1);
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
    history.ops_end = FAULTS_NS + SETTLE_NS + WELL_NS;
}

void sim_history_run(uint64_t seed, enum sim_profile profile, bool verbose, struct sim_result *result)
{
    sim_begin(seed, verbose);
    sim_network_begin();
    sim_server_begin();
    draw(profile);
    sim_say("seed %llu: %s, %d processes of %d threads, %d locks, %d pages, lease %lld ms, guard %lld ms",
            (unsigned long long)seed, sim_profile_name(history.profile), history.process_goal,
            history.threads, history.locks, history.pages, (long long)history.lease_ms,
            (long long)history.guard_ms);
    sim_watch_begin();
    sim_faults_plan();
    for (int i = 0; i < history.process_goal; i++)
        sim_process_begin();
    run_phases();
    *result = (struct sim_result){.grants = history.grants,
                                  .acquires = history.acquires,
                                  .fetches = history.fetches,
                                  .loads = history.loads,
                                  .faults = history.faults,
                                  .events = sim.events,
                                  .commands = sim_server.commands,
                                  .losses = history.oracle.losses,
                                  .messages = sim_server.messages,
                                  .digest = sim.digest,
                                  .longest_gap = history.oracle.longest_gap,
                                  .length = sim.now,
                                  .profile = history.profile};
    if (sim.failure[0] != 0)
        (void)snprintf(result->failure, sizeof result->failure, "%s: %s", sim_profile_name(history.profile),
                       sim.failure);
}
