/* SPDX-License-Identifier: MIT */
/* lane_dial.c - a lane that is down: its connection is torn down, dialled, and comes up. */
#include "base/perturb.h"
#include "pool/dial.h"
#include "pool/lane_private.h"
#include "pool/parser.h"
#include "pool/secure.h"
#include "pool/times.h"

#include <errno.h>
#include <hiredis/hiredis.h>

bool hfi_lane_is_down(const struct hfi_lane *lane)
{
    int state = atomic_load(&lane->state);
    return state == HFI_LANE_CLOSED || (state == HFI_LANE_DIALING && atomic_load(&lane->trouble) != HFI_NO_TROUBLE);
}

bool hfi_lane_is_unreachable(const struct hfi_lane *lane)
{
    int state = atomic_load(&lane->state);
    return state == HFI_LANE_CLOSED || (state == HFI_LANE_DIALING && atomic_load(&lane->trouble) == HFI_UNREACHABLE);
}

/* Over a slow link the reserved lane (renewals) is dialled first, and alone: bytes of other lanes would queue up in
 * front of its own. The others take turns then (turns.h). Returns how long another lost lane waits to see whether the
 * reserved lane is lost too; 0 if the link is fast or `lane` is the reserved one. */
static int64_t road_ns(const struct hfi_lane *lane)
{
    int64_t rtt_ns = hfi_lane_rtt_ns(lane->renewals);
    bool waits = lane->kind != HFI_RESERVED_LANE && lane->kind != HFI_SENTINEL_LANE;
    return waits && rtt_ns > HFI_SLOW_NS ? rtt_ns : 0;
}

/* A server that comes back to a thousand clients of six connections has as many handshakes of TLS to do, milliseconds
 * each: renewals first, then locks, then what can wait. */
static int64_t spread_ns(struct hfi_lane *lane)
{
    if (lane->deployment->secure == NULL || lane->kind == HFI_RESERVED_LANE)
        return 0;
    return hfi_backoff_spread_ns(&lane->backoff, &lane->peer->losses,
                                 lane->kind == HFI_LOCK_LANE ? HFI_SPREAD_LOCKS_NS : HFI_SPREAD_NS);
}

static void fail(struct hfi_lane *lane, const hf_error *error, int64_t now_ns)
{
    bool news = atomic_exchange(&lane->trouble, HFI_UNREACHABLE) == HFI_NO_TROUBLE;
    lane->dial_due_ns = hfi_backoff_next_ns(&lane->backoff, now_ns);
    hfi_peer_note_failure(lane->peer, error);
    if (lane->index == 0)
        hfi_peer_note_verdict(lane->peer);
    if (news)
        hfi_log(&lane->deployment->log, HF_LOG_WARNING, "%s; dialling again", error->message);
    hfi_lane_flush_again(lane); /* the commands that waited for this dial come back UNSENT */
}

static void fail_memory(struct hfi_lane *lane, int64_t now_ns)
{
    hf_error error;
    (void)hfi_fail(&error, HF_NOMEM, NULL, "no memory to connect to %s", lane->peer->name);
    hfi_fail_server(&error, lane->peer->name);
    fail(lane, &error, now_ns);
}

