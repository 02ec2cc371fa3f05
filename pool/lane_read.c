/* SPDX-License-Identifier: MIT */
/* lane_read.c - the read role: one of the waiting threads receives for all of them, matches replies to commands, and
 * passes the role on when its own wait ends. The listener reads replies that no thread waits for. */
#include "pool/lane_private.h"
#include "base/perturb.h"
#include "base/poll.h"
#include "base/rare.h"
#include "pool/listener.h"
#include "pool/replies.h"
#include "pool/script.h"
#include "pool/subscribe.h"
#include "pool/trial.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>

#define BATCH          64
#define SPINS          200           /* looks at the socket before the reader sleeps in poll() */
#define SPIN_RTT_NS    (HFI_MS / 10) /* spin only while round trips are shorter than this */
#define SPIN_MOST_NS   (HFI_MS / 10)
#define LISTENER_TURNS 16
#define LEFT_NS        (5 * HFI_MS) /* if the server is silent, send what was left to the reader after this anyway */

/* Pauses are counted in sleeps. */
static const struct hfi_trial_rules spin_rules = {.score_most = 8, .hits = 1, .pause = 64, .pause_most = 1024};
/* A yield of more than most_ns gave the CPU to another program: a miss. */
static const struct hfi_trial_rules yield_rules = {
    .most_ns = HFI_MS / 2, .score_most = 1, .hits = 64, .pause = 64, .pause_most = 1024};

struct waiter { /* on its thread's stack; in the lane's list under the lane's mutex */
    struct hfi_list link;
    struct hfi_park *park;
    bool chosen; /* this thread was given the read role */
};

/* ---- replies to commands ---- */

/* Sends a refused script again, mended, before anything that is not sent yet. */
static bool mend_script_locked(struct hfi_lane *lane, struct hfi_command *command, int64_t now_ns)
{
    struct redisReply *refusal = command->reply;
    bool by_key = false;
    if (command->script != NULL && hfi_script_lacks_key(command->script, refusal->str))
        lane->drop_after = true; /* the next connection asks for TIME again: rights change */
    if (command->until_ns <= now_ns || !hfi_command_mend(command, refusal->str, &by_key))
        return false;
    if (by_key)
        atomic_store(&lane->clock_by_key, true);
    freeReplyObject(refusal);
    command->reply = NULL;
    command->replies_seen = 0;
    command->sent = false;
    hfi_list_remove(&command->link);
    hfi_list_append(&lane->queue, &command->link);
    atomic_store(&lane->again, true);
    return true;
}

/* Keeps the last reply of a pipeline, or the error that made EXEC fail: it says more than EXEC's own. Returns whether
 * this was the last reply. */
static bool keep_reply(struct hfi_command *command, struct redisReply *reply)
{
    struct redisReply *first_error = command->reply;
    bool last = ++command->replies_seen == command->replies;
    if (!last && first_error == NULL && reply->type == REDIS_REPLY_ERROR) {
        command->reply = reply;
    } else if (!last) {
        freeReplyObject(reply);
    } else if (first_error != NULL && reply->type == REDIS_REPLY_ERROR &&
               (strncmp(reply->str, "EXECABORT", 9) == 0 || strncmp(reply->str, "ERR EXEC without", 16) == 0)) {
        freeReplyObject(reply);
    } else {
        if (first_error != NULL)
            freeReplyObject(first_error);
        command->reply = reply;
    }
    return last;
}

/* Can this be the command's next reply? In a pipeline MULTI gets OK, and the commands behind it get QUEUED; after an
 * error (no right to MULTI) any reply may come. */
static bool may_be_its(const struct hfi_command *command, const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR || command->reply != NULL)
        return true;
    if (command->replies_seen + 1 < command->replies)
        return reply->type == REDIS_REPLY_STATUS;
    return command->validate == NULL || command->validate(command, reply);
}

static void note_answer_locked(struct hfi_lane *lane, const struct hfi_command *command, int64_t now_ns)
{
    lane->in_flight_count--;
    lane->threadless -= command->awaited != HFI_AWAITED_BY_THREAD;
    lane->prompt -= command->awaited == HFI_AWAITED_PROMPTLY;
    lane->answered_ns = now_ns;
}

