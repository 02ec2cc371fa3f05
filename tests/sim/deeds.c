/* SPDX-License-Identifier: MIT */
/* deeds.c - the calls that a program's threads make (lock, start, hold, fetch, cancel, break, release), and a check of each
 * result against the promise of that call. */
#include "core/lock/handle.h"
#include "base/park.h"
#include "core/policy/fence.h"
#include "tests/sim/near.h"
#include "tests/sim/neighbours.h"
#include "tests/sim/stops.h"

#include <stdio.h>
#include <stdlib.h>

#define SLACK_NS  (20 * HFI_MS)

static int64_t here(void)
{
    return sim_clock(sim.self, sim.now);
}

/* ---- what a call may take ---- */

/* The longest that a lease or wait may last on the process's own clock: the clock may be slow, and the time for
 * which its threads were stopped does not count. */
static int64_t may_last(int64_t began, int64_t most_ms)
{
    int64_t most = most_ms * HFI_MS / 98 * 100 + SLACK_NS;
    return sim.now - began > most ? most + sim_stopped(sim.self, began) : most;
}

void sim_call_took(const char *call, int64_t began, int64_t most_ms)
{
    if (!sim_faults_may_hurt(sim.self, began))
        sim_oracle_took(&history.oracle, call, sim.now - began, may_last(began, most_ms));
}

void sim_check_status(const char *call, hf_status status, const hf_error *error)
{
    bool well = sim_faults_cost_nothing() || history.profile == SIM_DEAF ||
                history.profile == SIM_SINGLES || history.profile == SIM_KILLS;
    bool expected = status == HF_OK || status == HF_BUSY || status == HF_TIMEOUT || status == HF_CANCELED;
    int64_t lease_ns = history.lease_ms * HFI_MS; /* a process that stood still as long is served too late */
    bool starved = 2 * sim_stopped(sim.self, sim.now - lease_ns) >= lease_ns;
    bool server_away = status == HF_UNAVAILABLE || status == HF_UNKNOWN || status == HF_LOST;
    sim_say("%s: %s%s%s", call, hf_status_name(status), status != HF_OK ? ", " : "",
            status != HF_OK ? error->message : "");
    if (!expected && !(server_away && (!well || starved)) && !(status == HF_LOST && history.profile == SIM_KILLS))
        sim_violation("[status] %s says %s: %s", call, hf_status_name(status), error->message);
}

/* What one command may take. A replica that stands still holds it up three times (docs/guarantees.md). */
static int64_t command_ms(void)
{
    return history.command_ms + 3 * history.replicas_ms;
}

/* ---- a thread's deeds ---- */

static void fire(void *what, int64_t number)
{
    struct sim_actor *actor = what;
    (void)number;
    sim_say("the cancel of thread %d is fired", actor->number);
    actor->fired = sim.now;
    hf_cancel_fire(actor->cancel);
}

hf_cancel *sim_some_cancel(struct sim_actor *actor, int percent)
{
    if (actor->cancel == NULL || !sim_chance(percent))
        return NULL;
    hf_cancel_reset(actor->cancel);
    actor->fired = -1;
    if (sim_chance(30))
        fire(actor, 0);
    else
        sim_at(sim.now + sim_between(0, 300 * HFI_MS), sim.self, fire, actor, 0);
    return actor->cancel;
}

/* It ends as soon as that, once its cancel was fired. */
static void check_cancel(const char *call, const struct sim_actor *actor, const hf_cancel *cancel, int64_t began,
                         int64_t most_ms)
{
    int64_t from = actor->fired > began ? actor->fired : began;
    if (cancel != NULL && actor->fired >= 0 && !sim_faults_may_hurt(sim.self, from))
        sim_oracle_canceled(&history.oracle, call, sim.now - from, may_last(from, most_ms));
}

static int64_t some_lease_ms(void)
{
    return history.same_leases || sim_chance(80) ? history.lease_ms : sim_between(100, 2 * history.lease_ms);
}

