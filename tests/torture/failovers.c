/* SPDX-License-Identifier: MIT */
/* failovers.c - processes hold locks of a primary that sentinels watch, while it is killed, frozen and deposed: torture
 * sentinel [--replicas all|N] [--quarantine-ms N] [--fault kill|plan|freeze|mixed] [--count N] [--lease-ms N] [--seed N]. With all
 * replicas confirming, or in quarantine, an overlap or a fence that does not rise is a broken promise; without, they are
 * measured. With quarantine one of the processes hears no sentinel: it stays with the primary that it was started with. */
#include "tests/torture/failovers.h"
#include "tests/support/child.h"
#include "tests/support/fleet.h"
#include "tests/support/quantile.h"
#include "tests/support/takers.h"
#include "tests/torture/ledger.h"
#include "tests/torture/witness.h"
#include "tests/torture/worker.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SERVERS     3
#define PROCESSES   4
#define BOUND_MS    (HFT_FLEET_DOWN_MS + 4000) /* without a grant, where all replicas confirm */
#define RECOVERY_MS 60000
#define SHOWN       5
#define OFF_NS      (50 * HFT_MS)   /* after +switch-master, 99 of 100 are off the former primary */
#define OVER_NS     (100 * HFT_MS)  /* and an overlap is over, */
#define APART_NS    (1000 * HFT_MS) /* of grants whose fences may be out of order */
#define KEPT        1000

enum blow { KILL, PLAN, FREEZE, BLOWS };
static const char *const blow_names[] = {"kill", "plan", "freeze", "mixed"};

struct campaign {
    int count;
    enum blow blow; /* BLOWS: any of them */
    const char *replicas;
    int64_t quarantine_ms; /* 0: none */
    int64_t lease_ms;
    unsigned seed, rng;
    struct hft_fleet fleet;
    struct hft_witness *witness;
    struct hft_ledger *ledger;
    char url[400];
    pid_t pids[PROCESSES];
    int done[BLOWS];
};

struct findings {
    const struct hft_witness *witness;
    int overlaps, falls; /* of fences */
    int64_t longest_overlap_ns;
    int64_t after_ns[KEPT]; /* of overlaps: after +switch-master */
};

/* ---- blows ---- */

static void wait_ms(int64_t ms)
{
    struct timespec length = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&length, NULL);
}

static int roll(struct campaign *campaign, int sides)
{
    return rand_r(&campaign->rng) % sides;
}

/* Sentinels need up to twenty seconds to turn a former primary round. */
static void recover(struct campaign *campaign)
{
    int64_t until_ms = hft_boottime_ms() + RECOVERY_MS;
    while (!hft_fleet_is_whole(&campaign->fleet) && hft_boottime_ms() < until_ms)
        wait_ms(50);
    if (hft_boottime_ms() >= until_ms)
        hft_complain(campaign->ledger, "the servers are not whole again in %d ms", RECOVERY_MS);
}

/* Restarted as its operator's configuration would restart it: a replica of the primary. */
static void bring_back(struct campaign *campaign, int server, int primary)
{
    hft_server_restart(campaign->fleet.server[server]);
    freeReplyObject(hft_server_ask(campaign->fleet.server[server], "REPLICAOF 127.0.0.1 %d",
                                   hft_server_port(campaign->fleet.server[primary])));
}

