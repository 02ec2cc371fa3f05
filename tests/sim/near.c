/* SPDX-License-Identifier: MIT */
/* near.c - see near.h. */
#include "tests/sim/near.h"
#include "core/protocol/key.h"
#include "tests/sim/stops.h"
#include "tests/sim/versions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIFE_MOST 1990 /* ms, of a value of others: less than SIM_PAGE_MS */
#define FORGETS   16

struct sim_near sim_near;
static struct sim_versions versions;
static int64_t numbers; /* of values, so far */
static struct {         /* by a process's number */
    int64_t forgot[FORGETS]; /* when the server ran its last ones */
    int forgets;
    int64_t replaced, forgotten; /* what was there then, a write, a forget of its replaced that has returned; -1: none */
} own[SIM_PROCESSES + 1][SIM_PAGES];

static void report(const char *what)
{
    sim_violation("%s", what);
}

/* ---- from the seed ---- */

void sim_near_draw(void)
{
    static const enum sim_profile hurts[] = {SIM_CALM,     SIM_KILLS,   SIM_PAUSES,    SIM_CUTS,     SIM_CUTS, SIM_STALLS,
                                             SIM_STALLS,   SIM_FREEZES, SIM_RESTARTS,  SIM_AMNESIA,  SIM_FAILOVERS,
                                             SIM_FAILOVERS, SIM_STORM};
    sim_near = (struct sim_near){.on = true};
    sim_near.hurt = hurts[sim_between(0, (int64_t)(sizeof hurts / sizeof hurts[0]) - 1)];
    sim_near.write_most_ms = sim_chance(50) ? 60 : 600;
    int64_t lag_most = sim_chance(50) ? 150 : 1000;
    for (int i = 0; i <= SIM_PROCESSES; i++)
        sim_near.lag_ms[i] = sim_between(50, lag_most);
    if (sim_chance(40)) /* between a reply and its keeping, a proof and its use */
        sim_stops_often();
    history.pages = (int)sim_between(1, SIM_PAGES);
    history.locks = 1;
    history.reads = history.counts = 0;
    history.loops = history.uses_up_fences = false;
    history.think_most = sim_chance(50) ? 10 : 60;
    history.lease_ms = history.hold_most = sim_chance(50) ? 300 : 1000;
    if (sim_near.hurt != SIM_CALM && sim_chance(60)) {
        sim_network.delay_most = sim_between(1, 20) * HFI_MS;
        sim_network.spike_percent = (int)sim_between(0, 5);
        sim_network.spike_most = sim_between(1, 200) * HFI_MS;
    }
}

int64_t sim_near_lag_ms(const struct sim_process *process)
{
    return sim_near.on ? sim_near.lag_ms[process->id] : 0;
}

/* ---- what the server has ---- */

/* On true time: the first moment at which its clock is beyond this. */
static int64_t when_over(int64_t expire_ms)
{
    double us = (double)((expire_ms + 1) * 1000 - sim_server->clock_us) / (1 + (double)sim_server->clock_ppm / 1e6);
    return expire_ms == 0 ? INT64_MAX : (int64_t)(us + 3) * 1000;
}

static int64_t number_of(const char *value)
{
    const char *mark = strrchr(value, '#');
    return mark != NULL ? strtoll(mark + 1, NULL, 10) : SIM_NO_VALUE;
}

static void look_at_page(int page)
{
    char data[16], mark[64];
    int64_t ends = 0, number = SIM_NO_VALUE;
    bool over = true;
    (void)snprintf(data, sizeof data, "page%d", page);
    (void)snprintf(mark, sizeof mark, "hf:absent:{page%d}:hf:fetch:{page%d}", page, page);
    const char *value = sim_keyspace_look(&sim_server->keys, data, &ends, &over);
    if (value != NULL && !over)
        number = number_of(value);
    else if (sim_keyspace_look(&sim_server->keys, mark, &ends, &over) != NULL && !over)
        number = SIM_NONE_MARK;
    sim_versions_is(&versions, page, number, number == SIM_NO_VALUE ? INT64_MAX : when_over(ends), sim.now);
}

void sim_near_look(void)
{
    if (!sim_near.on)
        return;
    sim_server->keys.now_us = sim_server_us();
    for (int page = 0; page < history.pages; page++)
        look_at_page(page);
}

void sim_near_script_ran(const char *script, int page, const struct sim_process *process)
{
    if (sim_near.on && process != NULL && strcmp(script, "forget") == 0)
        own[process->id][page].forgot[own[process->id][page].forgets++ % FORGETS] = sim.now;
}