static int64_t some_wait_ms(void)
{
    int die = (int)sim_between(sim_beside.on && sim_beside.contends ? 4 : 0, 9); /* a try gets what is left to the others */
    return die < 2 ? 0 : die < 4 ? sim_between(1, 100) : sim_between(100, SIM_WAIT_MS);
}

/* In a dialect, or, where only part of the acquires name one, perhaps another lock in none. */
static const char *some_lock(int *lock, char name[16])
{
    *lock = (int)sim_between(0, history.locks - 1);
    bool plain = !sim_beside.on || (sim_beside.by_call && sim_chance(25));
    if (sim_beside.on && plain)
        *lock = SIM_PLAIN_LOCK;
    (void)snprintf(name, 16, "n%d", *lock);
    return plain ? NULL : sim_beside.dialect;
}

/* An operator has taken it away by force. */
static bool is_broken(const struct sim_holding *holding)
{
    int64_t since = holding->expected - 2 * history.lease_ms * HFI_MS; /* it was passed on before its process heard of that */
    return sim_is_beside(holding->lock) && sim_beside_broken_at(holding->lock) >= since && sim_beside_broken_at(holding->lock) >= 0;
}

/* Beside others that do, or alone. */
static bool shares(void)
{
    return history.reads > 0 && sim_chance(history.reads);
}

static void ask_the_server(const struct sim_holding *holding)
{
    hf_error error = {.status = HF_OK};
    int64_t began = sim.now;
    hf_status status = hf_lease_verify(holding->lease, &error);
    bool in_doubt = status == HF_UNKNOWN || status == HF_UNAVAILABLE;
    sim_say("verify: %s", hf_status_name(status));
    if (status != HF_OK && status != HF_LOST && !in_doubt)
        sim_violation("[release-is-honest] verify says %s: %s", hf_status_name(status), error.message);
    if (status == HF_LOST && hf_lease_is_valid(holding->lease))
        sim_violation("[release-is-honest] verify says LOST, and the lease is valid");
    sim_call_took("verify", began, command_ms());
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

/* From the call on it may be shared, and is not relied on to be alone. */
static void downgrade(struct sim_holding *holding)
{
    hf_error error = {.status = HF_OK};
    int64_t began = sim.now;
    holding->downgraded = true;
    sim_oracle_downgraded(&history.oracle, holding->grant);
    hf_status status = hf_lease_downgrade(holding->lease, &error);
    sim_say("downgrade: %s", hf_status_name(status));
    if (status == HF_LOST && hf_lease_is_valid(holding->lease))
        sim_violation("[release-is-honest] downgrade says LOST, and the lease is valid");
    if (status != HF_LOST)
        sim_check_status("downgrade", status, &error);
    sim_call_took("downgrade", began, command_ms());
}

void sim_give_back(struct sim_holding *holding)
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
    bool starved = 2 * sim_stopped(sim.self, holding->given) >= holding->good_for || is_broken(holding); /* what renews it had no time to */
    if (!valid && sim_faults_cost_nothing() && !starved)
        sim_violation("[no-false-loss] a lease is lost though nothing is wrong");
    bool late = status == HF_LOST && (starved || sim_stopped(sim.self, began) > 0); /* it went out when the key had ended */
    if (!late)
        sim_check_status("release", status, &error);
    sim_call_took("release", began, command_ms());
}

/* Acquires and releases a lingering lease, in no time and without the oracle, which hears of one call, until its block of fences
 * is used up: the next acquirer waits for the next block. */
static void use_up_fences(const struct sim_actor *actor, int lock, const char *name)
{
    hf_lock_options options = {.size = sizeof options, .lease_ms = 100, .wait_ms = 200, .linger_ms = 50};
    hf_lease *lease;
    sim_oracle_calls(&history.oracle, sim_asker(false), lock);
    hf_status status = hf_lock_acquire(actor->process->client, name, &options, &lease, NULL);
    int64_t began = sim.now, fence = 0;
    sim_stops_pause(true);
    while (status == HF_OK) {
        fence = hf_lease_fence(lease) % HFI_FENCE_BLOCK;
        (void)hf_lease_post_release(lease, NULL);
        if (sim.now != began || fence == HFI_FENCE_BLOCK - 1)
            break;
        status = hf_lock_acquire(actor->process->client, name, &options, &lease, NULL);
    }
    sim_stops_pause(false);
    sim_say("thread %d has used fences of %s up to %lld", actor->number, name, (long long)fence);
}

