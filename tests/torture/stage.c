/* SPDX-License-Identifier: MIT */
/* stage.c - see stage.h. */
#include "tests/torture/stage.h"
#include "tests/support/child.h"

#include <holdfast/lease.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHOWN         5
#define SUMS          16
#define PING_EVERY_MS 20

static void *shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        perror("torture: mmap");
        exit(1);
    }
    return at;
}

void hft_stage_open(struct hft_stage *stage, int processes, int names, int64_t lease_ms, hft_act_fn *act)
{
    stage->server = hft_server_start(NULL);
    struct hft_plan plan = {.mode = stage->name, .fault = HFT_KILL, .processes = processes, .threads = 1,
                            .locks = names, .lease_ms = lease_ms, .slack_ms = stage->slack_ms, .seed = stage->seed,
                            .url = hft_server_url(stage->server)};
    stage->ledger = hft_ledger_new(&plan);
    stage->marks = shared((size_t)processes * sizeof *stage->marks);
    stage->pauses = shared((size_t)stage->count * sizeof *stage->pauses);
    stage->sums = shared(SUMS * sizeof *stage->sums);
    stage->pids = calloc((size_t)processes, sizeof *stage->pids);
    stage->act = act;
    stage->rng = stage->seed;
    if (stage->pids == NULL)
        exit(1);
}

struct hft_mark *hft_stage_mark(struct hft_stage *stage, int process)
{
    return &stage->marks[process];
}

int hft_stage_roll(struct hft_stage *stage, int sides)
{
    return rand_r(&stage->rng) % sides;
}

void hft_stage_key(int lock, char key[32])
{
    (void)snprintf(key, 32, "hf:{torture:%d}", lock);
}

int64_t hft_stage_bound_ns(const struct hft_stage *stage)
{
    int64_t lease_ms = stage->ledger->plan.lease_ms;
    return lease_ms * HFT_MS + lease_ms * HFT_MS * 21 / 1000 + (3 + 250 + stage->slack_ms) * HFT_MS;
}

void hft_stage_spawn(struct hft_stage *stage, int process)
{
    unsigned seed = stage->seed * 7919u + stage->incarnations++;
    struct hft_mark *mark = &stage->marks[process];
    atomic_store(&mark->act, (int)HFT_STARTING);
    atomic_store(&mark->due_ns, INT64_MAX);
    atomic_store(&mark->resumed_ns, 0);
    atomic_store(&mark->stroke, -1);
    stage->pids[process] = hft_fork();
    if (stage->pids[process] == 0) {
        stage->act(stage, process, seed);
        _exit(1);
    }
}

void hft_stage_start(struct hft_stage *stage)
{
    for (int process = 0; process < stage->ledger->plan.processes; process++)
        hft_stage_spawn(stage, process);
}

static void reap(pid_t pid)
{
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

void hft_stage_kill(struct hft_stage *stage, int process)
{
    (void)kill(stage->pids[process], SIGKILL);
    reap(stage->pids[process]);
    stage->pids[process] = 0;
}

void hft_stage_tick(struct hft_stage *stage)
{
    const struct timespec length = {0, HFT_MS};
    int64_t due = hft_now_ns() + length.tv_nsec;
    (void)nanosleep(&length, NULL);
    int64_t late = hft_now_ns() - due;
    stage->latest_wake_ns = late > stage->latest_wake_ns ? late : stage->latest_wake_ns;
    int64_t now = hft_now_ns();
    if (now >= stage->ping_ns) {
        freeReplyObject(hft_server_ask(stage->server, "PING"));
        stage->ping_ns = hft_now_ns() + PING_EVERY_MS * HFT_MS;
        int64_t took = hft_now_ns() - now;
        stage->slowest_answer_ns = took > stage->slowest_answer_ns ? took : stage->slowest_answer_ns;
    }
    siginfo_t ended = {0};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0)
        return;
    for (int process = 0; process < stage->ledger->plan.processes; process++)
        if (stage->pids[process] == ended.si_pid) {
            reap(ended.si_pid);
            hft_complain(stage->ledger, "process %d ended by itself: %d %d", process, ended.si_code, ended.si_status);
            hft_stage_spawn(stage, process);
        }
}

