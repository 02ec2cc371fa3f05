/* SPDX-License-Identifier: MIT */
/* torture.c - many processes and threads compete for locks while they are killed and frozen; afterwards an oracle
 * judges their records. `torture MODE [--seconds N ...]`; 1: a promise was broken. `--list`: each mode with the
 * options of its short run. */
#include "tests/torture/campaigns.h"
#include "tests/torture/failovers.h"
#include "tests/torture/faults.h"
#include "tests/torture/leases.h"
#include "tests/torture/near.h"
#include "tests/torture/rings.h"
#include "tests/torture/verdict.h"
#include "tests/torture/wire.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 20

static const struct hft_plan modes[] = {
    {.mode = "one", .fault = HFT_KILL, .processes = 4, .threads = 16, .locks = 1, .kill_ms = 200},
    {.mode = "hundred", .fault = HFT_KILL, .processes = 4, .threads = 16, .locks = 100, .kill_ms = 200},
    {.mode = "calm", .fault = HFT_CALM, .processes = 4, .threads = 16, .locks = 10},
    {.mode = "freeze", .fault = HFT_FREEZE, .processes = 4, .threads = 16, .locks = 1},
    {.mode = "redis-freeze", .fault = HFT_FREEZE_SERVER, .processes = 4, .threads = 16, .locks = 10},
    {.mode = "readers", .fault = HFT_KILL, .readers = 90, .processes = 4, .threads = 16, .locks = 2, .kill_ms = 200},
    {.mode = "permits", .fault = HFT_KILL, .limit = 5, .processes = 4, .threads = 16, .locks = 2, .kill_ms = 200},
    {.mode = "local", .fault = HFT_CALM, .bare = true, .processes = 1, .threads = 64, .locks = 1},
};

/* Modes with options and verdicts of their own. */
static const struct {
    const char *mode;
    int (*run)(int argc, char **argv);
    const char *test; /* the options of a short run on a busy machine */
} others[] = {
    {"hold", hft_leases, "--seconds 5 --load"},
    {"loss", hft_leases, "--leases 200 --bound-ms 2000"},
    {"kills", hft_holders, "--count 100 --slack-ms 3000"},
    {"pauses", hft_holders, "--count 100 --slack-ms 3000"},
    {"stale", hft_holders, "--count 100 --slack-ms 3000"},
    {"sentinel", hft_failovers, "--count 1"},
    {"near", hft_near, "--seconds 12"}, /* each of its faults once */
    {"rings", hft_rings, "--count 50 --runs 500 --slack-ms 3000"},
};

/* What is to be done to the crowd, and when. */
struct schedule {
    struct hft_crowd crowd;
    int64_t next_ns, thaw_ns, last_ns; /* thaw_ns 0: nothing is frozen */
    int64_t well_ns, look_ns;          /* since when nothing is; the next look for what was left behind */
    int rounds;
};

static void list(void)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        (void)printf("%s --seconds 5\n", modes[i].mode);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        (void)printf("%s %s\n", others[i].mode, others[i].test);
}

static _Noreturn void usage(const char *wrong)
{
    (void)fprintf(stderr, "torture: %s\nusage: torture MODE [--seconds N] [--processes N] [--threads N] [--locks N]\n"
                  "               [--lease-ms N] [--kill-ms N] [--slack-ms N] [--seed N]\nmodes:", wrong);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        (void)fprintf(stderr, " %s", modes[i].mode);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        (void)fprintf(stderr, " %s", others[i].mode);
    (void)fputc('\n', stderr);
    exit(64);
}

static struct hft_plan read_plan(int argc, char **argv)
{
    static const struct option names[] = {
        {"seconds", 1, NULL, 's'},  {"processes", 1, NULL, 'p'}, {"threads", 1, NULL, 't'},
        {"locks", 1, NULL, 'l'},    {"lease-ms", 1, NULL, 'L'},  {"kill-ms", 1, NULL, 'k'},
        {"slack-ms", 1, NULL, 'w'}, {"seed", 1, NULL, 'e'},      {NULL, 0, NULL, 0}};
    struct hft_plan plan = {0};
    for (size_t i = 0; argc > 1 && i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].mode, argv[1]) == 0)
            plan = modes[i];
    if (plan.mode == NULL)
        usage(argc > 1 ? "no such mode" : "which mode?");
    plan.seconds = 10;
    plan.lease_ms = 1000;
    plan.slack_ms = 300;
    plan.seed = (unsigned)time(NULL) % 100000;
    optind = 2;
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *end = NULL;
        long value = optarg != NULL ? strtol(optarg, &end, 10) : 0;
        if (end == NULL || *end != 0 || end == optarg || value < 1 || value > 1000000)
            usage("a number from 1 to 1000000, please");
        switch (name) {
        case 's': plan.seconds = value; break;
        case 'p': plan.processes = (int)value; break;
        case 't': plan.threads = (int)value; break;
        case 'l': plan.locks = (int)value; break;
        case 'L': plan.lease_ms = value; break;
        case 'k': plan.kill_ms = value; break;
        case 'w': plan.slack_ms = value; break;
        default: plan.seed = (unsigned)value; break;
        }
    }
    if (optind != argc)
        usage("too many words");
    return plan;
}

