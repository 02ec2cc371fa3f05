/* SPDX-License-Identifier: MIT */
/*
 * near.c - see near.h.
 *
 *   torture near   --seconds N: so long processes read pages from memory that others change, while what tells them of it is killed,
 *                dead on one side, held back or stopped. None is given out that was gone for longer than is promised; more than
 *                half come from memory; each fault has struck.
 */
#include "tests/torture/near.h"
#include "tests/support/child.h"
#include "tests/support/proxy.h"
#include "tests/torture/ledger.h"
#include "tests/torture/near_crowd.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FULL_S = 150, FULL_TIMES = 20, END_MS = 20000 };

struct stage {
    struct hft_near_ledger *ledger;
    struct hft_server *server;
    struct hft_proxy *proxy;
    pid_t pids[HFT_CROWD];
    unsigned rng;
};

static void nap_ms(int64_t ms)
{
    const struct timespec length = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&length, NULL);
}

/* ---- faults; each true if it has struck ---- */

/* Of the server's clients, those whose line has this; kills one of them, or all. Returns how many there were to kill. */
static int kill_clients(struct stage *stage, const char *type, const char *mark, bool all)
{
    long long ids[64];
    int count = 0;
    redisReply *reply = hft_server_ask(stage->server, "CLIENT LIST TYPE %s", type);
    for (char *rest = NULL, *line = strtok_r(reply->str, "\r\n", &rest); line != NULL && count < 64; line = strtok_r(NULL, "\r\n", &rest))
        if (strstr(line, mark) != NULL)
            ids[count++] = strtoll(line + strlen("id="), NULL, 10);
    freeReplyObject(reply);
    int first = count > 0 && !all ? rand_r(&stage->rng) % count : 0, last = all || count == 0 ? count : first + 1, killed = 0;
    for (int i = first; i < last; i++)
        killed += hft_server_ask_integer(stage->server, "CLIENT KILL ID %lld", ids[i]) == 1;
    return killed;
}

#define LANES    "normal", " flags=t"
#define TRACKERS "pubsub", " sub=1 psub=0"

static bool kill_a_lane(struct stage *stage)
{
    bool struck = kill_clients(stage, LANES, false) == 1;
    nap_ms(200);
    return struck;
}

/* Or a control channel's subscriber: of both there is one a process. */
static bool kill_a_tracker(struct stage *stage)
{
    bool struck = kill_clients(stage, TRACKERS, false) == 1;
    nap_ms(200);
    return struck;
}

static bool half_dead(struct stage *stage, enum hft_class class, const char *type, const char *mark)
{
    bool struck = hft_proxy_freeze_present(stage->proxy, 1u << class) > 0;
    struck = kill_clients(stage, type, mark, true) > 0 && struck;
    nap_ms(1500); /* until the silence is noticed, which lasts command_ms, and a while of the new ones */
    return struck;
}

static bool lanes_die_over_there(struct stage *stage)
{
    return half_dead(stage, HFT_COMMANDS, LANES);
}

/* What the lanes redirect to is dead, and they do not know. */
static bool trackers_die_over_there(struct stage *stage)
{
    return half_dead(stage, HFT_SUBSCRIBER, TRACKERS);
}

static bool hold_back(struct stage *stage, enum hft_class class, int64_t delay_ms, int64_t jitter_ms, int64_t for_ms)
{
    struct hft_network network = {.accept_nobody = false};
    network.to_client[class] = (struct hft_way){.delay_ns = delay_ms * HFT_MS, .jitter_ns = jitter_ms * HFT_MS};
    hft_proxy_network(stage->proxy, &network);
    nap_ms(for_ms);
    hft_proxy_network(stage->proxy, NULL);
    return true;
}

static bool hold_messages_back(struct stage *stage)
{
    return hold_back(stage, HFT_SUBSCRIBER, HFT_LAG_MS + 200, 0, 900);
}

/* Messages overtake the answers that they are about. */
static bool hold_answers_back(struct stage *stage)
{
    return hold_back(stage, HFT_COMMANDS, 0, 8, 500);
}

static bool stop_the_server(struct stage *stage)
{
    hft_server_freeze(stage->server);
    nap_ms(HFT_LAG_MS + rand_r(&stage->rng) % 300);
    hft_server_thaw(stage->server);
    nap_ms(200);
    return true;
}

static struct fault {
    const char *name;
    bool (*strike)(struct stage *stage);
    int struck;
} faults[] = {
    {"lane-killed", kill_a_lane, 0},
    {"tracker-killed", kill_a_tracker, 0},
    {"lanes-half-dead", lanes_die_over_there, 0},
    {"trackers-half-dead", trackers_die_over_there, 0},
    {"messages-held-back", hold_messages_back, 0},
    {"answers-held-back", hold_answers_back, 0},
    {"server-stopped", stop_the_server, 0},
};
#define FAULTS (sizeof faults / sizeof faults[0])

/* Always the one that has struck least; of several, any. */
static struct fault *next_fault(struct stage *stage)
{
    struct fault *least[FAULTS];
    int count = 0, struck = faults[0].struck;
    for (size_t i = 1; i < FAULTS; i++)
        struck = faults[i].struck < struck ? faults[i].struck : struck;
    for (size_t i = 0; i < FAULTS; i++)
        if (faults[i].struck == struck)
            least[count++] = &faults[i];
    return least[rand_r(&stage->rng) % count];
}

/* ---- the run ---- */

