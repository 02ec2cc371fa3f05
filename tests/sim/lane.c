/* SPDX-License-Identifier: MIT */
/*
 * lane.c - lanes as core sees them (pool/lane.h), over virtual connections, with the promises of the real ones: a
 * command's `done` runs exactly once, never inside hfi_lane_list, and after the last reply or the end of its
 * connection.
 */
#include "tests/sim/pool_inside.h"
#include "base/perturb.h"
#include "pool/replies.h"
#include "tests/sim/history.h"
#include "tests/sim/hosts.h"
#include "tests/sim/stops.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIT_NS (1000 * HFI_MS)
#define MET_NS (100 * HFI_MS)

static void dial(void *what, int64_t number);

static int64_t now_here(void)
{
    return hfi_now(&hfi_boottime);
}

/* ---- outcomes ---- */

void sim_lane_settle(struct hfi_lane *lane, struct hfi_command *command, enum hfi_outcome outcome)
{
    hfi_list_remove(&command->link);
    command->outcome = outcome;
    if (outcome != HFI_ANSWERED && command->reply != NULL) {
        freeReplyObject(command->reply);
        command->reply = NULL;
    }
    hfi_list_append(&lane->finished, &command->link);
    if (outcome != HFI_ANSWERED && (lane->pool->closing || lane->pool->hurried))
        lane->pool->closed_short = true;
}

void sim_lane_finish(struct hfi_lane *lane)
{
    struct hfi_pool *pool = lane->pool;
    if (lane->finishing)
        return;
    lane->finishing = true;
    while (!hfi_list_is_empty(&lane->finished)) {
        struct hfi_command *command = hfi_container_of(lane->finished.next, struct hfi_command, link);
        hfi_list_remove(&command->link);
        command->done(command);
        hfi_command_unref(command);
    }
    lane->finishing = false;
    if (pool->closing)
        hfi_park_wake(&pool->quiet);
}

bool sim_lane_is_busy(const struct hfi_lane *lane)
{
    return lane->finishing || (lane->wire != NULL && lane->wire->receiving);
}

/* Repeats the listener's event later, while another thread has the write or read role of the connection. */
static bool put_off(struct hfi_lane *lane, sim_event_fn *run, int64_t number)
{
    bool busy = sim_lane_is_busy(lane);
    if (busy)
        sim_at(sim.now + HFI_MS / 10, sim.self, run, lane, number);
    return busy;
}

static void refuse_queue(struct hfi_lane *lane)
{
    for (struct hfi_list *at = lane->queue.next, *next; at != &lane->queue; at = next) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        next = at->next;
        if (!lane->silent || !command->patient)
            sim_lane_settle(lane, command, HFI_UNSENT);
    }
}

static void dial_later(struct hfi_lane *lane, int64_t due)
{
    lane->dial_number++;
    sim_at(sim_when(sim.self, due), sim.self, dial, lane, lane->dial_number);
}

/* Everything in flight is unanswered from here on. */
void sim_lane_give_up(struct hfi_lane *lane, bool silent, const char *why)
{
    struct hfi_pool *pool = lane->pool;
    if (lane->state != UP)
        return;
    enum hfi_lost lost = lane->kind == HFI_RESERVED_LANE   ? HFI_LOST_URGENT
                         : lane->answered_ns > lane->up_ns ? HFI_LOST_SERVED
                                                           : HFI_LOST_UNUSED;
    int64_t due = hfi_backoff_lost_ns(&lane->backoff, &pool->losses, lost, now_here());
    lane->failed = lane->silent = silent;
    lane->cuts += !silent;
    sim_say("lane %d is given up: %s", lane->index, why);
    (void)hfi_fail(&pool->why, HF_UNAVAILABLE, "", "the connection is given up: %s", why);
    lane->state = DIALING;
    lane->drop_after = false;
    sim_wire_close(lane->wire);
    sim_lane_drop_held(lane);
    while (!hfi_list_is_empty(&lane->flight))
        sim_lane_settle(lane, hfi_container_of(lane->flight.next, struct hfi_command, link), HFI_UNANSWERED);
    if (silent)
        refuse_queue(lane);
    if (!pool->closing)
        dial_later(lane, due);
}

