/* SPDX-License-Identifier: MIT */
/* oracle.c - see oracle.h. Calls nothing but qsort and the allocator. */
#include "tests/torture/oracle.h"

#include <stdlib.h>
#include <string.h>

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_lock_and_entry(const void *one, const void *other)
{
    const struct hft_interval *a = one, *b = other;
    int result = order(a->lock, b->lock);
    if (result == 0)
        result = order(a->enter_ns, b->enter_ns);
    return result != 0 ? result : order(a->fence, b->fence);
}

static void tell(hft_violation_fn *report, void *arg, enum hft_verdict verdict, const struct hft_interval *earlier,
                 const struct hft_interval *later, int64_t by)
{
    struct hft_violation violation = {verdict, *earlier, *later, by};
    if (report != NULL)
        report(&violation, arg);
}

struct before { /* of those of this lock that entered before, and have it alone, or share it */
    const struct hft_interval *longest, *highest;
};

/* How many promises are broken. */
static size_t compare(const struct before *before, const struct hft_interval *now, hft_violation_fn *report, void *arg)
{
    const struct hft_interval *longest = before->longest, *highest = before->highest;
    size_t found = 0;
    if (longest != NULL && now->enter_ns < longest->leave_ns) {
        int64_t end = now->leave_ns < longest->leave_ns ? now->leave_ns : longest->leave_ns;
        tell(report, arg, HFT_OVERLAP, longest, now, end - now->enter_ns);
        found++;
    }
    if (highest != NULL && now->fence <= highest->fence) {
        tell(report, arg, HFT_FENCE, highest, now, highest->fence - now->fence + 1);
        found++;
    }
    return found;
}

size_t hft_oracle_check(struct hft_interval *history, size_t count, hft_violation_fn *report, void *arg)
{
    struct before alone = {NULL, NULL}, shared = {NULL, NULL};
    size_t found = 0;
    if (count > 0)
        qsort(history, count, sizeof *history, by_lock_and_entry);
    for (size_t i = 0; i < count; i++) {
        const struct hft_interval *now = &history[i];
        if (i == 0 || history[i - 1].lock != now->lock)
            alone = shared = (struct before){NULL, NULL};
        found += compare(&alone, now, report, arg);
        found += now->shared ? 0 : compare(&shared, now, report, arg);
        struct before *own = now->shared ? &shared : &alone;
        if (own->longest == NULL || now->leave_ns > own->longest->leave_ns)
            own->longest = now;
        if (own->highest == NULL || now->fence > own->highest->fence)
            own->highest = now;
    }
    return found;
}

int64_t hft_oracle_after_switch(const struct hft_violation *overlap, const int64_t *switched_ns, int count)
{
    int64_t from = overlap->later.enter_ns, end = from + overlap->by;
    for (int i = count - 1; i >= 0; i--)
        if (switched_ns[i] <= end)
            return end - (switched_ns[i] > from ? switched_ns[i] : from);
    return overlap->by;
}

static int by_block(const void *one, const void *other)
{
    const struct hft_interval *a = one, *b = other;
    int result = order(a->lock, b->lock);
    result = result != 0 ? result : order(a->fence / HFT_BLOCK, b->fence / HFT_BLOCK);
    return result != 0 ? result : order(a->enter_ns, b->enter_ns);
}

struct hft_grants hft_oracle_grants(struct hft_interval *history, size_t count)
{
    struct hft_grants found = {0, 0, 0};
    if (count > 0)
        qsort(history, count, sizeof *history, by_block);
    for (size_t i = 0; i < count; i++) /* the first of each block stays */
        if (i == 0 || history[i].lock != history[found.count - 1].lock ||
            history[i].fence / HFT_BLOCK != history[found.count - 1].fence / HFT_BLOCK)
            history[found.count++] = history[i];
    if (found.count > 0)
        qsort(history, found.count, sizeof *history, by_lock_and_entry);
    for (size_t i = 0, first = 0; i < found.count; i++) {
        if (history[i].lock != history[first].lock)
            first = i;
        size_t above = first; /* the earliest one of the lock whose fence is higher */
        while (history[above].fence <= history[i].fence && above < i)
            above++;
        if (above == i)
            continue;
        found.falls++;
        if (history[i].enter_ns - history[above].enter_ns > found.apart_ns)
            found.apart_ns = history[i].enter_ns - history[above].enter_ns;
    }
    return found;
}