static void come_up(struct hfi_lane *lane, int64_t now_ns)
{
    struct hfi_deployment *deployment = lane->deployment;
    struct redisReader *parser = hfi_parser_create(lane->reply_most);
    if (parser == NULL) {
        fail_memory(lane, now_ns);
        return;
    }
    bool is_another = hfi_peer_note_server(lane->peer, hfi_dial_server(lane->dial));
    hfi_backoff_up(&lane->backoff, now_ns);
    lane->hung_up = false;
    hfi_lane_lock(lane);
    lane->connection = hfi_dial_take(lane->dial);
    lane->parser = parser;
    lane->unparsed = 0;
    lane->frame = (struct hfi_frame){0};
    lane->skips = false;
    atomic_store(&lane->clock_by_key, hfi_dial_server(lane->dial)->clock_by_key);
    lane->answered_ns = lane->up_ns = now_ns;
    atomic_store(&lane->nearest_rtt_ns, 0);   /* it may be another server, further away, */
    atomic_store(&lane->readers_look, false); /* too far to look for its replies, */
    atomic_store(&lane->server_cpu, 0);       /* and on another CPU */
    (void)atomic_fetch_add(&lane->times_up, 1);
    lane->primaries = hfi_peer_primaries(lane->peer) - is_another; /* so that it is asked for its role: it may be the former one */
    atomic_store(&lane->run, hfi_server_run(hfi_dial_server(lane->dial)->run_id));
    hfi_lane_set_state_locked(lane, HFI_LANE_UP);
    hfi_lane_unlock(lane);
    HFI_PERTURB("lane-up-to-told");
    bool news = atomic_exchange(&lane->trouble, HFI_NO_TROUBLE) != HFI_NO_TROUBLE || atomic_load(&lane->times_up) > 1;
    if (lane->index == 0)
        hfi_peer_note_verdict(lane->peer);
    if (news)
        hfi_log(&deployment->log, HF_LOG_INFO, "connected to %s", lane->peer->name);
    if (deployment->ops.lane_up != NULL)
        deployment->ops.lane_up(deployment->self, lane->index);
    if (is_another && lane->peer->endpoint->scheme == HFI_SENTINEL && deployment->ops.another_server != NULL)
        deployment->ops.another_server(deployment->self);
    hfi_lane_flush_again(lane); /* sends the commands that waited for the dial */
}

/* Must the reserved lane (renewals) be dialled before this one? */
static bool yields_to_renewals(const struct hfi_lane *lane)
{
    const struct hfi_lane *renewals = lane->renewals;
    int state = atomic_load(&renewals->state);
    bool comes = state == HFI_LANE_BROKEN ||
                 (state == HFI_LANE_DIALING && atomic_load(&renewals->trouble) == HFI_NO_TROUBLE);
    return comes && road_ns(lane) != 0;
}

/* When this lane may dial as far as others are concerned. HFI_NEVER: when the reserved lane's dial has ended. Lanes that were
 * lost take turns, while the server can be reached; a new lane takes none, for it comes alone. */
static int64_t turn_ns(const struct hfi_lane *lane, int64_t now_ns)
{
    int64_t road = road_ns(lane);
    if (road == 0 || atomic_load(&lane->deployment->closing_until_ns) != 0)
        return now_ns;
    if (yields_to_renewals(lane))
        return HFI_NEVER;
    if (atomic_load(&lane->times_up) == 0 || atomic_load(&lane->renewals->trouble) == HFI_UNREACHABLE)
        return now_ns;
    return hfi_turns_next_ns(&lane->peer->turns, road, now_ns);
}

static void begin_dial(struct hfi_lane *lane, int64_t now_ns)
{
    bool has_scripts = lane->kind != HFI_USER_LANE && lane->kind != HFI_SENTINEL_LANE;
    lane->dial = hfi_dial_begin(lane->peer, has_scripts ? HFI_DIAL_LANE : HFI_DIAL_USER_LANE, lane->index,
                                hfi_after_ms(now_ns, lane->deployment->settings.connect_ms));
    lane->dialled_ns = now_ns;
    if (lane->dial == NULL) {
        fail_memory(lane, now_ns);
    } else if (lane->kind != HFI_RESERVED_LANE) {
        hfi_turns_begin(&lane->peer->turns, now_ns);
        lane->peer->dialled_last = lane->index;
    }
}

static void end_dial(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    bool whole = atomic_load(&lane->state) == HFI_LANE_UP && lane->kind != HFI_USER_LANE; /* whose handshake is shorter */
    if (lane->kind != HFI_RESERVED_LANE)
        hfi_turns_end(&lane->peer->turns, whole, lane->dialled_ns, now_ns);
    hfi_dial_end(&lane->dial);
    hfi_poll_set_again(set, now_ns); /* it may be another lane's turn */
}

