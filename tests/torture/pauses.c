/* SPDX-License-Identifier: MIT */
/* pauses.c - SIGSTOP, for two leases, of processes that hold a lease at that very moment; meanwhile another process
 * gets it. When they run again the first look must be false, LOST must come soon, and release must return it. */
#include "tests/torture/actor.h"
#include "tests/support/quantile.h"
#include "tests/torture/campaigns.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define NAMES    32
#define EACH     2
#define LEASE_MS 300
#define TOLD_MS  50 /* after it runs again, on an idle machine */
#define OVER_MS  15000

struct pauses {
    struct hft_stage *stage;
    int count;
};

/* Stopped for good, and still holding: or let go again. */
static void stop(struct pauses *pauses, int process)
{
    struct hft_stage *stage = pauses->stage;
    struct hft_mark *mark = hft_stage_mark(stage, process);
    struct hft_seat *seat = hft_ledger_seat(stage->ledger, process, 0);
    int64_t at_ns = hft_now_ns();
    (void)kill(stage->pids[process], SIGSTOP);
    while (waitpid(stage->pids[process], NULL, WUNTRACED) < 0 && errno == EINTR)
        ;
    if (atomic_load(&mark->act) != HFT_HOLDING ||
        seat->history[atomic_load(&seat->count) - 1].leave_ns <= hft_now_ns()) {
        (void)kill(stage->pids[process], SIGCONT);
        return;
    }
    struct hft_pause *pause = &stage->pauses[pauses->count];
    pause->stopped_ns = at_ns;
    pause->lock = process % NAMES;
    atomic_store(&mark->stroke, pauses->count++);
}

static void resume(struct hft_stage *stage, int process)
{
    struct hft_mark *mark = hft_stage_mark(stage, process);
    struct hft_pause *pause = &stage->pauses[atomic_load(&mark->stroke)];
    pause->resumed_ns = hft_now_ns();
    atomic_store(&mark->resumed_ns, pause->resumed_ns);
    (void)kill(stage->pids[process], SIGCONT);
}

/* One round over all processes; returns how many are stopped or have not recorded everything yet. */
static int attend(struct pauses *pauses)
{
    struct hft_stage *stage = pauses->stage;
    int open = 0;
    hft_stage_tick(stage);
    for (int process = 0; process < NAMES * EACH; process++) {
        struct hft_mark *mark = hft_stage_mark(stage, process);
        int stroke = atomic_load(&mark->stroke);
        if (stroke >= 0) {
            open++;
            if (stage->pauses[stroke].resumed_ns == 0 &&
                hft_now_ns() >= stage->pauses[stroke].stopped_ns + 2 * LEASE_MS * HFT_MS)
                resume(stage, process);
        } else if (pauses->count < stage->count && atomic_load(&mark->act) == HFT_HOLDING &&
                   atomic_load(&mark->due_ns) <= hft_now_ns()) {
            stop(pauses, process);
        }
    }
    return open;
}

static int count_heirs(const struct hft_stage *stage, const struct hft_interval *history, size_t sections)
{
    int heirs = 0;
    for (int i = 0; i < stage->count; i++) {
        const struct hft_pause *pause = &stage->pauses[i];
        bool found = false;
        for (size_t s = 0; s < sections && !found; s++)
            found = history[s].lock == pause->lock && history[s].enter_ns > pause->stopped_ns &&
                    history[s].enter_ns < pause->resumed_ns;
        heirs += found;
    }
    return heirs;
}

static bool judge(struct hft_stage *stage)
{
    struct hft_interval *history;
    size_t sections;
    int64_t *late = calloc((size_t)stage->count + 1, sizeof *late);
    long broken = hft_stage_judge(stage, &history, &sections), believed = 0, untold = 0, kept = 0, slow = 0, over = 0;
    int64_t bound = (TOLD_MS + stage->slack_ms - HFT_SLACK_MS) * HFT_MS;
    for (int i = 0; late != NULL && i < stage->count; i++) {
        struct hft_pause *pause = &stage->pauses[i];
        int64_t told = atomic_load(&pause->told_ns), seen = atomic_load(&pause->readable_ns);
        believed += atomic_load(&pause->believed);
        kept += !atomic_load(&pause->lost);
        untold += told == 0 || seen == 0;
        late[i] = (told > seen ? told : seen) - pause->resumed_ns;
        slow += late[i] > bound;
        over += late[i] > bound + 4 * stage->latest_wake_ns; /* four late wakes in a row are nobody's fault */
    }
    struct hft_summary summary = {
        .operations = (long)sections, .faults = stage->count, .false_losses = hft_stage_lost(stage),
        .violations = broken + believed + untold + kept + over, .wait_p99_ms = -1, .wait_ms = -1, .wait_bound_ms = -1,
        .lost_p50_ms = (double)hft_quantile(late, stage->count, 0.5) / 1e6,
        .lost_p99_ms = (double)hft_quantile(late, stage->count, 0.99) / 1e6,
        .lost_ms = (double)hft_quantile(late, stage->count, 1) / 1e6, .lost_bound_ms = TOLD_MS};
    (void)printf("pauses: %d holders stopped for %d ms, %d of the names had a new holder meanwhile, %ld overlaps and "
                 "fences out of order; valid afterwards %ld, never told %ld, released without HF_LOST %ld, told after "
                 "more than %d ms %ld (the director itself was woken up to %.0f ms late)\n",
                 stage->count, 2 * LEASE_MS, count_heirs(stage, history, sections), broken, believed, untold, kept,
                 TOLD_MS, slow, (double)stage->latest_wake_ns / 1e6);
    free(history);
    free(late);
    return hft_summary_tell(stage, &summary);
}

bool hft_campaign_pauses(struct hft_stage *stage)
{
    struct pauses pauses = {.stage = stage};
    hft_stage_open(stage, NAMES * EACH, NAMES, LEASE_MS, hft_actor_hold);
    hft_stage_start(stage);
    while (pauses.count < stage->count)
        (void)attend(&pauses);
    int64_t until = hft_now_ns() + OVER_MS * HFT_MS;
    while (attend(&pauses) > 0 && hft_now_ns() < until)
        ;
    hft_stage_end(stage);
    bool kept = judge(stage);
    hft_stage_close(stage);
    return kept;
}
