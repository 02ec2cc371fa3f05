/* SPDX-License-Identifier: MIT */
/* lane_wait.c - the read role: one of the waiting threads receives for all of them (lane_read.c), and passes the role on when its
 * own wait ends. The listener reads replies that no thread waits for. */
#include "pool/lane_private.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/poll.h"
#include "pool/listener.h"
#include "pool/subscribe.h"
#include "pool/times.h"
#include "pool/trial.h"

#include <sched.h>

#define LISTENER_TURNS 16
#define TIMED          16 /* of so many sleeps of a thread one is measured */

/* Pauses are counted in sleeps. */
static const struct hfi_trial_rules look_rules = {.score_most = 8, .hits = 1, .pause = 64, .pause_most = 1024};
/* A yield that gave the CPU to another program is a miss. */
static const struct hfi_trial_rules yield_rules = {.score_most = 1, .hits = 64, .pause = 64, .pause_most = 1024};

/* Who sleeps stays for long where the kernel has put it; who yields is moved sooner. Hence patience: behind a pause the 64th long one in
 * a row begins the next one. In the long run more than one does beside four that find a reply. Pauses are in sleeps of a lone reader. */
static const struct hfi_trial_rules lone_rules = {
    .score_most = 256, .miss_takes = 4, .hits = 64, .pause = 256, .pause_most = 16384, .score_again = 256};

struct waiter { /* on its thread's stack; in the lane's list under the lane's mutex */
    struct hfi_list link;
    struct hfi_park *park;
    bool chosen; /* this thread was given the read role */
    _Atomic(bool) looks; /* it has the CPU soon, without being woken */
};

/* ---- looking, and sleeping ---- */

int64_t hfi_lane_own_ns(const struct hfi_lane *lane, int64_t now_ns)
{
    return hfi_costs_own_ns(&lane->deployment->costs, hfi_followers_count(&lane->deployment->followers, now_ns));
}

static struct hfi_trip trip_of(const struct hfi_lane *lane, int64_t now_ns)
{
    return (struct hfi_trip){.nearest_ns = atomic_load(&lane->nearest_rtt_ns),
                             .rtt_ns = atomic_load(&lane->rtt_ns),
                             .own_ns = hfi_lane_own_ns(lane, now_ns)};
}

/* Was the yield from before_ns till now_ns long? own_ns: hfi_lane_own_ns before it. Our own threads that had the CPU may follow
 * since, or follow no more. */
static bool was_long(const struct hfi_lane *lane, int64_t before_ns, int64_t now_ns, int64_t own_ns)
{
    struct hfi_trip trip = trip_of(lane, now_ns);
    if (trip.own_ns < own_ns)
        trip.own_ns = own_ns;
    return hfi_costs_is_long(&lane->deployment->costs, now_ns - before_ns, &trip);
}

/* Yields the CPU. The threads that get it may be ours, each about to list or send its next command, or the server
 * itself. Another program would keep it for milliseconds; a thread asleep in poll() would be back sooner, so a long
 * yield pauses yielding. Of the yields of a look the first counts as what one costs: of a look in vain there are hundreds.
 * Returns the time. */
static int64_t yield(struct hfi_lane *lane, bool is_first)
{
    struct hfi_costs *costs = &lane->deployment->costs;
    int64_t before_ns = hfi_now(lane->deployment->clock), own_ns = hfi_lane_own_ns(lane, before_ns);
    (void)sched_yield();
    int64_t now_ns = hfi_now(lane->deployment->clock);
    bool kept_cpu = atomic_load_explicit(&lane->keeps_cpu, memory_order_relaxed); /* else it was said of an earlier one */
    bool others_gave = atomic_exchange_explicit(&lane->gave_cpu, false, memory_order_relaxed) && kept_cpu;
    bool is_long = was_long(lane, before_ns, now_ns, own_ns);
    if (is_first && !is_long)
        hfi_costs_note_yield(costs, now_ns - before_ns);
    is_long = is_long || others_gave;
    hfi_trial_note(&lane->yields, &yield_rules, !is_long);
    atomic_store_explicit(&lane->keeps_cpu, hfi_trial_is_on(&lane->yields), memory_order_relaxed);
    return now_ns;
}

/* Nobody tests the inbox soon from here on: who lists, sends. */
static void leave_inbox(struct hfi_lane *lane)
{
    atomic_store(&lane->looks_again, false);
    hfi_lane_flush_now(lane); /* behind the store: what was left before it */
}