static void lock_once(struct sim_actor *actor)
{
    hf_error error = {.status = HF_OK};
    hf_lease *lease;
    int lock;
    char name[16];
    const char *dialect = some_lock(&lock, name);
    if (history.uses_up_fences && sim_chance(15))
        use_up_fences(actor, lock, name);
    struct sim_holding *holding = sim_watch_expect(lock);
    holding->shared = shares();
    hf_lock_options options = {.size = sizeof options,
                               .shared = holding->shared,
                               .dialect = dialect,
                               .lease_ms = some_lease_ms(),
                               .wait_ms = some_wait_ms(),
                               .linger_ms = sim_chance(30) ? history.linger_ms : 0,
                               .max_hold_ms = !holding->shared && sim_chance(5) ? sim_between(10, history.lease_ms) : 0,
                               .on_event = sim_watch_event,
                               .arg = holding};
    bool calm = options.max_hold_ms == 0;
    int64_t began = sim.now;
    options.cancel = sim_some_cancel(actor, 10);
    history.acquires++;
    sim_say("thread %d wants %slock %d, waits %lld ms, lease %lld ms", actor->number, options.shared ? "to share " : "", lock,
            (long long)options.wait_ms, (long long)options.lease_ms);
    sim_oracle_calls(&history.oracle, sim_asker(options.shared), lock);
    actor->waits_since = sim.now;
    actor->waits_for = options.wait_ms > 0 ? lock : -1;
    hf_status status = hf_lock_acquire(actor->process->client, name, &options, &lease, &error);
    actor->waits_for = -1;
    sim_check_status("acquire", status, &error);
    sim_call_took("acquire", began, options.wait_ms > 0 ? options.wait_ms : history.command_ms);
    check_cancel("acquire", actor, options.cancel, began, 0);
    if (status != HF_OK)
        return;
    if (!sim_watch_granted(holding, lease)) {
        (void)hf_lease_release(lease, &error);
        return;
    }
    work(holding);
    if (history.reads > 0 && !options.shared && calm && sim_chance(30)) {
        downgrade(holding);
        work(holding);
    }
    if (!calm && !hf_lease_is_valid(lease)) {
        sim_watch_releases(holding);
        (void)hf_lease_release(lease, &error);
        sim_oracle_released(&history.oracle, holding->grant, false, false);
        return;
    }
    sim_give_back(holding);
}

static void permits_once(struct sim_actor *actor)
{
    hf_error error = {.status = HF_OK};
    hf_lease *lease;
    int limit = sim_chance(90) ? history.limit : (int)sim_between(1, history.limit);
    int permits = sim_chance(60) ? 1 : (int)sim_between(1, limit);
    hf_lock_options options = {.size = sizeof options,
                               .lease_ms = some_lease_ms(),
                               .wait_ms = some_wait_ms(),
                               .linger_ms = sim_chance(30) ? history.linger_ms : 0};
    int64_t began = sim.now;
    options.cancel = sim_some_cancel(actor, 10);
    history.acquires++;
    sim_say("thread %d wants %d permits of %d, waits %lld ms", actor->number, permits, limit, (long long)options.wait_ms);
    sim_oracle_calls(&history.oracle, sim_asker(false), SIM_SEMAPHORE);
    actor->waits_since = sim.now;
    actor->waits_for = options.wait_ms > 0 ? SIM_SEMAPHORE : -1;
    actor->wants_permits = permits + history.limit - limit;
    hf_status status = hf_semaphore_acquire(actor->process->client, "s", limit, permits, &options, &lease, &error);
    actor->waits_for = -1;
    sim_check_status("acquire of permits", status, &error);
    sim_call_took("acquire of permits", began, options.wait_ms > 0 ? options.wait_ms : history.command_ms);
    check_cancel("acquire of permits", actor, options.cancel, began, 0);
    if (status != HF_OK)
        return;
    if (hf_lease_permits(lease) != permits)
        sim_violation("[permits] %d were asked for and %d given", permits, hf_lease_permits(lease));
    struct sim_holding holding = {.process = actor->process, .lease = lease, .lock = SIM_SEMAPHORE, .given = sim.now,
                                  .good_for = hf_lease_remaining_ms(lease) * HFI_MS};
    if (sim_permits_granted(lease, permits))
        work(&holding);
    bool valid = hf_lease_is_valid(lease), posts = sim_chance(40);
    sim_permits_releases(lease);
    began = sim.now;
    sim_say("%s %d permits%s", posts ? "posts the release of" : "releases", permits, valid ? "" : " (it is over)");
    status = posts ? hf_lease_post_release(lease, &error) : hf_lease_release(lease, &error);
    bool starved = 2 * sim_stopped(sim.self, holding.given) >= holding.good_for;
    if (!valid && sim_faults_cost_nothing() && !starved)
        sim_violation("[no-false-loss] permits are lost though nothing is wrong");
    if (status != HF_LOST || !(starved || sim_stopped(sim.self, began) > 0))
        sim_check_status("release of permits", status, &error);
    sim_call_took("release of permits", began, command_ms());
}