void sim_lane_redirect(struct hfi_lane *lane, const char *why)
{
    if (lane->state == UP)
        sim_lane_give_up(lane, false, why);
    else if (lane->state == DIALING && lane->wire != NULL)
        sim_wire_close(lane->wire);
    if (lane->state == DIALING)
        dial_later(lane, now_here());
    sim_lane_finish(lane);
}

/* ---- deadlines ---- */

static void look(void *what, int64_t number);

static void plan(struct hfi_lane *lane)
{
    int64_t nearest = HFI_NEVER;
    const struct hfi_list *lists[] = {&lane->queue, &lane->flight};
    for (int i = 0; i < 2; i++) {
        for (const struct hfi_list *at = lists[i]->next; at != lists[i]; at = at->next) {
            int64_t until = hfi_container_of(at, struct hfi_command, link)->until_ns;
            nearest = until < nearest ? until : nearest;
        }
    }
    if (nearest == HFI_NEVER || (lane->look_at != 0 && lane->look_at <= nearest))
        return;
    lane->look_at = nearest;
    sim_at(sim_when(sim.self, nearest) + sim_between(0, HFI_MS), sim.self, look, lane, ++lane->look_number);
}

void sim_lane_hurry(struct hfi_lane *lane, int64_t until_ns)
{
    struct hfi_list *lists[] = {&lane->queue, &lane->flight};
    for (int i = 0; i < 2; i++)
        for (struct hfi_list *at = lists[i]->next; at != lists[i]; at = at->next) {
            struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
            command->until_ns = command->until_ns < until_ns ? command->until_ns : until_ns;
        }
    plan(lane);
}

static void look(void *what, int64_t number)
{
    struct hfi_lane *lane = what;
    struct hfi_list *next;
    if (lane->look_number != number)
        return;
    lane->look_at = 0;
    for (struct hfi_list *at = lane->queue.next; at != &lane->queue; at = next) {
        struct hfi_command *command = hfi_container_of(at, struct hfi_command, link);
        next = at->next;
        if (command->until_ns <= now_here())
            sim_lane_settle(lane, command, HFI_UNSENT);
    }
    for (struct hfi_list *at = lane->flight.next; at != &lane->flight; at = at->next) {
        if (hfi_container_of(at, struct hfi_command, link)->until_ns <= now_here()) {
            sim_lane_give_up(lane, true, "a command got no answer in time");
            break;
        }
    }
    sim_lane_finish(lane);
    plan(lane);
}

/* ---- replies ---- */

static bool mend_script(struct hfi_lane *lane, struct hfi_command *command)
{
    if (command->until_ns <= now_here() || !hfi_command_mend(command, command->reply->str, &lane->clock_by_key))
        return false;
    freeReplyObject(command->reply);
    command->reply = NULL;
    command->replies_seen = 0;
    hfi_list_remove(&command->link);
    hfi_list_append(&lane->queue, &command->link);
    lane->again = true;
    return true;
}

static bool keep_reply(struct hfi_command *command, struct redisReply *reply)
{
    bool last = ++command->replies_seen == command->replies;
    bool first_error = !last && command->reply == NULL && reply->type == REDIS_REPLY_ERROR;
    bool aborted = last && command->reply != NULL && reply->type == REDIS_REPLY_ERROR &&
                   strncmp(reply->str, "EXECABORT", 9) == 0;
    if (first_error || (last && !aborted)) {
        if (command->reply != NULL)
            freeReplyObject(command->reply);
        command->reply = reply;
    } else {
        freeReplyObject(reply);
    }
    return last;
}

static void role_checked(struct hfi_command *command)
{
    (void)command;
}

static void match(struct hfi_lane *lane, struct redisReply *reply)
{
    if (lane->state != UP || hfi_list_is_empty(&lane->flight)) {
        freeReplyObject(reply);
        sim_lane_give_up(lane, false, "a reply that nobody asked for");
        return;
    }
    struct hfi_command *command = hfi_container_of(lane->flight.next, struct hfi_command, link);
    if (reply->type == REDIS_REPLY_ERROR && hfi_reply_meaning(reply->str, reply->len)->reconnect)
        lane->drop_after = true;
    if (!keep_reply(command, reply))
        return;
    int64_t now = now_here(), rtt = now - command->sent_ns;
    lane->answered_ns = now;
    lane->rtt_ns = lane->rtt_ns == 0 ? rtt : lane->rtt_ns + (rtt - lane->rtt_ns) / 8;
    if (command->reply->type == REDIS_REPLY_ERROR && mend_script(lane, command))
        return;
    command->answered_ns = now;
    command->connection = lane->times_up;
    command->run = hfi_server_run(lane->run_id);
    bool unfit = command->done == role_checked && !hfi_reply_is_master(command->reply);
    sim_lane_take_answer(lane, command);
    if (unfit)
        sim_lane_give_up(lane, false, "it is not a primary any more");
    if (lane->drop_after)
        sim_lane_give_up(lane, false, "the server refuses commands on it");
}