/* Other programs want the CPU. A reader who is alone on its lane yields once before it sleeps, unless too many of these yields are long.
 * Where one finds the reply, the server probably is on this CPU, too. On different ones each reply would be a wake-up across them, which
 * costs several times as much (`bench curves threads`). Other threads would have to wait for the CPU with their reader. */
static enum hfi_taken yield_once(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t own_ns)
{
    if (atomic_load(&lane->threads) > 1 || !hfi_lane_is_near(lane) || !hfi_trial_ask(&lane->lone_yields, 1))
        return HFI_EMPTY;
    leave_inbox(lane); /* who lists meanwhile sends: it may last */
    int64_t before_ns = hfi_now(lane->deployment->clock);
    if (hfi_park_is_woken(park, epoch))
        return HFI_EMPTY;
    (void)sched_yield();
    bool is_long = was_long(lane, before_ns, hfi_now(lane->deployment->clock), own_ns);
    atomic_store(&lane->looks_again, true);
    enum hfi_taken taken = hfi_lane_take_in(lane, !is_long);
    if (taken == HFI_GOT || is_long) /* else nobody wanted this CPU, and the server is elsewhere: a short yield costs little */
        hfi_trial_note(&lane->lone_yields, &lone_rules, !is_long);
    return taken;
}

/* The socket was found empty. Looks at it repeatedly instead of sleeping on it. That pays while a trip is a few wake-ups long
 * at most, and the looks find replies. Between two looks this thread yields the core: to the server, to threads that read
 * other lanes, and to those that are about to list their next commands. After some misses looking is off for a while; then it
 * is tried again. A server that shares our core with other programs answers only while we sleep: every try misses, and tries
 * become rare. A pause is shorter the more threads sleep through it, unless the server is silent. */
static enum hfi_taken look_for_reply(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    int64_t began_ns = hfi_now(lane->deployment->clock), now_ns = began_ns;
    struct hfi_trip trip = trip_of(lane, began_ns);
    int sleeps = atomic_load_explicit(&lane->is_silent, memory_order_relaxed) ? 1 : hfi_costs_sleeps(trip.own_ns);
    bool yields = hfi_trial_ask(&lane->yields, sleeps); /* else other programs want the CPU, and our looks keep the server from it */
    bool pays = hfi_costs_looks(&lane->deployment->costs, &trip) && yields;
    atomic_store_explicit(&lane->readers_look, pays, memory_order_relaxed);
    if (!yields)
        return yield_once(lane, park, epoch, trip.own_ns);
    if (!pays || !hfi_trial_ask(&lane->looks, sleeps))
        return HFI_EMPTY;
    for (int i = 0; now_ns < until_ns && !hfi_costs_look_is_over(&trip, now_ns - began_ns, i); i++) {
        if (hfi_park_is_woken(park, epoch))
            return HFI_EMPTY;
        if (!hfi_trial_is_on(&lane->yields))
            return HFI_EMPTY; /* that says nothing of looks */
        now_ns = yield(lane, i == 0);
        hfi_lane_flush_now(lane); /* what they left to us */
        enum hfi_taken taken = hfi_lane_take_in(lane, true);
        if (taken != HFI_EMPTY) {
            hfi_lane_note_found(lane, i == 0 ? HFI_FOUND_AT_FIRST : HFI_FOUND_LATER);
            hfi_trial_note(&lane->looks, &look_rules, true);
            return taken;
        }
    }
    if (now_ns < until_ns && hfi_trial_is_on(&lane->yields))
        hfi_trial_note(&lane->looks, &look_rules, false);
    return HFI_EMPTY;
}

/* The threads woken by the last replies are ready to run on this CPU, and each is about to list its next command. To
 * yield to them before sleeping makes one send of their commands. By then the server may have answered, which saves
 * the sleep. */
static enum hfi_taken yield_and_flush(struct hfi_lane *lane)
{
    if (atomic_load(&lane->waiting) == 0 || !hfi_lane_is_near(lane) || !hfi_trial_is_on(&lane->yields))
        return HFI_EMPTY;
    (void)yield(lane, true);
    hfi_lane_flush_now(lane);
    return hfi_lane_take_in(lane, true);
}