/* ---- pendings ---- */

struct started { /* one pending; the history's end frees it */
    struct sim_actor *actor;
    struct sim_holding *holding;
    hf_pending *pending;
    struct hfi_park told; /* woken at `done` */
    int64_t began, most_ms, decided;
    int dones;
    bool takes_inside, taking, taken;
    hf_status status;
    hf_lease *lease;
};

static void pending_event(hf_lease *lease, const hf_event *event, void *arg)
{
    const struct started *s = arg;
    if (!s->taking)
        sim_violation("[pending] an event of a lease that nobody has yet");
    sim_watch_event(lease, event, s->holding);
}

static void take_pending(struct started *s)
{
    hf_error error = {.status = HF_OK};
    int64_t began = sim.now;
    bool decided = hf_pending_is_done(s->pending);
    hf_lease *lease = NULL;
    s->taking = true;
    s->status = hf_pending_take(s->pending, &lease, &error);
    s->actor->waits_for = s->actor->keeps = -1;
    s->taken = true;
    sim_say("thread %d takes its pending%s: %s", s->actor->number, decided ? "" : ", which is not decided",
            hf_status_name(s->status));
    bool kept = s->decided >= 0 && sim.now > s->decided;
    bool starved = (kept && 2 * sim_stopped(sim.self, s->began) >= history.lease_ms * HFI_MS) || is_broken(s->holding);
    if (!(s->status == HF_LOST && starved))
        sim_check_status("take", s->status, &error);
    if (decided && s->status == HF_CANCELED)
        sim_violation("[pending] what was decided is canceled");
    if ((s->status == HF_OK) != (lease != NULL))
        sim_violation("[pending] take says %s and gives %s", hf_status_name(s->status), lease != NULL ? "a lease" : "none");
    sim_call_took("take", began, 0);
    if (s->status == HF_OK && sim_watch_granted(s->holding, lease))
        s->lease = lease;
    else /* it is over: not the starting thread's, which goes on from here while this one gives it back */
        (void)hf_lease_post_release(lease, &error);
}

static void pending_done(hf_pending *pending, void *arg)
{
    struct started *s = arg;
    if (s->taken || s->dones++ > 0 || pending != s->pending || !hf_pending_is_done(pending))
        sim_violation("[pending] done is called at the wrong time, of the wrong one, or twice");
    if (s->taking)
        return; /* a thread is about to take it, and waits for us */
    sim_call_took("pending", s->began, s->most_ms);
    s->decided = s->holding->kept_since = sim.now;
    s->actor->waits_for = -1;
    s->actor->keeps = s->holding->lock; /* if it was granted */
    if (s->takes_inside)
        take_pending(s);
    hfi_park_wake(&s->told);
}