static long count_endless_keys(struct hft_server *server)
{
    redisReply *keys = hft_server_ask(server, "KEYS *");
    long endless = 0;
    for (size_t i = 0; i < (size_t)keys->elements; i++) {
        const redisReply *key = keys->element[i];
        if (strcmp(key->str, "hf:fence") != 0 &&
            hft_server_ask_integer(server, "PTTL %b", key->str, (size_t)key->len) == -1 && ++endless <= SHOWN)
            (void)printf("  LEFT FOR EVER %s\n", key->str);
    }
    freeReplyObject(keys);
    return endless;
}

void hft_stage_end(struct hft_stage *stage)
{
    for (int process = 0; process < stage->ledger->plan.processes; process++)
        if (stage->pids[process] != 0)
            hft_stage_kill(stage, process);
    if (count_endless_keys(stage->server) > 0)
        hft_complain(stage->ledger, "keys were left for ever");
    hft_ledger_judge_scripts(stage->ledger,
                             hft_server_calls(stage->server, "evalsha") + hft_server_calls(stage->server, "eval"));
}

void hft_stage_close(struct hft_stage *stage)
{
    free(stage->pids);
    hft_server_stop(stage->server);
    hft_server_stop(stage->store);
}

static void show(const struct hft_violation *violation, void *arg)
{
    int *shown = arg;
    const struct hft_interval *a = &violation->earlier, *b = &violation->later;
    if (++*shown <= SHOWN)
        (void)printf("  %s torture:%" PRId32 ": process %d [%" PRId64 " .. %" PRId64 "] fence %" PRId64
                     ", then process %d [%" PRId64 " .. %" PRId64 "] fence %" PRId64 ": by %" PRId64 "\n",
                     violation->verdict == HFT_OVERLAP ? "OVERLAP" : "FENCE", a->lock, a->process, a->enter_ns,
                     a->leave_ns, a->fence, b->process, b->enter_ns, b->leave_ns, b->fence, violation->by);
}

long hft_stage_judge(struct hft_stage *stage, struct hft_interval **history, size_t *count)
{
    int shown = 0;
    *history = hft_ledger_history(stage->ledger, count);
    return (long)hft_oracle_check(*history, *count, show, &shown);
}

long hft_stage_lost(struct hft_stage *stage)
{
    long lost = 0;
    for (int reason = 0; reason < HFT_REASONS; reason++) {
        long count = (long)atomic_load(&stage->ledger->lost[reason]);
        if (count > 0)
            (void)printf("  lost %ld: %s\n", count, hf_reason_text((hf_reason)reason));
        lost += count;
    }
    return lost;
}

static void tell_ms(const char *name, double ms)
{
    if (ms >= 0)
        (void)printf(" %s=%.1f", name, ms);
}

bool hft_summary_tell(const struct hft_stage *stage, const struct hft_summary *summary)
{
    int complaints = atomic_load(&stage->ledger->complaints);
    if (complaints > 0)
        (void)printf("  COMPLAINT %s (and %d more)\n", stage->ledger->complaint, complaints - 1);
    long violations = summary->violations + complaints;
    (void)printf("summary %s seed=%u operations=%ld faults=%ld violations=%ld false_losses=%ld", stage->name,
                 stage->seed, summary->operations, summary->faults, violations, summary->false_losses);
    tell_ms("wait_p99_ms", summary->wait_p99_ms);
    tell_ms("wait_ms", summary->wait_ms);
    tell_ms("wait_bound_ms", summary->wait_bound_ms);
    tell_ms("lost_p50_ms", summary->lost_p50_ms);
    tell_ms("lost_p99_ms", summary->lost_p99_ms);
    tell_ms("lost_ms", summary->lost_ms);
    tell_ms("lost_bound_ms", summary->lost_bound_ms);
    tell_ms("woken_late_ms", (double)stage->latest_wake_ns / 1e6);
    tell_ms("slowest_ping_ms", (double)stage->slowest_answer_ns / 1e6);
    (void)printf("\n");
    return violations == 0;
}