static void sleep_on(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    struct pollfd on[2] = {{lane->connection.fd, POLLIN, 0}, {lane->wake_fd, POLLIN, 0}};
    if (hfi_lane_waits_for_room(lane))
        on[0].events |= POLLOUT;
    hfi_park_kick(park, lane->wake_fd);
    if (!hfi_park_is_woken(park, epoch))
        (void)hfi_poll_until(on, 2, lane->deployment->clock, until_ns);
    hfi_park_kick(park, -1);
    if (on[1].revents != 0) {
        hfi_event_clear(lane->wake_fd);
    }
    if (on[0].revents & POLLOUT) {
        atomic_store(&lane->again, true);
        hfi_lane_flush_now(lane);
    }
}

/* ---- the role ---- */

/* Work is left that the listener will not look at unless it is kicked. While we had the read role, waiting for
 * POLLOUT on a full socket was our task, so the listener does not poll for it. */
static bool is_left_alone_locked(const struct hfi_lane *lane)
{
    int watch = atomic_load(&lane->watch);
    if (atomic_load(&lane->blocked))
        return watch != HFI_LOOKS_SOON;
    return lane->in_flight_count > 0 && hfi_lane_is_overlooked_locked(lane);
}

/* The thread that began to wait last: its wait will last longest, so the role moves least. NULL: nobody is to read. */
static struct waiter *heir_locked(const struct hfi_lane *lane)
{
    if (atomic_load(&lane->state) != HFI_LANE_UP || lane->in_flight_count <= lane->threadless || hfi_list_is_empty(&lane->waiters))
        return NULL;
    return hfi_list_last(&lane->waiters, struct waiter, link);
}

/* Beside a server with a CPU of its own it pays to leave few a group to complete, too, for they look as a rule. Elsewhere each of few sends
 * its own. */
static bool leaves_inbox_to_heir(const struct hfi_lane *lane)
{
    int followers = atomic_load(&lane->waiting);
    if (hfi_costs_is_crowd(followers))
        return hfi_pace_looks(&lane->deployment->pace);
    return followers > 0 && hfi_costs_has_own_cpu(hfi_lane_server_cpu(lane));
}

/* What is listed meanwhile may be left to the next reader, if that thread looks. Else it may have to be woken first. */
static void pass_role(struct hfi_lane *lane)
{
    bool kick = false, leaves = leaves_inbox_to_heir(lane);
    if (leaves)
        hfi_lane_flush_now(lane);
    else
        leave_inbox(lane);
    HFI_PERTURB("read-to-role-back");
    hfi_lane_lock(lane);
    struct waiter *next = heir_locked(lane);
    if (leaves && (next == NULL || !atomic_load(&next->looks))) {
        hfi_lane_unlock(lane);
        leave_inbox(lane); /* while we have the role: else nobody may read the replies */
        hfi_lane_lock(lane);
        next = heir_locked(lane);
    }
    lane->reading = false;
    if (atomic_load(&lane->state) != HFI_LANE_UP) {
        (void)pthread_cond_signal(&lane->quiet);
        kick = true; /* the listener needs the role to close the connection */
    } else if (next != NULL) {
        hfi_list_remove(&next->link);
        (void)atomic_fetch_sub(&lane->waiting, 1);
        next->chosen = true;
        lane->reading = true;
        hfi_park_wake(next->park);
    } else if (is_left_alone_locked(lane)) {
        atomic_store(&lane->watch, HFI_LOOKS_SOON);
        kick = true;
    }
    hfi_lane_unlock(lane);
    if (kick)
        hfi_listener_kick(lane->listener);
}

/* Reads without the mutex: on a stale answer the reader calls pass_role(), which looks again under the mutex. */
static bool is_worth_reading(const struct hfi_lane *lane)
{
    return atomic_load(&lane->state) == HFI_LANE_UP && atomic_load(&lane->in_flight_count) > 0;
}

/* Needs the read role. Reads until this thread is woken, its time is up, or nothing is left to read; then passes the
 * role on. */
