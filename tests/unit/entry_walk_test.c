/* SPDX-License-Identifier: MIT */
/*
 * entry_walk_test.c - seeded random walks through an entry: whatever event comes in whatever order, its promises
 * hold.
 *
 * The walk plays the caller, the threads and a server that gives any answer it could give at that point. It keeps a
 * bound of its own for V: the stamps and lengths of the commands that the server really executed for the current
 * token.
 */
#include "base/random.h"
#include "core/policy/entry.h"
#include "core/policy/fence.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 8
#define SEEDS   24
#define STEPS   10000
#define PENDING 8

enum event {
    ARRIVE,
    LEAVE,
    COME,
    ANSWER,
    HANDED,
    FORGED,
    WANTED,
    NUDGED,
    MISSED,
    RELEASE,
    QUIET_RELEASE,
    FILLED,
    RENEWED,
    LOST,
    FENCES,
    REFUSE_ALL,
    LOOK,
    EVENTS
};

struct thread {
    struct hfi_waiter waiter;
    bool waits;
};

struct sent {              /* by the current token */
    int64_t stamp, length; /* what it makes the key good for */
};

struct walk {
    struct hfi_entry_rules rules;
    struct hfi_entry entry;
    struct hfi_step decided;
    uint64_t rng;
    unsigned seed;
    int step;
    int64_t now, counter, last_fence;
    struct thread threads[THREADS];
    struct thread *holder;
    int64_t holder_end; /* the handle's V */
    int64_t got_at;     /* when the holder was given it */

    int64_t promise; /* the server keeps the key for the current token until then at least */
    bool under_way;  /* one question */
    enum hfi_action_kind kind; /* of the last acquire */
    bool is_recheck;           /* what is under way is a re-check, not that acquire */
    struct sent acquire;
    bool known, queued, closed; /* the server may know the token; the token is in the queue; it was given up */
    struct sent echoes[PENDING], renewals[PENDING];
    int echo_count, renewal_count, blocks_asked;
};

static int seen[HFI_HELD + 1][EVENTS];

#define CHECK(walk, condition)                                                                               \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            fail_msg("seed %u, step %d: not so: %s", (walk)->seed, (walk)->step, #condition);                \
    } while (0)

static int64_t roll(struct walk *walk, int64_t sides)
{
    return (int64_t)(hfi_rng_next(&walk->rng) % (uint64_t)sides);
}

static bool chance(struct walk *walk, int percent)
{
    return roll(walk, 100) < percent;
}

/* What happens now, to a lane of this round trip. */
static struct hfi_step *now(struct walk *walk, int64_t rtt_ns)
{
    walk->decided.now = walk->now;
    walk->decided.rtt_ns = rtt_ns;
    return &walk->decided;
}

static void add(struct sent *list, int *count, struct sent what)
{
    if (*count == PENDING) {
        memmove(list, list + 1, (PENDING - 1) * sizeof *list);
        --*count;
    }
    list[(*count)++] = what;
}

static void executed(struct walk *walk, struct sent what)
{
    if (what.stamp + what.length > walk->promise)
        walk->promise = what.stamp + what.length;
}

static void send_acquire(struct walk *walk, const struct hfi_action *action)
{
    struct hfi_acquire_params asking = hfi_entry_acquire_params(&walk->entry);
    if (action->fresh) {
        CHECK(walk, !walk->known || walk->closed); /* a token the server may know is never just dropped */
        walk->promise = 0;
        walk->under_way = walk->known = walk->queued = walk->closed = false;
        walk->echo_count = walk->renewal_count = walk->blocks_asked = 0;
    }
    CHECK(walk, !walk->under_way);
    CHECK(walk, action->kind != HFI_SEND_NATIVE || (action->fresh && walk->rules.native));
    walk->kind = action->kind;
    walk->is_recheck = false;
    walk->acquire = (struct sent){walk->now, asking.lease_ms * HFI_MS};
    walk->under_way = walk->known = true;
    if (action->kind == HFI_SEND_WAIT)
        add(walk->echoes, &walk->echo_count,
            (struct sent){walk->now, asking.claim_ms * HFI_MS});
    hfi_entry_sent(&walk->entry, &asking, walk->now);
}