/* It has asked that server for its leases by then, and heard what has become of them. */
static void has_met(void *what, int64_t since)
{
    struct hfi_lane *lane = what;
    int64_t due = since + MET_NS + sim_stopped(sim.self, since);
    if (lane->state != UP || lane->up_at != since)
        return;
    if (due > sim.now)
        sim_at(due, sim.self, has_met, lane, since);
    else
        sim_watch_has_met(sim.self, lane->wire->server->host->reign);
}

static void note_server(struct hfi_lane *lane)
{
    struct hfi_pool *pool = lane->pool;
    bool is_another = pool->is_redirected || (pool->met != 0 && pool->met != lane->wire->epoch);
    int reign = lane->wire->server->host->reign;
    if (is_another || pool->met == 0) /* it asks for all its leases; not where it comes back to one that has followed meanwhile */
        pool->asked_reign = reign;
    pool->is_redirected = false;
    pool->met = lane->wire->epoch;
    lane->up_at = sim.now;
    sim_watch_moves(sim.self, reign);
    if (lane->kind == HFI_RESERVED_LANE && pool->asked_reign == reign)
        sim_at(sim.now + MET_NS, sim.self, has_met, lane, sim.now);
    pool->ops.lane_up(pool->self, lane->index);
    if (is_another)
        pool->ops.another_server(pool->self);
}

static void come_up(struct hfi_lane *lane)
{
    struct hfi_pool *pool = lane->pool;
    lane->state = UP;
    lane->times_up++;
    (void)snprintf(lane->run_id, sizeof lane->run_id, "%040d", lane->wire->epoch);
    lane->failed = lane->silent = false;
    lane->dial_number++; /* its timeout is void */
    lane->answered_ns = lane->up_ns = now_here();
    hfi_backoff_up(&lane->backoff, now_here());
    if (lane->index == 0) {
        pool->verdicts++;
        hfi_park_wake(&pool->quiet);
    }
    sim_say("lane %d is up", lane->index);
    if (pool->topology != NULL)
        note_server(lane);
    else
        pool->ops.lane_up(pool->self, lane->index);
    lane->again = true;
    hfi_lane_flush(lane);
}

static void fail_dial(struct hfi_lane *lane, const char *why)
{
    struct hfi_pool *pool = lane->pool;
    if (pool->why.status != HF_DENIED)
        (void)hfi_fail(&pool->why, HF_UNAVAILABLE, "", "cannot connect: %s", why);
    lane->failed = true;
    lane->silent = false;
    if (lane->wire != NULL)
        sim_wire_close(lane->wire);
    if (lane->index == 0) {
        pool->verdicts++;
        hfi_park_wake(&pool->quiet);
    }
    dial_later(lane, hfi_backoff_next_ns(&lane->backoff, now_here()));
    if (pool->topology != NULL)
        sim_topology_doubt(pool->topology);
    refuse_queue(lane);
    sim_lane_finish(lane);
}

static void send_floor(struct hfi_lane *lane)
{
    sim_wire_up(lane->wire, sim_packet_new(SIM_BYTES, lane->floor->bytes, lane->floor->size));
}

static void handshake_floored(struct hfi_lane *lane, struct redisReply *reply)
{
    struct hfi_pool *pool = lane->pool;
    if (reply->type == REDIS_REPLY_ERROR && hfi_command_mend(lane->floor, reply->str, &lane->clock_by_key)) {
        freeReplyObject(reply);
        send_floor(lane);
        return;
    }
    struct hfi_server server = {.version = 70015, .uptime_s = (sim.now - lane->wire->server->started) / 1000000000};
    hf_error error = {.status = HF_OK};
    (void)snprintf(server.run_id, sizeof server.run_id, "%040d", lane->wire->epoch);
    pool->server = server;
    hf_status status = pool->ops.handshake_floored(pool->self, lane->index, lane->greeting_sent, reply, &error);
    freeReplyObject(reply);
    if (!lane->wire->client_open)
        return; /* it broke meanwhile */
    if (status == HF_OK)
        come_up(lane);
    else
        fail_dial(lane, error.message);
}