/* As lock_once, in the way of an event loop: taken inside `done`, when `done` has told, later, or before. */
static void start_once(struct sim_actor *actor)
{
    struct started *s = calloc(1, sizeof *s);
    hf_error error = {.status = HF_OK};
    char name[16];
    int lock;
    if (s == NULL)
        abort();
    const char *dialect = some_lock(&lock, name);
    hfi_park_init(&s->told);
    s->actor = actor;
    s->holding = sim_watch_expect(lock);
    s->holding->shared = shares();
    s->began = sim.now;
    s->decided = -1;
    s->takes_inside = sim_chance(40);
    hf_lock_options options = {.size = sizeof options,
                               .shared = s->holding->shared,
                               .dialect = dialect,
                               .lease_ms = some_lease_ms(),
                               .wait_ms = some_wait_ms(),
                               .linger_ms = sim_chance(30) ? history.linger_ms : 0,
                               .on_event = pending_event,
                               .arg = s};
    s->most_ms = options.wait_ms > 0 ? options.wait_ms : history.command_ms;
    int64_t patience = sim_chance(25) ? here() + sim_between(0, 300) * HFI_MS : HFI_NEVER;
    history.acquires++;
    sim_say("thread %d starts to want %slock %d, waits %lld ms, lease %lld ms", actor->number,
            options.shared ? "to share " : "", lock, (long long)options.wait_ms, (long long)options.lease_ms);
    sim_oracle_calls(&history.oracle, sim_asker(options.shared), lock);
    actor->waits_since = sim.now;
    actor->waits_for = options.wait_ms > 0 ? lock : -1;
    hf_status status = hf_lock_acquire_start(actor->process->client, name, &options, pending_done, s, &s->pending, &error);
    if (status != HF_OK) {
        sim_violation("[pending] start says %s: %s", hf_status_name(status), error.message);
        return;
    }
    sim_call_took("start", s->began, 0);
    for (uint32_t epoch = hfi_park_epoch(&s->told); s->dones == 0 && !s->takes_inside && here() < patience;
         epoch = hfi_park_epoch(&s->told))
        (void)hfi_park_wait(&s->told, epoch, patience);
    while (s->takes_inside && !s->taken) {
        uint32_t epoch = hfi_park_epoch(&s->told);
        if (!s->taken)
            (void)hfi_park_wait(&s->told, epoch, HFI_NEVER);
    }
    if (!s->taken && s->dones > 0 && sim_chance(30))
        sim_sleep(sim_between(0, 2 * history.lease_ms) * HFI_MS);
    if (!s->taken)
        take_pending(s);
    if (s->lease == NULL)
        return;
    work(s->holding);
    sim_give_back(s->holding);
}

/* ---- several locks ---- */

static void give_back_set(struct sim_holding **holdings, int count, hf_lease *whole, bool calm)
{
    hf_error error = {.status = HF_OK};
    bool valid = hf_lease_is_valid(whole), starved = false;
    int64_t began = sim.now;
    sim_say("releases %d locks%s", count, valid ? "" : " (they are over)");
    for (int i = 0; i < count; i++) {
        starved = starved || 2 * sim_stopped(sim.self, holdings[i]->given) >= holdings[i]->good_for || is_broken(holdings[i]);
        sim_watch_releases(holdings[i]);
        holdings[i]->lease = NULL;
        holdings[i]->released = true;
    }
    hf_status status = hf_lease_release(whole, &error);
    for (int i = 0; i < count; i++)
        sim_oracle_released(&history.oracle, holdings[i]->grant, valid, status == HF_OK);
    if (!valid && sim_faults_cost_nothing() && !starved && calm)
        sim_violation("[no-false-loss] a multilock is lost though nothing is wrong");
    if (status != HF_LOST || (valid && !starved && sim_stopped(sim.self, began) == 0))
        sim_check_status("release", status, &error);
    sim_call_took("release", began, command_ms());
}

static void work_on_set(struct sim_holding *const *holdings, int count, const hf_lease *whole)
{
    int64_t until = here() + sim_between(0, history.hold_most) * HFI_MS;
    while (here() < until && hf_lease_is_valid(whole)) {
        int64_t left = until - here();
        sim_sleep(left < 50 * HFI_MS ? left : 50 * HFI_MS);
    }
    for (int i = 0; i < count; i++)
        if (hf_lease_is_valid(whole) && !hf_lease_is_valid(holdings[i]->lease))
            sim_violation("[over-is-over] a multilock is valid, one of its locks is not");
}