static void send_recheck(struct walk *walk)
{
    struct hfi_acquire_params asking = hfi_entry_recheck_params(&walk->entry, walk->now);
    int64_t claim = hfi_entry_acquire_params(&walk->entry).claim_ms;
    CHECK(walk, walk->rules.batch_rechecks && walk->queued); /* it takes no place */
    CHECK(walk, !walk->under_way);
    CHECK(walk, asking.claim_ttl_ms == claim + hfi_guard_ms(claim, walk->rules.guard_ms));
    walk->is_recheck = walk->under_way = true;
    add(walk->echoes, &walk->echo_count, (struct sent){walk->now, claim * HFI_MS});
}

static void told(struct walk *walk, const struct hfi_action *action)
{
    CHECK(walk, walk->holder != NULL);
    if (action->event == HF_EVENT_LOST)
        walk->holder = NULL;
}

static void perform_one(struct walk *walk, const struct hfi_action *action)
{
    switch (action->kind) {
    case HFI_SEND_NATIVE:
    case HFI_SEND_WAIT:
    case HFI_SEND_TRY:
        send_acquire(walk, action);
        break;
    case HFI_SEND_MORE:
    case HFI_SEND_FLOOR:
        walk->blocks_asked++;
        break;
    case HFI_GIVE_BACK:
    case HFI_RETIRE_TOKEN:
        CHECK(walk, walk->holder == NULL);
        walk->closed = true;
        walk->under_way = false;
        break;
    case HFI_MOVE_END:
        CHECK(walk, walk->holder != NULL);
        CHECK(walk, walk->now < walk->holder_end); /* never up from the dead */
        CHECK(walk, action->end > walk->holder_end);
        walk->holder_end = action->end;
        break;
    case HFI_TELL:
        told(walk, action);
        break;
    case HFI_LET_IN:
    case HFI_SHRINK:
    case HFI_EXPLAIN_LATE:
    case HFI_WATCH_FOREIGN:
        break;
        fail();
    }
}

static void wake(struct walk *walk, struct thread *thread)
{
    hfi_list_remove(&thread->waiter.link);
    thread->waits = false;
    CHECK(walk, thread->waiter.verdict != HFI_WAITING);
    if (thread->waiter.verdict != HFI_GOT_LEASE)
        return;
    CHECK(walk, walk->holder == NULL);
    CHECK(walk, thread->waiter.fence > walk->last_fence);
    CHECK(walk, thread->waiter.end > walk->now);
    walk->holder = thread;
    walk->holder_end = thread->waiter.end;
    walk->got_at = walk->now;
    walk->last_fence = thread->waiter.fence;
}

static int waiting(const struct walk *walk)
{
    int count = 0;
    for (int i = 0; i < THREADS; i++)
        count += walk->threads[i].waits;
    return count;
}

/* Whichever thread acquired the lease, and whichever held it before: it has the times of the one that holds it now. */
static void check_whose_times(struct walk *walk)
{
    const struct hfi_lease_times *times = &walk->entry.held.times;
    const struct hfi_waiter *holder = &walk->holder->waiter;
    CHECK(walk, walk->holder_end == hfi_lease_end(times));
    CHECK(walk, times->length == holder->lease_ms * HFI_MS);
    CHECK(walk, times->full_stop == holder->stop_ms * HFI_MS);
    CHECK(walk, times->hold_end == (holder->max_hold_ms == 0 ? HFI_NEVER : walk->got_at + holder->max_hold_ms * HFI_MS));
    CHECK(walk, walk->entry.held.linger_ms == holder->linger_ms);
}

