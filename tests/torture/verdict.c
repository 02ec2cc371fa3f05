/* SPDX-License-Identifier: MIT */
/* verdict.c - see verdict.h. */
#include "tests/torture/verdict.h"

#include <holdfast/holdfast.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 5 /* violations of a kind */

struct verdict {
    struct hft_crowd *crowd;
    struct hft_ledger *ledger;
    struct hft_interval *history;
    size_t sections, overlaps, fences, late;
    int64_t limit_ns, worst_ns;
    int64_t keys, for_ever;
};

/* guard(x) = 2.1 rho x + 3 ms + guard_ms, as the protocol has it. */
int64_t hft_longest_wait_ns(const struct hft_plan *plan)
{
    return plan->lease_ms * HFT_MS + plan->lease_ms * HFT_MS * 21 / 1000 + (3 + 250 + plan->slack_ms) * HFT_MS;
}

static void show(const struct hft_violation *violation, void *arg)
{
    struct verdict *verdict = arg;
    const struct hft_interval *a = &violation->earlier, *b = &violation->later;
    size_t *count = violation->verdict == HFT_OVERLAP ? &verdict->overlaps : &verdict->fences;
    if (++*count > SHOWN)
        return;
    (void)printf("  %s torture:%" PRId32 ": %d.%d [%" PRId64 " .. %" PRId64 "] fence %" PRId64
                 ", then %d.%d [%" PRId64 " .. %" PRId64 "] fence %" PRId64 ": by %" PRId64 "%s\n",
                 violation->verdict == HFT_OVERLAP ? "OVERLAP" : "FENCE", a->lock, a->process, a->thread, a->enter_ns,
                 a->leave_ns, a->fence, b->process, b->thread, b->enter_ns, b->leave_ns, b->fence, violation->by,
                 violation->verdict == HFT_OVERLAP ? " ns" : "");
}

/* The first section of `lock` that began at from_ns or later, in the sorted history; sections: none. */
static size_t first_since(const struct verdict *verdict, int32_t lock, int64_t from_ns)
{
    size_t low = 0, high = verdict->sections;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct hft_interval *at = &verdict->history[middle];
        if (at->lock < lock || (at->lock == lock && at->enter_ns < from_ns))
            low = middle + 1;
        else
            high = middle;
    }
    return low < verdict->sections && verdict->history[low].lock == lock ? low : verdict->sections;
}

/* How long the name had no holder after this death while a surviving process waited for it. */
static int64_t orphaned_ns(const struct verdict *verdict, const struct hft_death *death, int64_t ended_ns)
{
    const struct hft_crowd *crowd = verdict->crowd;
    size_t heir = first_since(verdict, death->lock, death->seen_ns);
    int64_t until = ended_ns, asked = INT64_MAX;
    if (heir < verdict->sections) {
        until = verdict->history[heir].enter_ns;
        for (size_t i = heir; i < verdict->sections && verdict->history[i].lock == death->lock &&
                              verdict->history[i].enter_ns < until + HFT_WAIT_MS * HFT_MS; i++)
            if (verdict->history[i].asked_ns < asked)
                asked = verdict->history[i].asked_ns;
    } else if (crowd->ledger->plan.locks > 1) {
        return 0; /* nobody may have wanted it since */
    }
    /* A new holder that died before it recorded its section was a new holder all the same. */
    for (const struct hft_death *next = death + 1; next < crowd->deaths + crowd->death_count; next++)
        if (next->lock == death->lock && next->at_ns < until)
            until = next->at_ns;
    int64_t from = asked == INT64_MAX || asked < death->at_ns ? death->at_ns : asked;
    return until > from ? until - from : 0;
}

static void judge_deaths(struct verdict *verdict, int64_t ended_ns)
{
    for (size_t i = 0; i < verdict->crowd->death_count; i++) {
        const struct hft_death *death = &verdict->crowd->deaths[i];
        int64_t wait = orphaned_ns(verdict, death, ended_ns);
        if (wait > verdict->worst_ns)
            verdict->worst_ns = wait;
        if (wait > verdict->limit_ns && ++verdict->late <= SHOWN)
            (void)printf("  LATE torture:%" PRId32 ": no new holder for %" PRId64 " ms after its holder's end at %"
                         PRId64 "\n", death->lock, wait / HFT_MS, death->at_ns);
    }
}