static void strike(struct campaign *campaign)
{
    struct hft_fleet *fleet = &campaign->fleet;
    enum blow blow = campaign->blow == BLOWS ? (enum blow)roll(campaign, BLOWS) : campaign->blow;
    int before = hft_fleet_primary(fleet), next;
    bool has_stray = campaign->quarantine_ms > 0; /* it hears nobody */
    int64_t until_ms = hft_boottime_ms() + RECOVERY_MS;
    bool is_watched = blow == KILL; /* a dead one has nobody */
    while (!is_watched && hft_boottime_ms() < until_ms) {
        is_watched = hft_witness_watch(campaign->witness, hft_server_port(fleet->server[before]), campaign->pids + has_stray,
                                       PROCESSES - has_stray);
        wait_ms(1);
    }
    if (!is_watched)
        hft_complain(campaign->ledger, "not all clients came to the new primary in %d ms", RECOVERY_MS);
    switch (blow) {
    case KILL:
        hft_server_kill(fleet->server[before]);
        next = hft_fleet_wait_for_another(fleet, before);
        wait_ms(roll(campaign, 500));
        bring_back(campaign, before, next);
        break;
    case FREEZE:
        hft_server_freeze(fleet->server[before]);
        (void)hft_fleet_wait_for_another(fleet, before);
        wait_ms(roll(campaign, 2000));
        hft_server_thaw(fleet->server[before]);
        break;
    case PLAN:
    case BLOWS:
        (void)hft_fleet_fail_over(fleet);
        break;
    }
    until_ms = hft_boottime_ms() + RECOVERY_MS;
    while (!hft_witness_is_done(campaign->witness) && hft_boottime_ms() < until_ms)
        wait_ms(1);
    if (!hft_witness_is_done(campaign->witness))
        hft_complain(campaign->ledger, "no +switch-master was heard in %d ms", RECOVERY_MS);
    campaign->done[blow]++;
}

/* ---- the crowd ---- */

static void spawn(struct campaign *campaign, int process, const char *url)
{
    campaign->pids[process] = hft_fork();
    if (campaign->pids[process] == 0)
        hft_work(campaign->ledger, url, process, campaign->seed * 7919u + (unsigned)rand_r(&campaign->rng));
}

/* Process 0, which knows this primary alone. */
static void spawn_stray(struct campaign *campaign)
{
    char url[100];
    struct hft_fleet *fleet = &campaign->fleet;
    (void)snprintf(url, sizeof url, "%s?quarantine_ms=%" PRId64, hft_server_url(fleet->server[hft_fleet_primary(fleet)]),
                   campaign->quarantine_ms);
    spawn(campaign, 0, url);
}

static void start_crowd(struct campaign *campaign)
{
    for (int i = campaign->quarantine_ms > 0 ? 1 : 0; i < PROCESSES; i++)
        spawn(campaign, i, campaign->url);
    if (campaign->quarantine_ms > 0)
        spawn_stray(campaign);
}

/* It has been left behind; another one takes its place, and nobody gets anything before quarantine is over. */
static void move_stray(struct campaign *campaign, int64_t struck_ms)
{
    (void)kill(campaign->pids[0], SIGKILL);
    (void)waitpid(campaign->pids[0], NULL, 0);
    spawn_stray(campaign);
    int64_t until_ms = struck_ms + campaign->quarantine_ms + campaign->quarantine_ms / 100 + 2000;
    while (hft_boottime_ms() < until_ms)
        wait_ms(50);
}

static void end_crowd(struct campaign *campaign)
{
    int64_t until_ms = hft_boottime_ms() + 30000;
    atomic_store(&campaign->ledger->stop, true);
    for (int i = 0; i < PROCESSES; i++) {
        while (campaign->pids[i] > 0 && waitpid(campaign->pids[i], NULL, WNOHANG) == 0) {
            if (hft_boottime_ms() > until_ms) {
                hft_complain(campaign->ledger, "process %d does not end", i);
                (void)kill(campaign->pids[i], SIGKILL);
                until_ms = INT64_MAX;
            }
            wait_ms(5);
        }
        campaign->pids[i] = 0;
    }
}

/* ---- the verdict ---- */

static void note(const struct hft_violation *violation, void *arg)
{
    struct findings *found = arg;
    const struct hft_interval *a = &violation->earlier, *b = &violation->later;
    if (violation->verdict == HFT_OVERLAP) {
        if (found->overlaps < KEPT)
            found->after_ns[found->overlaps] =
                hft_oracle_after_switch(violation, found->witness->switched_ns, atomic_load(&found->witness->switches));
        found->overlaps++;
        if (violation->by > found->longest_overlap_ns)
            found->longest_overlap_ns = violation->by;
    } else {
        found->falls++;
    }
    if (found->overlaps + found->falls <= SHOWN)
        (void)printf("  %s torture:%" PRId32 ": %d.%d [%" PRId64 " .. %" PRId64 "] ms, fence %" PRId64 ", then %d.%d [%" PRId64
                     " .. %" PRId64 "], fence %" PRId64 "\n", violation->verdict == HFT_OVERLAP ? "two hold" : "fence falls", a->lock,
                     a->process, a->thread, a->enter_ns / HFT_MS, a->leave_ns / HFT_MS, a->fence, b->process, b->thread,
                     b->enter_ns / HFT_MS, b->leave_ns / HFT_MS, b->fence);
}