/* ---- other programs, and operators ---- */

/* What follows brings the fence counter back: that one is lost in other profiles. */
static void flush(void)
{
    const char *fence = sim_keyspace_string(&sim_server->keys, HFI_FENCE_KEY);
    struct sim_words words = {3, {"SET", HFI_FENCE_KEY, ""}, {3, strlen(HFI_FENCE_KEY), 0}};
    struct hfi_buffer reply = {0};
    char kept[32];
    words.size[2] = (size_t)snprintf(kept, sizeof kept, "%s", fence != NULL ? fence : "");
    words.text[2] = kept;
    sim_say("an operator says FLUSHALL");
    sim_server_flush();
    if (fence != NULL)
        (void)sim_keyspace_run(&sim_server->keys, &words, &reply);
    hfi_buffer_done(&reply);
    sim_tokens_after_loss();
}

static void write_as_others(void)
{
    char key[16], value[40], ttl[24];
    (void)snprintf(key, sizeof key, "page%d", (int)sim_between(0, history.pages - 1));
    int die = (int)sim_between(0, 19);
    int64_t life = sim_chance(50) ? sim_between(1, 100) : sim_between(1, LIFE_MOST);
    sim_server->keys.now_us = sim_server_us();
    if (die < 8) {
        (void)snprintf(value, sizeof value, "theirs #%lld", (long long)++numbers);
        sim_say("another program sets %s, %s", key, value);
        sim_server_set(key, value, life);
    } else if (die < 11) {
        sim_say("another program deletes %s", key);
        sim_server_del(key);
    } else if (die < 16) {
        struct hfi_buffer reply = {0};
        struct sim_words words = {3, {"PEXPIRE", key, ttl}, {7, strlen(key), 0}};
        words.size[2] = sim_digits(ttl, life);
        sim_say("another program has %s end in %s ms", key, ttl);
        (void)sim_keyspace_run(&sim_server->keys, &words, &reply);
        hfi_buffer_done(&reply);
    } else if (die < 19) {
        sim_say("%s is evicted", key);
        (void)sim_keyspace_evict(&sim_server->keys, key);
    } else if (history.healed == 0 && sim_near.hurt != SIM_CALM) {
        flush();
    }
    sim_near_look();
}

static void others(void *what, int64_t number)
{
    (void)what;
    if (sim_server->up && sim_server->frozen_until <= sim.now)
        write_as_others();
    if (sim.now < history.ops_end)
        sim_at(sim.now + sim_between(1, sim_near.write_most_ms * HFI_MS), NULL, others, NULL, number);
}

void sim_near_begin(void)
{
    numbers = 0;
    memset(own, 0, sizeof own);
    for (int i = 0; i <= SIM_PROCESSES; i++)
        for (int page = 0; page < SIM_PAGES; page++)
            own[i][page].replaced = own[i][page].forgotten = -1;
    sim_versions_begin(&versions, report);
    if (sim_near.on)
        sim_at(sim_between(1, 500 * HFI_MS), NULL, others, NULL, 0);
}

/* ---- calls ---- */

static hf_status load(hf_loading *loading, void *arg)
{
    char value[80];
    hf_lease *lease = hf_loading_lease(loading);
    struct sim_holding *holding = NULL;
    const int *page = arg;
    long long number = ++numbers, began = sim.now;
    history.loads++;
    if (lease != NULL && hf_lease_is_valid(lease)) {
        holding = sim_watch_expect(SIM_LOCKS + *page);
        (void)sim_watch_granted(holding, lease);
    }
    sim_sleep(sim_between(0, sim_chance(10) ? 2 * history.lease_ms : 20) * HFI_MS);
    int size = snprintf(value, sizeof value, "%lld %lld #%lld", lease != NULL ? (long long)hf_lease_fence(lease) : 0LL, began, number);
    if (holding != NULL)
        sim_watch_releases(holding);
    if (sim_chance(5))
        return hf_loading_fail(loading, 0, "the origin is away");
    if (sim_chance(25))
        return hf_loading_absent(loading);
    return hf_loading_set(loading, value, (size_t)size);
}