/* All are free again when the leases of the killed have ended. */
static void judge_permits(struct verdict *verdict)
{
    const struct hft_plan *plan = &verdict->ledger->plan;
    hf_client *client;
    hf_lease *lease;
    hf_error error;
    hf_status status = hf_client_open(plan->url, NULL, &client, &error);
    for (int lock = 0; status == HF_OK && lock < plan->locks; lock++) {
        char name[32];
        (void)snprintf(name, sizeof name, "torture:%d", lock);
        status = hf_semaphore_acquire(client, name, plan->limit, plan->limit, HF_LOCK(.wait_ms = verdict->limit_ns / HFT_MS), &lease,
                                      &error);
        if (status == HF_OK)
            status = hf_lease_release(lease, &error);
    }
    if (status != HF_OK)
        hft_complain(verdict->ledger, "not all permits are free again: %s", error.message);
    if (client != NULL)
        (void)hf_client_close(client, NULL);
}

static void look_at_key(struct verdict *verdict, const redisReply *key)
{
    int64_t left = hft_server_ask_integer(verdict->crowd->server, "PTTL %b", key->str, (size_t)key->len);
    if (left == -2 || strcmp(key->str, "hf:fence") == 0)
        return;
    verdict->keys++;
    if (left == -1 && ++verdict->for_ever <= SHOWN)
        (void)printf("  LEFT FOR EVER %s\n", key->str);
}

static void look_at_keys(struct verdict *verdict)
{
    char cursor[32] = "0";
    do {
        redisReply *reply = hft_server_ask(verdict->crowd->server, "SCAN %s COUNT 1000", cursor);
        for (size_t i = 0; i < (size_t)reply->element[1]->elements; i++)
            look_at_key(verdict, reply->element[1]->element[i]);
        (void)snprintf(cursor, sizeof cursor, "%s", reply->element[0]->str);
        freeReplyObject(reply);
    } while (strcmp(cursor, "0") != 0);
}