static void read_for_all(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    bool fresh = false;
    enum hfi_found found = HFI_FOUND_BEFORE;
    atomic_store(&lane->looks_again, true);
    int64_t left_ns = hfi_costs_left_ns(atomic_load(&lane->rtt_ns));
    while (!hfi_park_is_woken(park, epoch) && is_worth_reading(lane) &&
           hfi_now(lane->deployment->clock) < until_ns) {
        enum hfi_taken taken = hfi_lane_take_in(lane, fresh);
        fresh = true;
        if (taken == HFI_GOT)
            hfi_lane_note_found(lane, found);
        if (taken == HFI_EMPTY)
            taken = look_for_reply(lane, park, epoch, until_ns);
        if (taken == HFI_EMPTY && !hfi_park_is_woken(park, epoch))
            taken = yield_and_flush(lane);
        if (taken == HFI_EMPTY) {
            atomic_store_explicit(&lane->is_silent, true, memory_order_relaxed);
            hfi_lane_note_found(lane, HFI_FOUND_LATER);
            bool is_timed = left_ns > 0 && atomic_load(&lane->in_flight_count) > 1 && hfi_lane_is_near(lane); /* else leave_inbox */
            int64_t look_ns = is_timed ? hfi_now(lane->deployment->clock) + left_ns : until_ns;
            if (is_timed)
                hfi_lane_flush_now(lane);
            else
                leave_inbox(lane);
            sleep_on(lane, park, epoch, look_ns < until_ns ? look_ns : until_ns);
            if (look_ns < until_ns && hfi_now(lane->deployment->clock) >= look_ns) {
                hfi_lane_flush_now(lane);
                left_ns = hfi_costs_left_again_ns(left_ns);
            }
            atomic_store(&lane->looks_again, true);
            found = HFI_FOUND_BEFORE;
            continue;
        }
        left_ns = hfi_costs_left_ns(atomic_load(&lane->rtt_ns));
        hfi_lane_flush_now(lane); /* first, so that the server works while we wake the threads it answered */
        hfi_lane_run_completions(lane);
        found = lane->goes_on ? HFI_FOUND_BEFORE : HFI_FOUND_AT_ONCE;
    }
    pass_role(lane);
}

/* A message may make this thread ask something. */
static _Thread_local const struct hfi_lane *read_next;

bool hfi_lane_is_read_next(const struct hfi_lane *lane)
{
    return lane == read_next;
}

static bool wait_for_message(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns, int *in_vain)
{
    read_next = lane;
    bool woken = hfi_subscribers_wait(lane->subscribers, park, epoch, until_ns, &lane->in_flight_count, in_vain);
    read_next = NULL;
    return woken;
}

static bool take_role_locked(struct hfi_lane *lane)
{
    bool mine = !lane->reading && atomic_load(&lane->state) == HFI_LANE_UP && lane->in_flight_count > 0;
    lane->reading = lane->reading || mine;
    return mine;
}

static _Thread_local struct hfi_trial wake_up_looks; /* of this thread */

/* A follower, whose reply another thread reads, looks for its wake-up as that one looks at the socket: who does not sleep need not be
 * woken. While other programs want the CPU, each yield would give it away. began_ns: now. */
static bool look_for_wake_up(struct hfi_lane *lane, struct waiter *me, uint32_t epoch, int64_t began_ns, int64_t until_ns)
{
    struct hfi_costs *costs = &lane->deployment->costs;
    struct hfi_trip trip = trip_of(lane, began_ns);
    if (!hfi_lane_keeps_cpu(lane) || !hfi_costs_looks(costs, &trip) || !hfi_trial_ask(&wake_up_looks, hfi_costs_sleeps(trip.own_ns)))
        return false;
    int64_t now_ns = began_ns, before_ns = began_ns;
    bool is_long = false, found = hfi_park_is_woken(me->park, epoch);
    int yields = 0;
    atomic_store(&me->looks, true);
    while (!found && !is_long && now_ns < until_ns && !hfi_costs_look_is_over(&trip, now_ns - began_ns, yields)) {
        (void)sched_yield();
        yields++;
        before_ns = now_ns;
        now_ns = hfi_now(lane->deployment->clock);
        found = hfi_park_is_woken(me->park, epoch);
        is_long = was_long(lane, before_ns, now_ns, trip.own_ns);
    }
    atomic_store(&me->looks, false);
    if (is_long && atomic_load_explicit(&lane->keeps_cpu, memory_order_relaxed)) /* else the reader knows already */
        atomic_store_explicit(&lane->gave_cpu, true, memory_order_relaxed);
    if (yields > 0 && (found || now_ns < until_ns))
        hfi_trial_note(&wake_up_looks, &look_rules, found && !is_long);
    return found;
}

static bool sleep_till_woken(struct hfi_lane *lane, struct waiter *me, uint32_t epoch, int64_t until_ns)
{
    static _Thread_local unsigned sleeps;
    bool timed = sleeps++ % TIMED == 0;
    int64_t used_ns = timed ? hfi_cpu_ns() : 0;
    bool woken = hfi_park_wait(me->park, epoch, until_ns);
    if (timed)
        hfi_costs_note_sleep(&lane->deployment->costs, hfi_cpu_ns() - used_ns);
    return woken;
}