static bool is_well(const struct stage *stage)
{
    for (int i = 0; i < HFT_CROWD; i++)
        if (waitpid(stage->pids[i], NULL, WNOHANG) != 0) {
            (void)fprintf(stderr, "torture near: process %d ended by itself\n", i);
            return false;
        }
    return true;
}

static int end(struct stage *stage)
{
    int64_t until = hft_now_ns() + END_MS * HFT_MS;
    int wrong = 0;
    atomic_store(&stage->ledger->stop, true);
    for (int i = 0; i < HFT_CROWD; i++) {
        int status = 0;
        pid_t ended;
        while ((ended = waitpid(stage->pids[i], &status, WNOHANG)) == 0 && hft_now_ns() < until)
            nap_ms(5);
        if (ended == 0) {
            (void)fprintf(stderr, "torture near: process %d does not end\n", i);
            (void)kill(stage->pids[i], SIGKILL);
            (void)waitpid(stage->pids[i], NULL, 0);
        }
        wrong += ended != stage->pids[i] || status != 0;
    }
    return wrong;
}

static bool verdict(const struct stage *stage, long seconds, unsigned seed, int wrong)
{
    const struct hft_near_ledger *l = stage->ledger;
    int64_t reads = atomic_load(&l->reads), near = atomic_load(&l->near);
    int least = seconds >= FULL_S ? FULL_TIMES : 1, strikes = 0;
    const char *why = wrong > 0 ? "a process did not end well" : near * 2 <= reads ? "less than half of the reads were from memory" : NULL;
    for (size_t i = 0; i < FAULTS; i++) {
        strikes += faults[i].struck;
        if (faults[i].struck < least)
            why = faults[i].name;
    }
    if (atomic_load(&l->lapses) == 0 || atomic_load(&l->told) == 0)
        why = "no proof ever was late, or nothing was told";
    int violations = atomic_load(&l->wrong) + (why != NULL);
    if (why != NULL)
        (void)fprintf(stderr, "torture near: not enough, or wrong: %s\n", why);
    (void)printf("torture near    %s seconds=%ld seed=%u", violations == 0 ? "ok    " : "FAILED", seconds, seed);
    const struct { const char *name; const _Atomic(int64_t) *count; } counts[] = {
        {"reads", &l->reads}, {"near", &l->near}, {"cached", &l->cached}, {"others", &l->loaded}, {"unjudged", &l->unjudged},
        {"failed", &l->failed}, {"sets", &l->sets}, {"forgets", &l->forgets}, {"loads", &l->loads}, {"expiries", &l->expiries},
        {"ends", &l->ends}, {"unsettled", &l->unsettled}, {"told", &l->told}, {"lapses", &l->lapses}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        (void)printf(" %s=%lld", counts[i].name, (long long)atomic_load(counts[i].count));
    (void)printf(" oldest_ms=%.1f (bound %d)", (double)atomic_load(&l->oldest_ns) / 1e6, HFT_LAG_MS);
    for (size_t i = 0; i < FAULTS; i++)
        (void)printf(" %s=%d", faults[i].name, faults[i].struck);
    (void)printf(" violations=%d\n", violations);
    (void)printf("summary torture-near seed=%u operations=%lld faults=%d violations=%d false_losses=0\n", seed, (long long)reads, strikes,
                 violations);
    return violations == 0;
}

static bool read_plan(int argc, char **argv, long *seconds, unsigned *seed)
{
    static const struct option names[] = {{"seconds", 1, NULL, 's'}, {"seed", 1, NULL, 'e'}, {NULL, 0, NULL, 0}};
    optind = 2;
    for (int name; (name = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *rest = NULL;
        long value = name != '?' ? strtol(optarg, &rest, 10) : 0;
        if (name == '?' || rest == optarg || *rest != 0 || value < 1 || value > 1000000)
            return false;
        if (name == 's')
            *seconds = value;
        else
            *seed = (unsigned)value;
    }
    return optind == argc;
}

int hft_near(int argc, char **argv)
{
    struct stage stage = {.server = NULL};
    long seconds = 10;
    unsigned seed = (unsigned)time(NULL) % 100000;
    if (!read_plan(argc, argv, &seconds, &seed)) {
        (void)fputs("usage: torture near [--seconds N] [--seed N]\n", stderr);
        return 64;
    }
    stage.rng = seed;
    stage.ledger = hft_near_ledger_new();
    stage.server = hft_server_start(NULL);
    for (int i = 0; i < HFT_CROWD; i++) /* before the proxy's thread is there */
        if ((stage.pids[i] = hft_fork()) == 0)
            hft_near_work(stage.ledger, stage.server, i, seed);
    stage.proxy = hft_proxy_start(stage.server);
    (void)snprintf(stage.ledger->url, sizeof stage.ledger->url, "%s", hft_proxy_url(stage.proxy));
    atomic_store(&stage.ledger->go, true);
    int64_t until = hft_now_ns() + seconds * 1000 * HFT_MS;
    bool well = true;
    nap_ms(500);
    while (well && hft_now_ns() < until) {
        struct fault *fault = next_fault(&stage);
        fault->struck += fault->strike(&stage);
        nap_ms(100 + rand_r(&stage.rng) % 200);
        well = is_well(&stage) && atomic_load(&stage.ledger->wrong) < 1000;
    }
    int wrong = end(&stage);
    bool kept = verdict(&stage, seconds, seed, wrong);
    hft_proxy_stop(stage.proxy);
    hft_server_stop(stage.server);
    return kept ? 0 : 1;
}