static int by_entry(const void *one, const void *other)
{
    const struct hft_interval *a = one, *b = other;
    return (a->enter_ns > b->enter_ns) - (a->enter_ns < b->enter_ns);
}

/* Without a grant of any name, to anybody. */
static int64_t longest_gap_ns(struct hft_interval *history, size_t count)
{
    int64_t gap = 0;
    qsort(history, count, sizeof *history, by_entry);
    for (size_t i = 1; i < count; i++)
        if (history[i].enter_ns - history[i - 1].enter_ns > gap)
            gap = history[i].enter_ns - history[i - 1].enter_ns;
    return gap;
}

static void print_times(const char *what, int64_t *ns, int count, int64_t goal_ns)
{
    int within = 0;
    for (int i = 0; i < count; i++)
        within += ns[i] <= goal_ns;
    (void)printf("  %-58s %6d  p50 %8.1f ms  p99 %8.1f ms  max %8.1f ms  %d of %d within %" PRId64 " ms%s\n", what, count,
                 (double)hft_quantile(ns, count, 0.5) / HFT_MS, (double)hft_quantile(ns, count, 0.99) / HFT_MS,
                 (double)hft_quantile(ns, count, 1) / HFT_MS, within, count, goal_ns / HFT_MS,
                 100 * (int64_t)within < 99 * (int64_t)count ? ": MISSED" : "");
}

/* What is not promised to the millisecond on a busy machine is shown; the order of fences does not depend on it. */
static bool print_measured(struct campaign *campaign, struct findings *found, struct hft_interval *history, size_t sections)
{
    struct hft_witness *witness = campaign->witness;
    struct hft_grants grants = hft_oracle_grants(history, sections);
    bool ordered = grants.apart_ns <= APART_NS;
    print_times("on the former primary after +switch-master, each client", witness->late_ns, atomic_load(&witness->lates), OFF_NS);
    print_times("two hold after +switch-master, each overlap", found->after_ns, found->overlaps < KEPT ? found->overlaps : KEPT,
                OVER_NS);
    (void)printf("  %-58s %6zu  %zu below an earlier one, which was %.1f ms before at most%s\n", "fences, each grant", grants.count,
                 grants.falls, (double)grants.apart_ns / HFT_MS, ordered ? "" : ": WRONG");
    return ordered;
}

static bool judge(struct campaign *campaign)
{
    struct hft_ledger *ledger = campaign->ledger;
    struct findings found = {.witness = campaign->witness};
    size_t sections;
    int64_t lost = 0;
    struct hft_interval *history = hft_ledger_history(ledger, &sections);
    (void)hft_oracle_check(history, sections, note, &found);
    int64_t gap_ns = longest_gap_ns(history, sections);
    bool ordered = print_measured(campaign, &found, history, sections);
    free(history);
    for (int reason = 0; reason < HFT_REASONS; reason++)
        lost += atomic_load(&ledger->lost[reason]);
    if (atomic_load(&ledger->complaints) > 0)
        (void)printf("  COMPLAINT %s (and %d more)\n", ledger->complaint, atomic_load(&ledger->complaints) - 1);
    bool all_confirm = strcmp(campaign->replicas, "all") == 0, promised = all_confirm || campaign->quarantine_ms > 0;
    bool kept = sections > 0 && ordered && atomic_load(&ledger->complaints) == 0 && (!promised || found.overlaps + found.falls == 0) &&
                (!all_confirm || gap_ns <= BOUND_MS * HFT_MS);
    (void)printf("torture sentinel     %-6s replicas=%s quarantine_ms=%" PRId64 "  %d killed, %d planned, %d frozen  lease %" PRId64
                 " ms  seed %u  sections %zu  two held %d times, for %" PRId64 " ms at most  fences fell %d times  longest without a "
                 "grant %" PRId64 " ms  lost %" PRId64 "  unknown %" PRId64 "\n",
                 kept ? "ok" : "FAILED", campaign->replicas, campaign->quarantine_ms, campaign->done[KILL], campaign->done[PLAN],
                 campaign->done[FREEZE], campaign->lease_ms, campaign->seed, sections, found.overlaps,
                 found.longest_overlap_ns / HFT_MS, found.falls, gap_ns / HFT_MS, lost, atomic_load(&ledger->unknown));
    (void)printf("summary torture-sentinel seed=%u operations=%zu faults=%d violations=%d false_losses=0\n", campaign->seed, sections,
                 campaign->done[KILL] + campaign->done[PLAN] + campaign->done[FREEZE], kept ? 0 : 1);
    return kept;
}