static double longest_wait_ms(const struct hft_seat *seat)
{
    uint32_t count = atomic_load(&seat->count);
    int64_t longest = 0;
    if (count == 0)
        return HUGE_VAL; /* which is not less than three times itself */
    for (uint32_t i = 0; i < count; i++) {
        int64_t wait = seat->history[i].enter_ns - seat->history[i].asked_ns;
        longest = wait > longest ? wait : longest;
    }
    return (double)longest / HFT_MS;
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* One process alone: it must need the server seldom (its lease and its fences are renewed so often a second, and fences so
 * often a section, however slow the sections are), have one acquire outstanding at a time, and let its threads
 * wait alike. (How many sections each has says nothing of that: a thread that is alone on its CPU is soon preempted by
 * the next one's wake-up, and the others pass the lease among themselves for a whole time slice.) */
static bool judge_economy(const struct verdict *verdict, const struct hft_wire *wire, int64_t calls)
{
    const struct hft_plan *plan = &verdict->ledger->plan;
    double *waits_ms = calloc((size_t)plan->threads, sizeof *waits_ms);
    if (waits_ms == NULL)
        abort();
    for (int thread = 0; thread < plan->threads; thread++)
        waits_ms[thread] = longest_wait_ms(hft_ledger_seat(verdict->ledger, 0, thread));
    qsort(waits_ms, (size_t)plan->threads, sizeof waits_ms[0], by_size);
    double median_ms = waits_ms[plan->threads / 2], most_ms = waits_ms[plan->threads - 1];
    free(waits_ms);
    double sections = verdict->sections > 0 ? (double)verdict->sections : 1;
    (void)printf("  commands %" PRId64 ", %.5f a section (with what scripts run: %" PRId64 ", %.5f)  acquires %" PRId64
                 ", while one was out %" PRId64 "  longest waits of the threads %.1f, at most %.1f ms\n",
                 wire->commands, (double)wire->commands / sections, calls, (double)calls / sections, wire->acquires,
                 wire->again, median_ms, most_ms);
    bool is_seldom = (double)calls < 50 * (double)plan->seconds + sections / 1000;
    return is_seldom && wire->again == 0 && wire->acquires > 0 && most_ms < 3 * median_ms;
}

/* The line that a soak adds up. A frozen process may lose the lease it had, a frozen server all of them. */
static void tell_summary(const struct verdict *verdict, bool kept, int64_t lost)
{
    const struct hft_plan *plan = &verdict->ledger->plan;
    int64_t excused = plan->fault == HFT_FREEZE_SERVER ? lost : plan->fault == HFT_FREEZE ? verdict->crowd->holders : 0;
    size_t broken = verdict->overlaps + verdict->fences + verdict->late;
    (void)printf("summary torture-%s seed=%u operations=%zu faults=%d violations=%zu false_losses=%" PRId64, plan->mode,
                 plan->seed, verdict->sections, verdict->crowd->kills, broken > 0 || kept ? broken : 1,
                 lost > excused ? lost - excused : 0);
    if (plan->fault == HFT_KILL)
        (void)printf(" wait_ms=%" PRId64 " wait_bound_ms=%" PRId64, verdict->worst_ns / HFT_MS,
                     verdict->limit_ns / HFT_MS);
    (void)printf("\n");
}

bool hft_verdict(struct hft_crowd *crowd, struct hft_wire *wire, int64_t ran_ns)
{
    struct hft_ledger *ledger = crowd->ledger;
    const struct hft_plan *plan = &ledger->plan;
    struct verdict verdict = {.crowd = crowd, .ledger = ledger, .limit_ns = hft_longest_wait_ns(plan)};
    int64_t ended_ns = hft_now_ns();
    int64_t calls = wire != NULL ? hft_server_calls(crowd->server, NULL) : 0;
    verdict.history = hft_ledger_history(ledger, &verdict.sections);
    if (plan->limit > 0) {
        (void)hft_oracle_check_permits(verdict.history, verdict.sections, plan->limit, show, &verdict);
        judge_permits(&verdict);
    } else {
        (void)hft_oracle_check(verdict.history, verdict.sections, show, &verdict);
    }
    judge_deaths(&verdict, ended_ns);
    look_at_keys(&verdict);
    hft_ledger_judge_scripts(ledger, hft_server_calls(crowd->server, "evalsha") + hft_server_calls(crowd->server, "eval"));
    bool kept = verdict.sections > 0 && verdict.overlaps == 0 && verdict.fences == 0 && verdict.late == 0 &&
                verdict.for_ever == 0 && atomic_load(&ledger->complaints) == 0;
    if (wire != NULL)
        kept = judge_economy(&verdict, wire, calls) && kept;
    if (atomic_load(&ledger->complaints) > 0)
        (void)printf("  COMPLAINT %s (and %d more)\n", ledger->complaint, atomic_load(&ledger->complaints) - 1);
    int64_t lost = 0;
    for (int reason = 0; reason < HFT_REASONS; reason++) {
        int64_t count = atomic_load(&ledger->lost[reason]);
        if (count > 0)
            (void)printf("  lost %" PRId64 ": %s\n", count, hf_reason_text((hf_reason)reason));
        lost += count;
    }
    if (plan->fault == HFT_CALM && lost > 0)
        kept = false; /* nobody did anything to them */
    if (atomic_load(&ledger->full))
        (void)printf("  the ledger was full before the end\n");
    (void)printf("torture %-12s %-6s %" PRId64 " s %dx%d threads %d locks seed %u  sections %zu  overlaps %zu  "
                 "fences %zu  killed or frozen %d, holders %d  worst wait after it %" PRId64 " ms of %" PRId64
                 "  keys left %" PRId64 ", for ever %" PRId64 "  lost %" PRId64 " timeouts %" PRId64
                 " unknown %" PRId64 "  in vain %" PRId64 ", looks for what they left %ld\n",
                 plan->mode, kept ? "ok" : "FAILED", ran_ns / 1000000000, plan->processes, plan->threads, plan->locks,
                 plan->seed, verdict.sections, verdict.overlaps, verdict.fences, crowd->kills, crowd->holders,
                 verdict.worst_ns / HFT_MS, verdict.limit_ns / HFT_MS, verdict.keys, verdict.for_ever,
                 lost, atomic_load(&ledger->timeouts), atomic_load(&ledger->unknown), atomic_load(&ledger->in_vain),
                 crowd->looks);
    tell_summary(&verdict, kept, lost);
    free(verdict.history);
    return kept;
}