static int by_leaving(const void *one, const void *other)
{
    const struct hft_interval *const *a = one, *const *b = other;
    int result = order((*a)->lock, (*b)->lock);
    return result != 0 ? result : order((*a)->leave_ns, (*b)->leave_ns);
}

static int by_fence(const void *one, const void *other)
{
    const struct hft_interval *const *a = one, *const *b = other;
    int result = order((*a)->lock, (*b)->lock);
    return result != 0 ? result : order((*a)->fence, (*b)->fence);
}

/* Walks through the entries, and beside them through those that leave before each. Who left in the moment of its entry does not
 * count. */
static size_t count_permits(const struct hft_interval *history, struct hft_interval *const *leaving, size_t count, int limit,
                            hft_violation_fn *report, void *arg)
{
    size_t found = 0, left = 0;
    int64_t out = 0;
    for (size_t i = 0; i < count; i++) {
        const struct hft_interval *now = &history[i];
        if (i > 0 && history[i - 1].lock != now->lock)
            out = 0;
        while (left < count && (leaving[left]->lock < now->lock ||
                                (leaving[left]->lock == now->lock && leaving[left]->leave_ns <= now->enter_ns))) {
            const struct hft_interval *gone = leaving[left++];
            out -= gone->lock == now->lock && gone->leave_ns > gone->enter_ns ? gone->permits : 0;
        }
        out += now->leave_ns > now->enter_ns ? now->permits : 0;
        if (out > limit) {
            tell(report, arg, HFT_OVERLAP, i > 0 ? &history[i - 1] : now, now, out - limit);
            found++;
        }
    }
    return found;
}

size_t hft_oracle_check_permits(struct hft_interval *history, size_t count, int limit, hft_violation_fn *report, void *arg)
{
    struct hft_interval **sorted = malloc((count + 1) * sizeof(struct hft_interval *));
    if (sorted == NULL)
        abort();
    if (count > 0)
        qsort(history, count, sizeof *history, by_lock_and_entry);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &history[i];
    qsort(sorted, count, sizeof(struct hft_interval *), by_leaving);
    size_t found = count_permits(history, sorted, count, limit, report, arg);
    qsort(sorted, count, sizeof(struct hft_interval *), by_fence);
    for (size_t i = 1; i < count; i++)
        if (sorted[i]->lock == sorted[i - 1]->lock && sorted[i]->fence == sorted[i - 1]->fence) {
            tell(report, arg, HFT_FENCE, sorted[i - 1], sorted[i], 1);
            found++;
        }
    free(sorted);
    return found;
}

int64_t hft_oracle_left_behind(int64_t seen_ns, int64_t unwanted_since_ns, int64_t well_since_ns, int64_t bound_ns)
{
    int64_t since = unwanted_since_ns > well_since_ns ? unwanted_since_ns : well_since_ns;
    return since < seen_ns && seen_ns - since > bound_ns ? seen_ns - since - bound_ns : 0;
}

const char *hft_oracle_check_ring(const struct hft_player *players, const char *const *locks, int count, int64_t bound_ns,
                                  int64_t *late_ns)
{
    const struct hft_player *victim = NULL;
    int64_t closed_ns = 0;
    for (int i = 0; i < count; i++) {
        if (players[i].end != HFT_WENT_ON && players[i].end != HFT_VICTIM)
            return "one of them neither went on nor was the victim";
        if (players[i].end == HFT_VICTIM && victim != NULL)
            return "two victims";
        if (players[i].end == HFT_VICTIM)
            victim = &players[i];
        closed_ns = players[i].asked_ns > closed_ns ? players[i].asked_ns : closed_ns;
    }
    if (victim == NULL)
        return "no victim";
    for (int i = 0; i < count; i++)
        if (strstr(victim->said, locks[i]) == NULL)
            return "the victim was not told of all locks";
    *late_ns = victim->told_ns - closed_ns;
    return *late_ns > bound_ns ? "the victim was told late" : NULL;
}

int64_t hft_oracle_too_old(int64_t began_ns, int64_t gone_ns, int64_t bound_ns)
{
    return gone_ns != 0 && gone_ns < began_ns - bound_ns ? began_ns - bound_ns - gone_ns : 0;
}