static void thaw(struct schedule *schedule)
{
    if (schedule->crowd.ledger->plan.fault == HFT_FREEZE_SERVER)
        hft_server_thaw(schedule->crowd.server);
    else
        hft_crowd_thaw(&schedule->crowd);
    schedule->thaw_ns = 0;
    schedule->well_ns = hft_now_ns();
}

static void look(struct schedule *schedule, int64_t now)
{
    if (schedule->thaw_ns != 0 || now < schedule->look_ns)
        return;
    hft_crowd_look_for_leftovers(&schedule->crowd, schedule->well_ns);
    schedule->look_ns = now + LOOK_MS * HFT_MS;
}

static void do_faults(struct schedule *schedule, int64_t now)
{
    struct hft_crowd *crowd = &schedule->crowd;
    const struct hft_plan *plan = &crowd->ledger->plan;
    int64_t lease_ns = plan->lease_ms * HFT_MS;
    if (schedule->thaw_ns != 0) {
        if (now >= schedule->thaw_ns)
            thaw(schedule);
        return;
    }
    if (now < schedule->next_ns || now > schedule->last_ns)
        return;
    switch (plan->fault) {
    case HFT_CALM:
    case HFT_FAIL_OVER:
        break;
    case HFT_KILL:
        hft_crowd_kill_one(crowd);
        schedule->next_ns = now + plan->kill_ms * HFT_MS;
        break;
    case HFT_FREEZE:
        if (!hft_crowd_freeze_holder(crowd))
            return;
        schedule->thaw_ns = now + 2 * lease_ns;
        schedule->next_ns = schedule->thaw_ns + lease_ns / 2;
        break;
    case HFT_FREEZE_SERVER: /* leases survive half of theirs, and end in twice */
        hft_server_freeze(crowd->server);
        crowd->kills++;
        schedule->thaw_ns = now + (schedule->rounds++ % 2 == 0 ? lease_ns / 2 : 2 * lease_ns);
        schedule->next_ns = schedule->thaw_ns + lease_ns;
        break;
    }
}

static int torture(int argc, char **argv)
{
    struct hft_plan plan = read_plan(argc, argv);
    struct hft_server *server = hft_server_start(NULL);
    struct hft_wire wire = {0};
    struct schedule schedule = {0};
    struct timespec tick = {0, 2000000};
    plan.url = hft_server_url(server);
    struct hft_ledger *ledger = hft_ledger_new(&plan);
    freeReplyObject(hft_server_ask(server, "CONFIG RESETSTAT"));
    if (plan.bare)
        hft_wire_open(&wire, server);
    hft_crowd_start(&schedule.crowd, ledger, server);
    int64_t begun = hft_now_ns(), end = begun + plan.seconds * 1000 * HFT_MS, now;
    schedule.next_ns = begun + 300 * HFT_MS;
    schedule.last_ns = end - hft_longest_wait_ns(&plan) - 300 * HFT_MS; /* who waits then has time to get it */
    bool well = true;
    while (well && (now = hft_now_ns()) < end) {
        (void)nanosleep(&tick, NULL);
        if (plan.bare)
            hft_wire_read(&wire);
        do_faults(&schedule, now);
        if (!plan.bare) /* whose commands are counted */
            look(&schedule, now);
        well = hft_crowd_is_well(&schedule.crowd);
    }
    if (schedule.thaw_ns != 0)
        thaw(&schedule);
    hft_crowd_end(&schedule.crowd);
    if (plan.bare)
        hft_wire_read(&wire);
    bool kept = hft_verdict(&schedule.crowd, plan.bare ? &wire : NULL, hft_now_ns() - begun);
    hft_wire_close(&wire);
    free(schedule.crowd.pids);
    free(schedule.crowd.ask_holders);
    free(schedule.crowd.deaths);
    hft_server_stop(server);
    return kept ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (strcmp(mode, "--list") == 0) {
        list();
        return 0;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].mode, mode) == 0)
            return others[i].run(argc, argv);
    return torture(argc, argv);
}