bool hfi_lane_pass_over_locked(struct hfi_lane *lane, int64_t now_ns)
{
    if (atomic_load(&lane->state) != HFI_LANE_UP || hfi_list_is_empty(&lane->in_flight)) {
        hfi_lane_give_up_locked(lane, HF_PROTOCOL, 0, "a reply that nobody asked for");
        return false;
    }
    struct hfi_command *command = hfi_list_first(&lane->in_flight, struct hfi_command, link);
    command->too_long = true;
    if (++command->replies_seen == command->replies) {
        note_answer_locked(lane, command, now_ns);
        hfi_lane_complete_locked(lane, command, HFI_UNANSWERED);
    }
    return true;
}

/* Takes ownership of the reply. False: the connection was given up. *sent_ns: when the command was sent, if this reply
 * completes it. */
static bool match_locked(struct hfi_lane *lane, struct redisReply *reply, int64_t now_ns, int64_t *sent_ns)
{
    if (atomic_load(&lane->state) != HFI_LANE_UP || hfi_list_is_empty(&lane->in_flight)) {
        hfi_lane_give_up_locked(lane, HF_PROTOCOL, 0, "a reply that nobody asked for");
        freeReplyObject(reply);
        return false;
    }
    struct hfi_command *command = hfi_list_first(&lane->in_flight, struct hfi_command, link);
    if (reply->type == REDIS_REPLY_ERROR && hfi_reply_meaning(reply->str, reply->len)->reconnect) {
        lane->drop_after = lane->drop_after || !command->users;
        lane->role_check_due = true;
    }
    if (!may_be_its(command, reply)) { /* the command's outcome is unknown: this may be another one's reply */
        hfi_lane_give_up_locked(lane, HF_PROTOCOL, 0, "a reply that is no answer to what was asked");
        freeReplyObject(reply);
        return false;
    }
    if (!keep_reply(command, reply))
        return true;
    note_answer_locked(lane, command, now_ns);
    *sent_ns = command->sent_ns;
    if (command->reply->type == REDIS_REPLY_ERROR && mend_script_locked(lane, command, now_ns))
        return true;
    bool unfit = hfi_lane_is_role_check(command) && !hfi_reply_is_master(command->reply);
    command->answered_ns = now_ns;
    hfi_lane_settle_locked(lane, command);
    if (unfit)
        hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, 0, "it is not a primary any more");
    else if (lane->drop_after)
        hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, 0, "the server refuses commands on it");
    return atomic_load(&lane->state) == HFI_LANE_UP;
}

/* Smooths the round-trip time as TCP does. A sample that is not fresh is only an upper bound: the reply may have lain
 * in the socket for a while. */
static void note_rtt(struct hfi_lane *lane, int64_t sample_ns, bool fresh)
{
    int64_t rtt_ns = atomic_load(&lane->rtt_ns), nearest_ns = atomic_load(&lane->nearest_rtt_ns);
    if (nearest_ns == 0 || sample_ns < nearest_ns)
        atomic_store(&lane->nearest_rtt_ns, sample_ns > 0 ? sample_ns : 1);
    else
        atomic_store(&lane->nearest_rtt_ns, nearest_ns + (sample_ns - nearest_ns) / 1024);
    if (rtt_ns == 0)
        atomic_store(&lane->rtt_ns, sample_ns > 0 ? sample_ns : 1);
    else if (fresh || sample_ns < rtt_ns)
        atomic_store(&lane->rtt_ns, rtt_ns + (sample_ns - rtt_ns) / 8);
}

static void give_up(struct hfi_lane *lane, hf_status status, int os_errno, const char *why)
{
    hfi_lane_lock(lane);
    hfi_lane_give_up_locked(lane, status, os_errno, why);
    hfi_lane_unlock(lane);
}

bool hfi_lane_match_all(struct hfi_lane *lane, bool fresh)
{
    int count;
    do {
        void *replies[BATCH];
        bool sound = true, up = true;
        for (count = 0; count < BATCH && sound; count++) {
            sound = redisReaderGetReply(lane->parser, &replies[count]) == REDIS_OK;
            if (!sound || replies[count] == NULL)
                break;
            lane->unparsed = lane->parser->len - lane->parser->pos;
        }
        int64_t now_ns = hfi_now(lane->deployment->clock), sent_ns = 0;
        HFI_PERTURB("replies-to-match");
        hfi_lane_lock(lane);
        for (int i = 0; i < count; i++) {
            if (up)
                up = match_locked(lane, replies[i], now_ns, &sent_ns);
            else
                freeReplyObject(replies[i]);
        }
        if (!sound && lane->parser->err == REDIS_ERR_OOM)
            hfi_lane_give_up_locked(lane, HF_NOMEM, ENOMEM, "no memory for its replies");
        else if (!sound)
            hfi_lane_give_up_locked(lane, HF_PROTOCOL, 0, "the server does not speak the Redis protocol");
        else if (lane->unparsed > lane->reply_most)
            hfi_lane_give_up_locked(lane, HF_PROTOCOL, 0, "a reply is longer than allowed");
        up = atomic_load(&lane->state) == HFI_LANE_UP;
        hfi_lane_unlock(lane);
        if (sent_ns != 0)
            note_rtt(lane, now_ns - sent_ns, fresh);
        if (!up)
            return false;
    } while (count == BATCH);
    return true;
}