static void check(struct walk *walk)
{
    const struct hfi_entry *entry = &walk->entry;
    int64_t next = hfi_entry_next(entry);
    int listed = 0;
    for (const struct hfi_list *at = entry->waiters.next; at != &entry->waiters; at = at->next, listed++) {
        const struct hfi_waiter *waiter = hfi_container_of(at, struct hfi_waiter, link);
        CHECK(walk, waiter->verdict == HFI_WAITING);
        CHECK(walk, !waiter->once || listed == 0); /* who tries stands in no line */
    }
    CHECK(walk, listed == waiting(walk));
    CHECK(walk, (entry->holding == HFI_BY_THREAD) == (walk->holder != NULL));
    if (walk->holder != NULL)
        check_whose_times(walk);
    if (entry->remote == HFI_HELD) {
        CHECK(walk, entry->held.times.end <= walk->promise); /* V before the server's end, whatever happened */
        CHECK(walk, next != HFI_NEVER);
        bool is_free = entry->holding == HFI_OFFERED || entry->holding == HFI_LINGERING;
        CHECK(walk, !is_free || entry->held.times.hold_end == HFI_NEVER);
        CHECK(walk, entry->fence <= entry->held.fence_end || entry->holding == HFI_AWAITING_FENCES);
    } else if (listed > 0) {
        CHECK(walk, hfi_entry_awaits_answer(entry) ? walk->under_way : next != HFI_NEVER); /* nobody waits for nothing */
    } else {
        CHECK(walk, entry->remote == HFI_NOTHING && (next == HFI_NEVER || next == entry->tried_until));
        CHECK(walk, hfi_entry_is_idle(entry));
    }
    if (entry->remote == HFI_NOTHING) {
        CHECK(walk, !walk->known || walk->closed);
        CHECK(walk, !entry->ask.watching);
        walk->under_way = false;
    }
}

static void perform(struct walk *walk)
{
    hfi_entry_check(&walk->entry);
    CHECK(walk, walk->decided.count < HFI_ACTIONS_MOST);
    for (int i = 0; i < walk->decided.count; i++)
        perform_one(walk, &walk->decided.at[i]);
    while (!hfi_list_is_empty(&walk->decided.woken))
        wake(walk, hfi_container_of(walk->decided.woken.next, struct thread, waiter.link));
    hfi_step_init(&walk->decided, walk->now, 0);
    check(walk);
}

/* ---- what may happen ---- */

static struct thread *any_thread(struct walk *walk, bool waits)
{
    int from = (int)roll(walk, THREADS);
    for (int i = 0; i < THREADS; i++) {
        struct thread *thread = &walk->threads[(from + i) % THREADS];
        if (thread->waits == waits && thread != walk->holder)
            return thread;
    }
    return NULL;
}

static bool arrive(struct walk *walk)
{
    static const int64_t leases[] = {100, 700, 1000, 3000, 10000};
    struct thread *thread = any_thread(walk, false);
    if (thread == NULL)
        return false;
    int64_t lease = leases[roll(walk, 5)];
    thread->waiter = (struct hfi_waiter){.once = chance(walk, 25),
                                         .threadless = chance(walk, 25),
                                         .lease_ms = lease,
                                         .stop_ms = 1 + roll(walk, lease - 1),
                                         .max_hold_ms = chance(walk, 20) ? 1 + roll(walk, 3000) : 0,
                                         .linger_ms = chance(walk, 30) ? 1 + roll(walk, 2000) : 0};
    thread->waits = true;
    hfi_entry_arrive(&walk->entry, &thread->waiter, now(walk, 0));
    return true;
}

static bool leave(struct walk *walk)
{
    struct thread *thread = any_thread(walk, true);
    if (thread == NULL)
        return false;
    thread->waits = false;
    hfi_entry_leave(&walk->entry, &thread->waiter, now(walk, 0));
    return true;
}