/* Two or three locks, in any order. */
static void lock_several(struct sim_actor *actor)
{
    hf_error error = {.status = HF_OK};
    hf_lease *whole;
    char texts[SIM_LOCKS][16];
    const char *names[SIM_LOCKS];
    struct sim_holding *holdings[SIM_LOCKS];
    int count = history.locks > 2 && sim_chance(50) ? 3 : 2, first = (int)sim_between(0, history.locks - 1);
    bool backwards = sim_chance(50);
    for (int i = 0; i < count; i++) {
        int lock = (first + (backwards ? history.locks - i : i)) % history.locks;
        (void)snprintf(texts[i], sizeof texts[i], "n%d", lock);
        names[i] = texts[i];
        actor->wants_set |= 1u << lock;
        for (int calls = 0; calls < 2; calls++) /* all at once, then one after the other */
            sim_oracle_calls(&history.oracle, sim_asker(false), lock);
    }
    for (int lock = 0, i = 0; lock < history.locks; lock++) /* in the order of the parts */
        if ((actor->wants_set >> lock & 1) != 0)
            (holdings[i++] = sim_watch_expect(lock))->in_set = true;
    hf_lock_options options = {.size = sizeof options,
                               .dialect = sim_beside.on ? sim_beside.dialect : NULL,
                               .lease_ms = some_lease_ms(),
                               .wait_ms = some_wait_ms(),
                               .linger_ms = sim_chance(30) ? history.linger_ms : 0,
                               .max_hold_ms = sim_chance(5) ? sim_between(10, history.lease_ms) : 0};
    bool calm = options.max_hold_ms == 0;
    int64_t began = sim.now;
    options.cancel = sim_some_cancel(actor, 10);
    history.acquires++;
    sim_say("thread %d wants %d locks from %s on, waits %lld ms", actor->number, count, names[0], (long long)options.wait_ms);
    hf_status status = hf_multilock_acquire(actor->process->client, names, (size_t)count, &options, &whole, &error);
    sim_check_status("multilock", status, &error);
    sim_call_took("multilock", began, options.wait_ms > 0 ? options.wait_ms + 1 : (1 + count) * command_ms());
    check_cancel("multilock", actor, options.cancel, began, 0);
    bool granted = status == HF_OK;
    for (int i = 0; i < count && granted; i++)
        granted = sim_watch_granted(holdings[i], whole->parts->at[i].lease);
    if (granted) {
        work_on_set(holdings, count, whole);
        give_back_set(holdings, count, whole, calm);
    } else if (status == HF_OK) {
        for (int i = 0; i < count; i++)
            if (holdings[i]->grant >= 0)
                sim_watch_releases(holdings[i]);
        (void)hf_lease_release(whole, &error);
    }
    actor->wants_set = 0;
}

/* ---- fetching ---- */

struct fetching { /* what the loader of a call knows of it */
    int page;
    int64_t loaded_ns; /* so long it took */
};

static hf_status load(hf_loading *loading, void *arg)
{
    char value[64];
    struct fetching *fetching = arg;
    int page = fetching->page;
    hf_lease *lease = hf_loading_lease(loading);
    struct sim_holding *holding = NULL;
    int64_t began = sim.now;
    history.loads++;
    if (lease != NULL && hf_lease_is_valid(lease)) {
        holding = sim_watch_expect(SIM_LOCKS + page);
        (void)sim_watch_granted(holding, lease);
    }
    sim_sleep(sim_between(0, sim_chance(20) ? 2 * history.lease_ms : 100) * HFI_MS);
    fetching->loaded_ns += sim.now - began;
    int size = snprintf(value, sizeof value, "%lld %lld",
                        lease != NULL ? (long long)hf_lease_fence(lease) : 0LL, (long long)began);
    if (holding != NULL)
        sim_watch_releases(holding);
    if (hf_loading_tag(loading, SIM_TAG) != HF_OK)
        return HF_NOMEM;
    if (sim_chance(10))
        return hf_loading_fail(loading, 0, "the origin is away");
    if (sim_chance(10))
        return hf_loading_absent(loading);
    return hf_loading_set(loading, value, (size_t)size);
}