/* unsent: nothing was in flight, but something was listed. Who gathers it may have lost the CPU, so the thread sends it before it sleeps,
 * and comes back: it may be the one who reads. */
static bool follow(struct hfi_lane *lane, struct waiter *me, uint32_t epoch, int64_t until_ns, bool unsent)
{
    struct hfi_deployment *deployment = lane->deployment;
    int64_t now_ns = hfi_now(deployment->clock);
    uint32_t joined = hfi_followers_join(&deployment->followers, now_ns);
    int followers = hfi_followers_count(&deployment->followers, now_ns);
    hfi_pace_note(&deployment->pace, now_ns, followers);
    bool looks = hfi_deployment_follower_looks(deployment, followers);
    if (!looks)
        (void)hfi_trial_ask(&wake_up_looks, 1); /* pauses pass in these sleeps, too */
    bool woken = looks && look_for_wake_up(lane, me, epoch, now_ns, until_ns);
    if (!woken && unsent)
        hfi_lane_flush_now(lane);
    if (!woken && !(unsent && (atomic_load(&lane->in_flight_count) > 0 || hfi_inbox_is_empty(&lane->inbox))))
        woken = sleep_till_woken(lane, me, epoch, until_ns);
    hfi_followers_leave(&deployment->followers, joined);
    return woken;
}

static bool wait(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    struct waiter me = {.park = park};
    int in_vain = 0;
    hfi_list_init(&me.link);
    for (;;) {
        if (hfi_park_is_woken(park, epoch))
            return true;
        hfi_lane_lock(lane);
        bool mine = take_role_locked(lane), idle = lane->in_flight_count == 0, unsent = idle && !hfi_inbox_is_empty(&lane->inbox);
        bool by_message = idle && !unsent && lane->kind == HFI_LOCK_LANE;
        if (!mine) {
            me.chosen = false;
            hfi_list_append(&lane->waiters, &me.link);
            (void)atomic_fetch_add(&lane->waiting, 1);
        }
        hfi_lane_unlock(lane);
        HFI_PERTURB("waiter-to-wait");
        if (!mine) {
            bool woken = by_message ? wait_for_message(lane, park, epoch, until_ns, &in_vain)
                                    : follow(lane, &me, epoch, until_ns, unsent);
            hfi_lane_lock(lane);
            mine = me.chosen;
            if (mine) {
                epoch = hfi_park_next(epoch); /* the wake that brought the role was not the caller's */
            } else {
                hfi_list_remove(&me.link);
                (void)atomic_fetch_sub(&lane->waiting, 1);
                mine = by_message && take_role_locked(lane); /* the listener was not told of what was asked */
            }
            hfi_lane_unlock(lane);
            if (!mine && woken)
                return true;
        }
        if (mine)
            read_for_all(lane, park, epoch, until_ns);
        if (!hfi_park_is_woken(park, epoch) && hfi_now(lane->deployment->clock) >= until_ns)
            return false;
    }
}

bool hfi_lane_wait(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    bool is_chosen = lane->kind < HFI_CROWDS, has_others = atomic_fetch_add(&lane->threads, 1) > 0;
    if (is_chosen && has_others)
        hfi_pace_count(&lane->deployment->pace);
    if (is_chosen)
        (void)atomic_fetch_add(&lane->deployment->crowds[lane->kind].waiting, 1);
    bool woken = wait(lane, park, epoch, until_ns);
    if (is_chosen)
        (void)atomic_fetch_sub(&lane->deployment->crowds[lane->kind].waiting, 1);
    (void)atomic_fetch_sub(&lane->threads, 1);
    return woken;
}

void hfi_lane_read_some(struct hfi_lane *lane)
{
    hfi_lane_lock(lane);
    bool mine = !lane->reading && atomic_load(&lane->state) == HFI_LANE_UP;
    if (mine)
        lane->reading = true;
    hfi_lane_unlock(lane);
    if (!mine)
        return;
    bool fresh = lane->kind == HFI_RESERVED_LANE; /* the listener polls for its replies */
    for (int turn = 0; turn < LISTENER_TURNS && hfi_lane_take_in(lane, fresh) == HFI_GOT; turn++)
        hfi_lane_run_completions(lane);
    hfi_lane_run_completions(lane);
    hfi_lane_flush_now(lane);
    pass_role(lane);
}