/* What the server can say to a native acquire, a try, a wait. */
static enum hfi_answer_kind any_answer(struct walk *walk)
{
    static const enum hfi_answer_kind native[] = {HFI_GRANTED,   HFI_GRANTED,  HFI_BUSY,  HFI_BUSY,
                                                  HFI_NO_ANSWER, HFI_NOT_SENT, HFI_CANNOT},
                                      once[] = {HFI_GRANTED,   HFI_BUSY,      HFI_LATE,     HFI_FOREIGN_TYPE,
                                                HFI_HAS_VALUE, HFI_NO_ANSWER, HFI_NOT_SENT, HFI_CANNOT},
                                      wait[] = {HFI_GRANTED,  HFI_IN_QUEUE,     HFI_IN_QUEUE,  HFI_IN_QUEUE,
                                                HFI_LATE,     HFI_FOREIGN_TYPE, HFI_HAS_VALUE, HFI_NO_ANSWER,
                                                HFI_NOT_SENT, HFI_CANNOT},
                                      recheck[] = {HFI_IN_QUEUE, HFI_IN_QUEUE, HFI_ASK_ALONE, HFI_NO_ANSWER,
                                                   HFI_NOT_SENT, HFI_CANNOT};
    if (walk->is_recheck)
        return recheck[roll(walk, sizeof recheck / sizeof recheck[0])];
    if (walk->kind == HFI_SEND_NATIVE)
        return native[roll(walk, sizeof native / sizeof native[0])];
    if (walk->kind == HFI_SEND_TRY)
        return once[roll(walk, sizeof once / sizeof once[0])];
    return wait[roll(walk, sizeof wait / sizeof wait[0])];
}

static int64_t next_block(struct walk *walk, bool *good)
{
    walk->counter += HFI_FENCE_BLOCK * (1 + roll(walk, 3));
    *good = true;
    if (!chance(walk, 10) || walk->last_fence == 0) /* an entry can only know what was given under its name */
        return walk->counter;
    *good = chance(walk, 50); /* a counter that was lost, and one who did not notice */
    return walk->last_fence - roll(walk, 5000) + 1;
}

/* What the server knows of the token after such an answer. */
static void note_answer(struct walk *walk, enum hfi_answer_kind kind)
{
    switch (kind) {
    case HFI_GRANTED:
        executed(walk, walk->acquire);
        walk->queued = false;
        break;
    case HFI_IN_QUEUE:
        walk->queued = true;
        break;
    case HFI_BUSY:
    case HFI_HAS_VALUE:
        walk->known = walk->queued = walk->entry.remote == HFI_HELD;
        break;
    case HFI_LATE:
    case HFI_NOT_SENT:
    case HFI_CANNOT:
        walk->known = walk->queued || walk->entry.remote == HFI_HELD;
        break;
    case HFI_FOREIGN_TYPE:
    case HFI_NO_ANSWER:
    case HFI_ASK_ALONE:
        break;
    }
}

static bool answer(struct walk *walk)
{
    static const hf_status statuses[] = {HF_UNAVAILABLE, HF_UNAVAILABLE, HF_DENIED, HF_NOMEM};
    if (!walk->under_way || walk->entry.remote == HFI_NOTHING)
        return false;
    struct hfi_answer answer = {.kind = any_answer(walk),
                                .native = !walk->is_recheck && walk->kind == HFI_SEND_NATIVE,
                                .ours = chance(walk, 50),
                                .status = statuses[roll(walk, 4)],
                                .sent_at = walk->acquire.stamp,
                                .left_ms = roll(walk, 3000) - 1,
                                .position = roll(walk, 100),
                                .ticket = 1 + roll(walk, 1000)};
    if (answer.kind == HFI_GRANTED)
        answer.fence = next_block(walk, &answer.fence_is_good);
    walk->under_way = false;
    note_answer(walk, answer.kind);
    hfi_entry_answered(&walk->entry, &answer, now(walk, roll(walk, 5 * HFI_MS)));
    return true;
}

/* A grant message with the echo of an executed wait, whose answer may still be on its way. */
static bool handed(struct walk *walk, bool forged)
{
    bool good;
    if (walk->entry.remote == HFI_NOTHING || (!forged && walk->echo_count == 0))
        return false;
    struct sent echo = {walk->now - roll(walk, 2000 * HFI_MS), 0};
    int64_t fence = next_block(walk, &good);
    if (!forged) {
        echo = walk->echoes[roll(walk, walk->echo_count)];
        executed(walk, echo);
        walk->known = true;
    }
    hfi_entry_granted(&walk->entry, echo.stamp, fence, good, now(walk, roll(walk, HFI_MS)));
    return true;
}