static void received(void *client, struct sim_packet *packet)
{
    struct hfi_lane *lane = client;
    void *reply;
    if (redisReaderFeed(lane->parser, packet->bytes, packet->size) != REDIS_OK)
        abort();
    while (redisReaderGetReply(lane->parser, &reply) == REDIS_OK && reply != NULL) {
        if (lane->state == DIALING && lane->loads_left > 0) {
            lane->loads_left--;
            freeReplyObject(reply);
        } else if (lane->state == DIALING) {
            handshake_floored(lane, reply);
        } else {
            match(lane, reply);
        }
        if (!lane->wire->client_open) /* given up: what else it said is of no interest */
            break;
    }
    sim_lane_finish(lane);
    if (lane->again)
        hfi_lane_flush(lane);
    if (lane->pool->closing)
        hfi_park_wake(&lane->pool->quiet);
}

static void broken(void *client)
{
    struct hfi_lane *lane = client;
    if (lane->state == UP) {
        sim_lane_give_up(lane, false, "the server closed it");
        sim_lane_finish(lane);
    } else if (lane->state == DIALING) {
        fail_dial(lane, "the connection broke");
    }
}

/* ---- dialling ---- */

static void time_out_dial(void *what, int64_t number)
{
    struct hfi_lane *lane = what;
    if (lane->dial_number == number && lane->state == DIALING && !put_off(lane, time_out_dial, number))
        fail_dial(lane, "no answer");
}

/* Lists the scripts and the handshake_floor; the time for AUTH, SELECT, ROLE and INFO has passed before. */
static void greet(void *what, int64_t number)
{
    static const char load[] = "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n$1\r\nx\r\n";
    struct hfi_lane *lane = what;
    struct hfi_pool *pool = lane->pool;
    struct sim_server *there = NULL;
    enum hfi_where where = sim_pool_primary(pool, &there);
    bool is_mute = where == HFI_FOUND && (there->frozen_until > sim.now || sim.self->isolated_until > sim.now);
    if (lane->dial_number != number || lane->state != DIALING || is_mute || put_off(lane, greet, number))
        return; /* the timeout comes, or this again */
    if (where == HFI_LOOKING) /* for the primary */
        sim_at(sim.now + HFI_MS, sim.self, greet, lane, number);
    else if (where == HFI_NOT_FOUND)
        fail_dial(lane, "no sentinel names the primary");
    if (where != HFI_FOUND)
        return;
    struct hfi_server server = {.version = 70000};
    (void)snprintf(server.run_id, sizeof server.run_id, "%040d", there->epoch);
    struct hfi_command *handshake_floor = pool->ops.handshake_floor(pool->self, &server);
    if (lane->dial_number != number) {
        hfi_command_unref(handshake_floor);
        return;
    }
    if (!there->up || (there->host != NULL && there->host->is_replica)) {
        hfi_command_unref(handshake_floor);
        fail_dial(lane, there->up ? "it is a replica" : "connection refused");
        return;
    }
    if (lane->parser != NULL)
        redisReaderFree(lane->parser);
    lane->parser = redisReaderCreate();
    lane->wire = sim_wire_new(sim.self, there, lane, received, broken);
    lane->loads_left = 1;
    lane->greeting_sent = now_here();
    lane->clock_by_key = false; /* what the server before refused says nothing */
    hfi_command_unref(lane->floor);
    lane->floor = handshake_floor;
    sim_wire_up(lane->wire, sim_packet_new(SIM_BYTES, load, sizeof load - 1));
    send_floor(lane);
}

static void dial(void *what, int64_t number)
{
    struct hfi_lane *lane = what;
    if (lane->dial_number != number || lane->state != DIALING || put_off(lane, dial, number))
        return;
    lane->wire = NULL;
    number = ++lane->dial_number;
    sim_at(sim.now + 3 * (sim_delay() + sim_delay()), sim.self, greet, lane, number);
    sim_at(sim_when(sim.self, hfi_after_ms(now_here(), lane->pool->settings.connect_ms)), sim.self,
           time_out_dial, lane, number);
}