/* ---- receiving ---- */

enum taken { GOT, EMPTY, OVER };

/* os_errno 0: the stream has ended. */
static HFI_RARE void give_up_receiving(struct hfi_lane *lane, int os_errno)
{
    struct hfi_transport_why why;
    lane->connection.transport->explain(&lane->connection, &why);
    give_up(lane, HF_UNAVAILABLE, os_errno,
            os_errno == 0 ? "the server closed it" : why.what[0] != 0 ? why.what : "receiving failed");
}

/* Needs the read role. Receives and handles what the socket has now. fresh: the socket was empty at the last look. */
static enum taken take_in(struct hfi_lane *lane, bool fresh)
{
    ssize_t got = lane->connection.transport->recv(&lane->connection, lane->in, lane->in_capacity);
    if (got < 0 && errno == EAGAIN)
        return EMPTY;
    if (got <= 0) {
        give_up_receiving(lane, got < 0 ? errno : 0);
        return OVER;
    }
    if (hfi_lane_is_sifted(lane))
        return hfi_lane_sift(lane, (size_t)got, fresh) ? GOT : OVER;
    lane->unparsed += (size_t)got;
    if (redisReaderFeed(lane->parser, lane->in, (size_t)got) != REDIS_OK) {
        give_up(lane, HF_NOMEM, ENOMEM, "no memory for its replies"); /* the only reason for feeding to fail */
        return OVER;
    }
    return hfi_lane_match_all(lane, fresh) ? GOT : OVER;
}

/* Yields the CPU. The threads that get it may be ours, each about to list or send its next command, or the server
 * itself. Another program would keep it for milliseconds; a thread asleep in poll() would be back sooner, so a long
 * yield pauses yielding. */
static void yield(struct hfi_lane *lane)
{
    int64_t before_ns = hfi_now(lane->deployment->clock);
    (void)sched_yield();
    hfi_trial_took(&lane->yields, &yield_rules, hfi_now(lane->deployment->clock) - before_ns);
}

/* Looks at the socket repeatedly instead of sleeping on it. That pays while the server answers faster than a thread
 * wakes up, no other thread waits on the lane, and the looks find replies. Between two looks this thread yields the
 * core: threads with other locks read other lanes. After some misses spinning is off for a while; then it is tried
 * again. A server that shares our core with others answers only while we sleep: every try misses, and tries become
 * rare. */
static enum taken spin(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch)
{
    int64_t rtt_ns = atomic_load(&lane->rtt_ns);
    if (rtt_ns == 0 || rtt_ns > SPIN_RTT_NS || atomic_load(&lane->waiting) > 0)
        return EMPTY;
    if (!hfi_trial_ask(&lane->spins))
        return EMPTY;
    bool yields = hfi_trial_ask(&lane->yields);
    int64_t until_ns = hfi_now(lane->deployment->clock) + SPIN_MOST_NS;
    for (int i = 1; i <= SPINS; i++) {
        enum taken taken = take_in(lane, true);
        if (taken != EMPTY) {
            hfi_trial_note(&lane->spins, &spin_rules, true);
            return taken;
        }
        if (hfi_park_is_woken(park, epoch))
            return EMPTY;
        if (yields && hfi_trial_is_on(&lane->yields))
            yield(lane);
        if (i % 16 == 0 && hfi_now(lane->deployment->clock) >= until_ns)
            break;
    }
    hfi_trial_note(&lane->spins, &spin_rules, false);
    return EMPTY;
}

/* The threads woken by the last replies are ready to run on this CPU, and each is about to list its next command. To
 * yield to them before sleeping makes one send of their commands. By then the server may have answered, which saves
 * the sleep. */
static enum taken yield_and_flush(struct hfi_lane *lane)
{
    if (atomic_load(&lane->waiting) == 0 || !hfi_lane_is_near(lane) || !hfi_trial_ask(&lane->yields))
        return EMPTY;
    yield(lane);
    hfi_lane_flush_now(lane);
    return take_in(lane, true);
}