static bool release(struct walk *walk, bool quietly)
{
    bool in_time = walk->now < walk->holder_end;
    if (walk->holder == NULL)
        return false;
    walk->holder = NULL;
    bool released = hfi_entry_release(&walk->entry, 1, quietly, now(walk, 0));
    CHECK(walk, released == in_time);
    if (released)
        return true;
    struct thread nobody;
    walk->holder = &nobody; /* for the event that the shell swallows */
    hfi_entry_lost(&walk->entry, HF_REASON_EXPIRED, now(walk, 0));
    return true;
}

static bool filled(struct walk *walk)
{
    bool unknown = chance(walk, 30);
    if (walk->holder == NULL)
        return false;
    walk->holder = NULL;
    walk->known = walk->known && unknown;
    hfi_entry_filled(&walk->entry, unknown, now(walk, 0));
    return true;
}

static bool renewed(struct walk *walk)
{
    if (walk->entry.remote != HFI_HELD || walk->renewal_count == 0)
        return false;
    int at = (int)roll(walk, walk->renewal_count);
    struct sent renewal = walk->renewals[at];
    memmove(&walk->renewals[at], &walk->renewals[at + 1],
            (size_t)(--walk->renewal_count - at) * sizeof renewal);
    executed(walk, renewal);
    hfi_entry_renewed(&walk->entry, renewal.stamp, now(walk, roll(walk, HFI_MS)));
    return true;
}

static bool fences(struct walk *walk)
{
    bool good;
    if (walk->blocks_asked == 0 || walk->entry.remote == HFI_NOTHING)
        return false;
    walk->blocks_asked--;
    int64_t first = next_block(walk, &good);
    walk->counter += 15 * HFI_FENCE_BLOCK;
    if (chance(walk, 20))
        first = good = false;
    hfi_entry_fences(&walk->entry, first, 16 * HFI_FENCE_BLOCK, good, now(walk, 0));
    return true;
}

/* The watchdog comes in time, late, or while there is nothing to see. */
static bool look(struct walk *walk)
{
    int64_t next = hfi_entry_next(&walk->entry);
    if (next != HFI_NEVER && next > walk->now && chance(walk, 70))
        walk->now = next;
    walk->now += chance(walk, 10) ? roll(walk, 3000 * HFI_MS) : 0;
    for (int looks = 0; looks < 6; looks++) {
        enum hfi_batch batch = hfi_entry_on_timer(&walk->entry, now(walk, roll(walk, HFI_MS)));
        if (batch == HFI_BATCH_RECHECK)
            send_recheck(walk);
        else if (batch == HFI_BATCH_RENEWAL)
            add(walk->renewals, &walk->renewal_count, (struct sent){walk->now, walk->entry.held.times.length});
        perform(walk);
        if (hfi_entry_next(&walk->entry) > walk->now)
            return true;
    }
    fail_msg("seed %u, step %d: it looks for ever at one point", walk->seed, walk->step);
    return true;
}

static bool come(struct walk *walk)
{
    if (hfi_list_is_empty(&walk->entry.waiters))
        return false;
    struct hfi_waiter *oldest = hfi_list_first(&walk->entry.waiters, struct hfi_waiter, link);
    if (!hfi_waiter_is_successor(oldest))
        return false;
    hfi_entry_successor_runs(&walk->entry, oldest, now(walk, 0));
    return true;
}