/* ---- pool/lane.h ---- */

void hfi_lane_list(struct hfi_lane *lane, struct hfi_command *command)
{
    /* What a message makes us ask over a lane that cannot be reached comes back at once and never leaves; who sent the message is
     * counted himself. What the coming back makes us ask does count. */
    sim_lane_lists(command, !(lane->pool->subscriber.hearing && hfi_lane_is_unreachable(lane)));
    hfi_command_ref(command);
    hfi_list_append(&lane->queue, &command->link);
}

static void board(struct hfi_lane *lane)
{
    struct hfi_buffer out = {0};
    int64_t now = now_here();
    bool grants = false;
    if (lane->kind != HFI_RESERVED_LANE && hfi_list_is_empty(&lane->flight) &&
        now - lane->answered_ns > FIT_NS) {
        const char *const words[] = {"ROLE"};
        struct hfi_command *check = hfi_command_new(1, words, NULL);
        check->done = role_checked;
        check->until_ns = hfi_after_ms(now, lane->pool->settings.command_ms);
        hfi_list_append(lane->queue.next, &check->link);
    }
    while (!hfi_list_is_empty(&lane->queue) || (grants && sim_lane_ask_for_confirmation(lane, now))) {
        struct hfi_command *command = hfi_container_of(lane->queue.next, struct hfi_command, link);
        hfi_list_remove(&command->link);
        hfi_command_use_clock(command, lane->clock_by_key);
        hfi_list_append(&lane->flight, &command->link);
        grants = !sim_lane_is_confirmation(command) && (grants || sim_lane_needs_confirmation(lane, command));
        command->sent = true;
        command->sent_ns = now;
        lane->commands++;
        if (!hfi_buffer_append(&out, command->bytes, command->size))
            abort();
    }
    sim_wire_up(lane->wire, sim_packet_new(SIM_BYTES, hfi_buffer_data(&out), hfi_buffer_size(&out)));
    hfi_buffer_done(&out);
}

void hfi_lane_flush(struct hfi_lane *lane)
{
    lane->again = false;
    if (lane->state == UP && !hfi_list_is_empty(&lane->queue))
        board(lane);
    else if (lane->state == CLOSED || (lane->state == DIALING && lane->failed))
        refuse_queue(lane);
    plan(lane);
    sim_lane_finish(lane);
}

void hfi_lane_flush_to_wait(struct hfi_lane *lane)
{
    HFI_PERTURB("listed-to-gathered"); /* other threads list meanwhile */
    hfi_lane_flush(lane);
}

void hfi_lane_flush_soon(struct hfi_lane *lane)
{
    hfi_lane_flush(lane);
}

void hfi_lane_flush_posted(struct hfi_lane *lane)
{
    hfi_lane_flush(lane);
}

bool hfi_lane_wait(struct hfi_lane *lane, struct hfi_park *park, uint32_t ticket, int64_t until_ns)
{
    (void)lane;
    return hfi_park_wait(park, ticket, until_ns);
}

bool hfi_lane_is_up(const struct hfi_lane *lane)
{
    return lane->state == UP;
}

static bool is_down(const struct hfi_lane *lane)
{
    return lane->state == CLOSED || (lane->state == DIALING && lane->failed);
}

bool hfi_lane_is_unreachable(const struct hfi_lane *lane)
{
    return is_down(lane) && !lane->silent;
}

unsigned hfi_lane_cuts(const struct hfi_lane *lane)
{
    return lane->cuts;
}

bool hfi_lane_clock_by_key(const struct hfi_lane *lane)
{
    return lane->clock_by_key;
}

int hfi_lane_index(const struct hfi_lane *lane)
{
    return lane->index;
}

int64_t hfi_lane_rtt_ns(const struct hfi_lane *lane)
{
    return lane->rtt_ns;
}

int64_t hfi_lane_waits_since_ns(const struct hfi_lane *lane)
{
    return hfi_list_is_empty(&lane->flight) ? HFI_NEVER
                                            : hfi_container_of(lane->flight.next, struct hfi_command, link)->sent_ns;
}

struct hfi_lane *sim_lane_warm(struct hfi_lane *lane)
{
    if (lane->state == COLD) {
        lane->state = DIALING;
        sim_at(sim.now, sim.self, dial, lane, lane->dial_number);
    }
    return lane;
}