static void forget(struct sim_actor *actor, const char *key, int page)
{
    hf_error error = {.status = HF_OK};
    int64_t began = sim.now;
    hf_status status = hf_fetch_forget(actor->process->client, key, &error);
    sim_check_status("forget", status, &error);
    sim_call_took("forget", began, history.command_ms);
    int64_t first = INT64_MAX; /* of those that may have been this one */
    for (int i = 0; i < FORGETS && i < own[sim.self->id][page].forgets; i++)
        if (own[sim.self->id][page].forgot[i] >= began && own[sim.self->id][page].forgot[i] < first)
            first = own[sim.self->id][page].forgot[i];
    if (status != HF_OK || first == INT64_MAX)
        return;
    if (first > own[sim.self->id][page].replaced)
        own[sim.self->id][page].replaced = first;
    if (first > own[sim.self->id][page].forgotten)
        own[sim.self->id][page].forgotten = first;
}

/* What a loader of this process has stored replaces what was there before. */
static void note_load(int page, const hf_value *value, int64_t number)
{
    int64_t since = value->stored && number != SIM_NONE_MARK ? sim_versions_since(&versions, page, number) : -1;
    if (since > own[sim.self->id][page].replaced)
        own[sim.self->id][page].replaced = since;
}

/* S by the process's own clock, from the call's beginning back. HF_STALE may be of any age where the server may be away, but not from
 * before a forget. */
static void check_value(int page, const hf_value *value, int64_t began, int64_t near_ms, int64_t replaced, int64_t forgotten)
{
    static const char *const sources[] = {[HF_CACHED] = "CACHED", [HF_LOADED] = "LOADED", [HF_SHARED] = "SHARED",
                                          [HF_STALE] = "STALE",   [HF_LOCAL] = "LOCAL",   [HF_NEAR] = "NEAR"};
    int64_t lag_ms = sim_near_lag_ms(sim.self), most_ms = near_ms < lag_ms ? near_ms : lag_ms;
    int64_t number = value->absent ? SIM_NONE_MARK : number_of(value->data);
    int64_t least = began - (int64_t)((double)(most_ms * HFI_MS) / (1 + (double)sim.self->clock_ppm / 1e6)) - 1;
    bool away = value->source == HF_STALE && sim_near.hurt != SIM_CALM;
    sim_say("fetch of page %d: %lld, %s", page, (long long)number, sources[value->source]);
    sim_near.hits += value->source == HF_NEAR;
    sim_near_look();
    if (number == SIM_NO_VALUE)
        sim_violation("[no-old-value] a fetch gets what nobody has written: %s", (const char *)value->data);
    else if (value->source == HF_LOADED)
        note_load(page, value, number);
    else if (value->source != HF_LOCAL && value->stored)
        sim_versions_given(&versions, page, number, sources[value->source], away ? 0 : least, away ? forgotten : replaced);
}

void sim_near_fetch(struct sim_actor *actor)
{
    static const int64_t nears[] = {0, 50, 200, 1000, 2000};
    hf_error error = {.status = HF_OK};
    hf_value *value;
    char key[16];
    int page = (int)sim_between(0, history.pages - 1);
    (void)snprintf(key, sizeof key, "page%d", page);
    hf_fetch_options options = {.size = sizeof options,
                                .load = load,
                                .arg = &page,
                                .ttl_ms = sim_chance(50) ? sim_between(1, 100) : sim_between(100, 1000),
                                .stale_ms = sim_chance(50) ? sim_between(1, 900) : 0,
                                .early = sim_chance(20) ? 1.0 : 0,
                                .negative_ttl_ms = sim_chance(70) ? sim_between(1, 1000) : 0,
                                .wait_ms = sim_chance(20) ? HF_OFF : sim_between(1, SIM_WAIT_MS),
                                .near_ms = nears[sim_between(0, (int64_t)(sizeof nears / sizeof nears[0]) - 1)],
                                .lease_ms = history.lease_ms};
    sim_oracle_calls(&history.oracle, sim_asker(false), SIM_LOCKS + page);
    history.fetches++;
    if (sim_chance(3)) {
        forget(actor, key, page);
        return;
    }
    int64_t began = sim.now, replaced = own[sim.self->id][page].replaced, forgotten = own[sim.self->id][page].forgotten;
    options.cancel = sim_some_cancel(actor, 10);
    hf_status status = hf_fetch(actor->process->client, key, &options, &value, &error);
    if (status != HF_LOAD_FAILED)
        sim_check_status("fetch", status, &error);
    sim_call_took("fetch", began, 3 * (history.command_ms + 500) + SIM_WAIT_MS + 4 * history.lease_ms + 100);
    if (status != HF_OK)
        return;
    check_value(page, value, began, options.near_ms, replaced, forgotten);
    hf_value_free(value);
}