static bool happen(struct walk *walk, enum event event)
{
    switch (event) {
    case ARRIVE:
        return arrive(walk);
    case LEAVE:
        return leave(walk);
    case COME: /* the called thread runs, now or never */
        return come(walk);
    case ANSWER:
        return answer(walk);
    case HANDED:
    case FORGED:
        return handed(walk, event == FORGED);
    case WANTED:
        hfi_entry_remote_waiter(&walk->entry, now(walk, 0));
        return true;
    case NUDGED:
        hfi_entry_requery(&walk->entry, now(walk, 0));
        return true;
    case MISSED:
        hfi_entry_missed(&walk->entry, now(walk, 0));
        return true;
    case RELEASE:
    case QUIET_RELEASE:
        return release(walk, event == QUIET_RELEASE);
    case FILLED:
        return filled(walk);
    case RENEWED:
        return renewed(walk);
    case LOST:
        hfi_entry_lost(&walk->entry, HF_REASON_GONE, now(walk, 0));
        return true;
    case FENCES:
        return fences(walk);
    case REFUSE_ALL:
        hfi_entry_refuse_all(&walk->entry, HF_CLOSED, now(walk, 0));
        return true;
    case LOOK:
        return look(walk);
    case EVENTS:
        break;
    }
    return false;
}

static enum event any_event(struct walk *walk)
{
    static const unsigned char weights[EVENTS] = {
        [ARRIVE] = 30,  [LEAVE] = 4,  [COME] = 15,  [ANSWER] = 25,  [HANDED] = 5,        [FORGED] = 2,
        [WANTED] = 2,   [NUDGED] = 2, [MISSED] = 2, [RELEASE] = 20, [QUIET_RELEASE] = 1, [FILLED] = 1,
        [RENEWED] = 12, [LOST] = 1,   [FENCES] = 8,   [REFUSE_ALL] = 1,    [LOOK] = 12};
    int sum = 0;
    for (int i = 0; i < EVENTS; i++)
        sum += weights[i];
    int at = (int)roll(walk, sum), event = 0;
    while (at >= weights[event])
        at -= weights[event++];
    return (enum event)event;
}

static void go(unsigned seed)
{
    struct walk walk = {
        .seed = seed, .rng = seed, .now = INT64_C(100000) * HFI_MS, .counter = INT64_C(1) << 61};
    walk.rules.guard_ms = 250;
    walk.rules.native = seed % 3 != 0;
    walk.rules.rides_out = seed % 4 != 0;
    walk.rules.barges = seed % 2 != 0;
    walk.rules.batch_rechecks = seed % 5 != 0;
    walk.rules.phase = seed * HFI_MS / 3;
    hfi_entry_init(&walk.entry, &walk.rules, seed);
    hfi_step_init(&walk.decided, walk.now, 0);
    for (walk.step = 0; walk.step < STEPS; walk.step++) {
        enum event event = any_event(&walk);
        enum hfi_remote before = walk.entry.remote;
        walk.now += roll(&walk, chance(&walk, 5) ? 300 * HFI_MS : HFI_MS);
        if (happen(&walk, event))
            seen[before][event]++;
        perform(&walk);
    }
}

static void two_hundred_thousand_steps_break_no_promise(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= SEEDS; seed++)
        go(seed);
}

/* The walk has been everywhere: a case that never occurred above was not tested above. */
static void every_event_met_every_state_it_can_meet(void **state)
{
    (void)state;
    static const bool never[HFI_HELD + 1][EVENTS] = {
        [HFI_NOTHING] = {[COME] = true,
                         [ANSWER] = true,
                         [HANDED] = true,
                         [FORGED] = true,
                         [RELEASE] = true,
                         [QUIET_RELEASE] = true,
                         [FILLED] = true,
                         [RENEWED] = true,
                         [FENCES] = true},
        [HFI_ASKING] =
            {[COME] = true, [RELEASE] = true, [QUIET_RELEASE] = true, [FILLED] = true, [RENEWED] = true, [FENCES] = true},
        [HFI_QUEUED] =
            {[COME] = true, [RELEASE] = true, [QUIET_RELEASE] = true, [FILLED] = true, [RENEWED] = true, [FENCES] = true},
    };
    for (int remote = HFI_NOTHING; remote <= HFI_HELD; remote++)
        for (int event = 0; event < EVENTS; event++)
            if (!never[remote][event] && seen[remote][event] < 5)
                fail_msg("event %d came %d times in state %d", event, seen[remote][event], remote);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hundred_thousand_steps_break_no_promise),
        cmocka_unit_test(every_event_met_every_state_it_can_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