static void sleep_on(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    struct pollfd on[2] = {{lane->connection.fd, POLLIN, 0}, {lane->wake_fd, POLLIN, 0}};
    if (atomic_load(&lane->blocked))
        on[0].events |= POLLOUT;
    hfi_park_kick(park, lane->wake_fd);
    if (!hfi_park_is_woken(park, epoch))
        (void)hfi_poll_until(on, 2, lane->deployment->clock, until_ns);
    hfi_park_kick(park, -1);
    if (on[1].revents != 0) {
        eventfd_t kicks;
        (void)eventfd_read(lane->wake_fd, &kicks);
    }
    if (on[0].revents & POLLOUT) {
        atomic_store(&lane->again, true);
        hfi_lane_flush(lane);
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

/* Gives the read role to the thread that began to wait last: its wait will last longest, so the role moves least. */
static void pass_role(struct hfi_lane *lane)
{
    bool kick = false;
    HFI_PERTURB("read-to-role-back");
    hfi_lane_lock(lane);
    lane->reading = false;
    if (atomic_load(&lane->state) != HFI_LANE_UP) {
        (void)pthread_cond_signal(&lane->quiet);
        kick = true; /* the listener needs the role to close the connection */
    } else if (lane->in_flight_count > lane->threadless && !hfi_list_is_empty(&lane->waiters)) {
        struct waiter *next = hfi_list_last(&lane->waiters, struct waiter, link);
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
    while (!hfi_park_is_woken(park, epoch) && is_worth_reading(lane) &&
           hfi_now(lane->deployment->clock) < until_ns) {
        enum taken taken = take_in(lane, fresh);
        fresh = true;
        if (taken == EMPTY)
            taken = spin(lane, park, epoch);
        if (taken == EMPTY)
            taken = yield_and_flush(lane);
        if (taken == EMPTY) {
            int64_t look_ns = atomic_load(&lane->in_flight_count) > 1 ? hfi_now(lane->deployment->clock) + LEFT_NS : until_ns;
            sleep_on(lane, park, epoch, look_ns < until_ns ? look_ns : until_ns);
            if (look_ns < until_ns && hfi_now(lane->deployment->clock) >= look_ns)
                hfi_lane_flush_now(lane);
            continue;
        }
        hfi_lane_flush_now(lane); /* first, so that the server works while we wake the threads it answered */
        hfi_lane_run_completions(lane);
    }
    pass_role(lane);
}

/* A message may make this thread ask something. */
static _Thread_local const struct hfi_lane *read_next;

bool hfi_lane_is_read_next(const struct hfi_lane *lane)
{
    return lane == read_next;
}

static bool wait_for_message(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    read_next = lane;
    bool woken = hfi_subscribers_wait(lane->subscribers, park, epoch, until_ns, &lane->in_flight_count);
    read_next = NULL;
    return woken;
}

static bool take_role_locked(struct hfi_lane *lane)
{
    bool mine = !lane->reading && atomic_load(&lane->state) == HFI_LANE_UP && lane->in_flight_count > 0;
    lane->reading = lane->reading || mine;
    return mine;
}

bool hfi_lane_wait(struct hfi_lane *lane, struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    struct waiter me = {.park = park};
    hfi_list_init(&me.link);
    for (;;) {
        if (hfi_park_is_woken(park, epoch))
            return true;
        hfi_lane_lock(lane);
        bool mine = take_role_locked(lane), by_message = lane->kind == HFI_LOCK_LANE && lane->in_flight_count == 0;
        if (!mine) {
            me.chosen = false;
            hfi_list_append(&lane->waiters, &me.link);
            (void)atomic_fetch_add(&lane->waiting, 1);
        }
        hfi_lane_unlock(lane);
        HFI_PERTURB("waiter-to-wait");
        if (!mine) {
            bool woken = by_message ? wait_for_message(lane, park, epoch, until_ns) : hfi_park_wait(park, epoch, until_ns);
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
            if (!mine && (woken || !by_message))
                return woken;
        }
        if (mine)
            read_for_all(lane, park, epoch, until_ns);
        if (!hfi_park_is_woken(park, epoch) && hfi_now(lane->deployment->clock) >= until_ns)
            return false;
    }
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
    for (int turn = 0; turn < LISTENER_TURNS && take_in(lane, fresh) == GOT; turn++)
        hfi_lane_run_completions(lane);
    hfi_lane_run_completions(lane);
    hfi_lane_flush_now(lane);
    pass_role(lane);
}