/* ---- the run ---- */

static int usage(const char *wrong)
{
    (void)fprintf(stderr, "torture sentinel: %s\nusage: torture sentinel [--replicas all|N] [--quarantine-ms N]\n"
                  "               [--fault kill|plan|freeze|mixed] [--count N] [--lease-ms N] [--seed N]\n", wrong);
    return 64;
}

/* NULL: all is right. */
static const char *take_option(struct campaign *campaign, const char *name, const char *value)
{
    char *end;
    long number = strtol(value, &end, 10);
    bool is_number = *end == 0 && end != value && number >= 0 && number <= 1000000;
    if (strcmp(name, "--fault") == 0) {
        for (int i = 0; i <= BLOWS; i++)
            if (strcmp(blow_names[i], value) == 0) {
                campaign->blow = (enum blow)i;
                return NULL;
            }
        return "no such fault";
    }
    if (strcmp(name, "--replicas") == 0 && (strcmp(value, "all") == 0 || (is_number && number < SERVERS)))
        campaign->replicas = value;
    else if (!is_number || number == 0)
        return "a number from 1 to 1000000, please";
    else if (strcmp(name, "--quarantine-ms") == 0)
        campaign->quarantine_ms = number;
    else if (strcmp(name, "--count") == 0)
        campaign->count = (int)number;
    else if (strcmp(name, "--lease-ms") == 0)
        campaign->lease_ms = number;
    else if (strcmp(name, "--seed") == 0)
        campaign->seed = (unsigned)number;
    else
        return "no such option";
    return NULL;
}

int hft_failovers(int argc, char **argv)
{
    struct campaign campaign = {
        .count = 10, .blow = BLOWS, .replicas = "all", .lease_ms = 6000, .seed = (unsigned)time(NULL) % 100000};
    for (int i = 2; i < argc; i += 2) {
        const char *wrong = i + 1 < argc ? take_option(&campaign, argv[i], argv[i + 1]) : "which value?";
        if (wrong != NULL)
            return usage(wrong);
    }
    campaign.rng = campaign.seed;
    hft_fleet_start(&campaign.fleet, SERVERS, 3, HFT_FLEET_DOWN_MS, "sentinel failover-timeout mymaster 1500");
    (void)snprintf(campaign.url, sizeof campaign.url, "%s?quarantine_ms=%" PRId64 "%s%s", campaign.fleet.url, campaign.quarantine_ms,
                   strcmp(campaign.replicas, "0") != 0 ? "&replicas=" : "", strcmp(campaign.replicas, "0") != 0 ? campaign.replicas : "");
    const struct hft_plan plan = {.mode = "sentinel", .fault = HFT_FAIL_OVER, .processes = PROCESSES, .threads = 4, .locks = 8,
                                  .lease_ms = campaign.lease_ms, .seed = campaign.seed, .url = campaign.url};
    campaign.ledger = hft_ledger_new(&plan);
    campaign.witness = hft_witness_start(&campaign.fleet);
    start_crowd(&campaign);
    wait_ms(campaign.quarantine_ms + campaign.quarantine_ms / 100);
    for (int i = 0; i < campaign.count && atomic_load(&campaign.ledger->complaints) == 0; i++) {
        wait_ms(1000 + roll(&campaign, 2000));
        int64_t struck_ms = hft_boottime_ms();
        strike(&campaign);
        recover(&campaign);
        if (campaign.quarantine_ms > 0)
            move_stray(&campaign, struck_ms);
    }
    wait_ms(1000);
    end_crowd(&campaign);
    hft_witness_end(campaign.witness);
    bool kept = judge(&campaign);
    hft_fleet_stop(&campaign.fleet);
    return kept ? 0 : 1;
}