void hfi_lane_maintain_dialing(struct hfi_lane *lane, int64_t now_ns, struct hfi_poll_set *set)
{
    enum hfi_dial_state state = HFI_DIAL_GOING;
    if (lane->dial == NULL && now_ns >= lane->dial_due_ns && now_ns >= turn_ns(lane, now_ns))
        begin_dial(lane, now_ns);
    if (lane->dial != NULL)
        state = hfi_dial_step(lane->dial, now_ns);
    if (state == HFI_DIAL_UP)
        come_up(lane, now_ns);
    else if (state == HFI_DIAL_FAILED)
        fail(lane, hfi_dial_error(lane->dial), now_ns);
    if (state != HFI_DIAL_GOING)
        end_dial(lane, now_ns, set);
    if (lane->dial != NULL) {
        hfi_poll_set_add(set, hfi_dial_polled(lane->dial), NULL, NULL);
        hfi_poll_set_again(set, hfi_dial_again_ns(lane->dial));
    } else if (atomic_load(&lane->state) == HFI_LANE_DIALING) {
        int64_t turn = turn_ns(lane, now_ns);
        hfi_poll_set_again(set, turn > lane->dial_due_ns ? turn : lane->dial_due_ns);
    }
    hfi_lane_lock(lane); /* leave the inbox alone: a lister flushes only what it finds there */
    hfi_lane_sweep_locked(lane, now_ns);
    hfi_poll_set_again(set, lane->nearest_ns);
    bool finish = !hfi_list_is_empty(&lane->completed);
    hfi_lane_unlock(lane);
    if (finish)
        hfi_lane_run_completions(lane);
}

void hfi_lane_tear_down(struct hfi_lane *lane, int64_t now_ns)
{
    hfi_lane_lock(lane);
    bool owed = !hfi_list_is_empty(&lane->completed);
    hfi_lane_unlock(lane);
    if (owed)
        hfi_lane_run_completions(lane);
    if (atomic_exchange(&lane->writing, true))
        return;
    hf_error why;
    HFI_PERTURB("lane-to-tear-down");
    hfi_lane_lock(lane);
    bool idle = !lane->reading && !lane->completing && hfi_list_is_empty(&lane->completed);
    if (idle) {
        lane->connection.transport->close(&lane->connection);
        redisReaderFree(lane->parser);
        lane->parser = NULL;
        hfi_buffer_eat(&lane->out, hfi_buffer_size(&lane->out));
        atomic_store(&lane->blocked, false);
        atomic_store(&lane->watch, HFI_UNWATCHED);
        /* If the lane has answered since it came up, the connection broke, not the server. The reserved lane cannot
         * wait for this proof: it may have been given up because of its first command. */
        enum hfi_lost lost = lane->kind == HFI_RESERVED_LANE   ? HFI_LOST_URGENT
                             : lane->answered_ns > lane->up_ns ? HFI_LOST_SERVED
                                                               : HFI_LOST_UNUSED;
        lane->dial_due_ns = hfi_backoff_lost_ns(&lane->backoff, &lane->peer->losses, lost, now_ns) + road_ns(lane) + spread_ns(lane);
        if (lane->redirected)
            lane->dial_due_ns = now_ns + spread_ns(lane);
        lane->redirected = false;
        why = lane->why;
        /* A silent server counts as away until it answers a dial, so that no other caller has to wait to find out. */
        if (why.os_errno == ETIMEDOUT) {
            atomic_store(&lane->trouble, HFI_SILENT);
            atomic_store(&lane->again, true); /* commands that are listed already come back too */
        }
        hfi_lane_set_state_locked(lane, HFI_LANE_DIALING);
    }
    hfi_lane_unlock(lane);
    atomic_store(&lane->writing, false);
    hfi_lane_flush(lane); /* commands listed while we had the write role */
    if (idle) {
        hfi_peer_note_failure(lane->peer, &why);
        hfi_log(&lane->deployment->log, HF_LOG_WARNING, "%s", why.message);
    }
}
