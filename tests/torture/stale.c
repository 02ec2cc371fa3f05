/* SPDX-License-Identifier: MIT */
/* stale.c - takes leases away from holders that keep writing: by stopping the holders, by real eviction, by
 * FLUSHALL, and by a restart of the server without data. The store must refuse every one of those writes. */
#include "tests/torture/campaigns.h"
#include "tests/torture/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define NAMES    32
#define EACH     3
#define LEASE_MS 300
#define ROUND_MS 700 /* lease and guard, and some: then somebody else has it */

enum kind { PAUSE, EVICTION, FLUSH, RESTART, KINDS };

static const char *const kind_names[KINDS] = {"pause", "eviction", "FLUSHALL", "restart without data"};

struct stale {
    struct hft_stage *stage;
    long rounds[KINDS], holders[KINDS];
};

static int64_t sum(struct hft_stage *stage, enum hft_writer_sum which)
{
    return atomic_load(&stage->sums[which]);
}

static void say(struct hft_server *server, const char *format, long long number)
{
    redisReply *reply = hft_server_ask(server, format, number);
    if (reply->type == REDIS_REPLY_ERROR) {
        (void)fprintf(stderr, "torture: '%s' was answered: %s\n", format, reply->str);
        exit(1);
    }
    freeReplyObject(reply);
}

static int count_holders(struct hft_stage *stage)
{
    int holders = 0;
    for (int process = 0; process < NAMES * EACH; process++)
        holders += atomic_load(&hft_stage_mark(stage, process)->act) == HFT_HOLDING;
    return holders;
}

static void pass(struct hft_stage *stage, int64_t ms)
{
    for (int64_t until = hft_now_ns() + ms * HFT_MS; hft_now_ns() < until;)
        hft_stage_tick(stage);
}

/* Half of the holders are stopped until their leases are over and others have written. */
static void pause_some(struct hft_stage *stage)
{
    bool stopped[NAMES * EACH] = {false};
    for (int process = 0; process < NAMES * EACH; process++) {
        struct hft_mark *mark = hft_stage_mark(stage, process);
        if (atomic_load(&mark->act) != HFT_HOLDING || hft_stage_roll(stage, 2) == 0)
            continue;
        (void)kill(stage->pids[process], SIGSTOP);
        while (waitpid(stage->pids[process], NULL, WUNTRACED) < 0 && errno == EINTR)
            ;
        stopped[process] = atomic_load(&mark->act) == HFT_HOLDING;
        if (stopped[process])
            atomic_store(&mark->stroke, 0);
        else
            (void)kill(stage->pids[process], SIGCONT);
    }
    pass(stage, ROUND_MS);
    for (int process = 0; process < NAMES * EACH; process++)
        if (stopped[process])
            (void)kill(stage->pids[process], SIGCONT);
}

/* The server's memory is filled, and it evicts about half of all keys, lock keys and the fence counter among them. */
static void evict_some(struct hft_stage *stage)
{
    struct hft_server *server = stage->server;
    freeReplyObject(hft_server_ask(server, "EVAL %s 0", "for i = 1, 3000 do redis.call('SET', 'filler:' .. i, "
                                                        "string.rep('x', 1000), 'PX', 60000) end"));
    say(server, "CONFIG SET maxmemory-policy allkeys-random", 0);
    redisReply *info = hft_server_ask(server, "INFO memory");
    const char *used = strstr(info->str, "used_memory:");
    long long bytes = used != NULL ? strtoll(used + strlen("used_memory:"), NULL, 10) : 0;
    freeReplyObject(info);
    say(server, "CONFIG SET maxmemory %lld", bytes - 2000000);
    freeReplyObject(hft_server_ask(server, "SET filler:0 x PX 60000")); /* a write makes room first, and is refused where there is none */
    say(server, "CONFIG SET maxmemory 0", 0);
}

static void strike(struct hft_stage *stage, enum kind kind)
{
    if (kind == PAUSE) {
        pause_some(stage);
        return;
    }
    atomic_store(&stage->sums[HFT_HARMED_NS], INT64_MAX);
    if (kind == EVICTION)
        evict_some(stage);
    else if (kind == FLUSH)
        say(stage->server, "FLUSHALL", 0);
    else
        hft_server_restart(stage->server);
    atomic_store(&stage->sums[HFT_HARMED_NS], hft_now_ns());
}

static void round_of(struct stale *stale, enum kind kind)
{
    struct hft_stage *stage = stale->stage;
    int64_t before = sum(stage, HFT_STALE_HOLDERS), until = hft_now_ns() + 3000 * HFT_MS;
    while (count_holders(stage) < NAMES * 3 / 4 && hft_now_ns() < until)
        hft_stage_tick(stage);
    pass(stage, hft_stage_roll(stage, 150));
    strike(stage, kind);
    pass(stage, ROUND_MS);
    stale->rounds[kind]++;
    stale->holders[kind] += (long)(sum(stage, HFT_STALE_HOLDERS) - before);
}

static bool judge(struct stale *stale)
{
    struct hft_stage *stage = stale->stage;
    struct hft_summary summary = {
        .operations = (long)sum(stage, HFT_WRITES), .false_losses = hft_stage_lost(stage),
        .violations = (long)(sum(stage, HFT_STALE_TAKEN) + sum(stage, HFT_INVERTED) + sum(stage, HFT_FALSELY_OK)),
        .wait_p99_ms = -1, .wait_ms = -1, .wait_bound_ms = -1,
        .lost_p50_ms = -1, .lost_p99_ms = -1, .lost_ms = -1, .lost_bound_ms = -1};
    for (int kind = 0; kind < KINDS; kind++) {
        summary.faults += stale->rounds[kind];
        (void)printf("  %-20s %4ld times, %5ld stale holders\n", kind_names[kind], stale->rounds[kind],
                     stale->holders[kind]);
    }
    (void)printf("stale: %" PRId64 " writes, of them %" PRId64 " tried by %" PRId64 " stale holders: %" PRId64
                 " accepted; %" PRId64 " writes of the latest holder refused, %" PRId64 " stale holders' releases "
                 "said HF_OK\n", sum(stage, HFT_WRITES), sum(stage, HFT_STALE_TRIED), sum(stage, HFT_STALE_HOLDERS),
                 sum(stage, HFT_STALE_TAKEN), sum(stage, HFT_INVERTED), sum(stage, HFT_FALSELY_OK));
    return hft_summary_tell(stage, &summary);
}

bool hft_campaign_stale(struct hft_stage *stage)
{
    struct stale stale = {.stage = stage};
    stage->store = hft_server_start(NULL);
    hft_stage_open(stage, NAMES * EACH, NAMES, LEASE_MS, hft_writer_act);
    hft_stage_start(stage);
    for (int round = 0; sum(stage, HFT_STALE_HOLDERS) < stage->count; round++)
        round_of(&stale, (enum kind)(round % KINDS));
    hft_stage_end(stage);
    bool kept = judge(&stale);
    hft_stage_close(stage);
    return kept;
}