/* A value that Redis has now was stored after the last forget, unless a failover brought an older one back. A value
 * that other threads or this process loaded or saw may be older, until the message of the forget has arrived. */
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
    struct fetching fetching = {.page = (int)sim_between(0, history.pages - 1)};
    (void)snprintf(key, sizeof key, "page%d", fetching.page);
    hf_fetch_options options = {.size = sizeof options,
                                .load = load,
                                .arg = &fetching,
                                .ttl_ms = sim_between(10, 1000),
                                .stale_ms = sim_chance(50) ? sim_between(1, 1000) : 0,
                                .early = sim_chance(30) ? 1.0 : 0,
                                .negative_ttl_ms = sim_between(0, 300),
                                .wait_ms = sim_chance(20) ? HF_OFF : sim_between(1, SIM_WAIT_MS),
                                .lease_ms = history.lease_ms};
    int64_t began = sim.now;
    history.fetches++;
    sim_oracle_calls(&history.oracle, sim_asker(false), SIM_LOCKS + fetching.page);
    if (sim_chance(5)) {
        hf_client *client = actor->process->client;
        hf_status status = sim_chance(50) ? hf_fetch_forget(client, key, &error)
                                          : hf_fetch_forget_tag(client, SIM_TAG, NULL, &error);
        sim_check_status("forget", status, &error);
        sim_call_took("forget", began, history.command_ms);
        return;
    }
    began = sim.now;
    options.cancel = sim_some_cancel(actor, 20);
    hf_status status = hf_fetch(actor->process->client, key, &options, &value, &error);
    sim_say("fetch %s: %s", key, hf_status_name(status));
    if (status != HF_LOAD_FAILED)
        sim_check_status("fetch", status, &error);
    /* The limit is the sum of a read, a load by other threads, a load of its own (here or after theirs) and the fill. */
    sim_call_took("fetch", began, 3 * (history.command_ms + 500) + SIM_WAIT_MS + 4 * history.lease_ms + 100);
    check_cancel("fetch", actor, options.cancel, began, fetching.loaded_ns / HFI_MS); /* a load of its own is awaited */
    if (status == HF_OK) {
        check_value(fetching.page, value, began);
        hf_value_free(value);
    }
}

static void break_once(struct sim_actor *actor)
{
    hf_error error = {.status = HF_OK};
    char name[16];
    (void)snprintf(name, sizeof name, "n%d", (int)sim_between(0, history.locks - 1));
    hf_client *client = actor->process->client;
    bool permits = history.counts > 0 && sim_chance(50);
    hf_status status = permits ? hf_semaphore_break(client, "s", NULL, &error) : hf_lock_break(client, name, NULL, &error);
    if (status != HF_FOREIGN)
        sim_check_status("break", status, &error);
}

void sim_act(void *arg)
{
    struct sim_actor *actor = arg;
    hf_error error;
    bool breaks = history.profile == SIM_FOREIGN || history.profile == SIM_STORM;
    if (hf_cancel_open(actor->process->client, &actor->cancel, &error) != HF_OK)
        actor->cancel = NULL;
    while (history.ops_end > sim.now) {
        sim_sleep(sim_between(0, history.think_most) * HFI_MS);
        if (sim_near.on && sim_chance(90))
            sim_near_fetch(actor);
        else if (history.pages > 0 && !sim_near.on && sim_chance(25))
            fetch_once(actor);
        else if (breaks && history.healed == 0 && sim_chance(3)) /* whoever is broken has a moment to stop */
            break_once(actor);
        else if (history.counts > 0 && sim_chance(history.counts))
            permits_once(actor);
        else if (history.loops && sim_chance(60))
            start_once(actor);
        else if (history.locks > 1 && sim_chance(8))
            lock_several(actor);
        else
            lock_once(actor);
    }
    sim_say("thread %d has done its work", actor->number);
    actor->over = true;
}
