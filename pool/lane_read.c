/* SPDX-License-Identifier: MIT */
/* lane_read.c - what the owner of the read role does with the bytes that come: matches replies to commands. Who that is, and when
 * it looks: lane_wait.c. */
#include "pool/lane_private.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "pool/replies.h"
#include "pool/script.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <string.h>

#define BATCH 64

/* ---- replies to commands ---- */

/* Sends a refused script again, mended, before anything that is not sent yet. */
static HFI_RARE bool mend_script_locked(struct hfi_lane *lane, struct hfi_command *command, int64_t now_ns)
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
 * error (no right to MULTI) any reply may come, but not behind a PING. */
static bool may_be_its(const struct hfi_command *command, const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR || (command->reply != NULL && command->ahead == 0))
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

static void note_source_locked(const struct hfi_lane *lane, struct hfi_command *command)
{
    command->connection = (uint32_t)atomic_load(&lane->times_up);
    command->run = atomic_load(&lane->run);
}

HFI_RARE bool hfi_lane_pass_over_locked(struct hfi_lane *lane, int64_t now_ns)
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
    note_source_locked(lane, command);
    hfi_lane_settle_locked(lane, command);
    if (unfit)
        hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, 0, "it is not a primary any more");
    else if (lane->drop_after)
        hfi_lane_give_up_locked(lane, HF_UNAVAILABLE, 0, "the server refuses commands on it");
    return atomic_load(&lane->state) == HFI_LANE_UP;
}

/* Smooths the round-trip time as TCP does. A sample that is not fresh is only an upper bound: the reply may have lain
 * in the socket for a while. */
static void note_rtt(struct hfi_lane *lane, int64_t sample_ns, int64_t now_ns, bool fresh)
{
    int64_t rtt_ns = atomic_load(&lane->rtt_ns), nearest_ns = atomic_load(&lane->nearest_rtt_ns);
    if (fresh || nearest_ns == 0 || sample_ns < nearest_ns)
        atomic_store(&lane->nearest_rtt_ns, hfi_costs_nearest_ns(nearest_ns, sample_ns, hfi_lane_own_ns(lane, now_ns)));
    if (rtt_ns == 0)
        atomic_store(&lane->rtt_ns, sample_ns > 0 ? sample_ns : 1);
    else if (fresh || sample_ns < rtt_ns)
        atomic_store(&lane->rtt_ns, rtt_ns + (sample_ns - rtt_ns) / 8);
}

static HFI_RARE void give_up(struct hfi_lane *lane, hf_status status, int os_errno, const char *why)
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
            note_rtt(lane, now_ns - sent_ns, now_ns, fresh);
        if (!up)
            return false;
    } while (count == BATCH);
    return true;
}

/* ---- receiving ---- */

/* os_errno 0: the stream has ended. */
static HFI_RARE void give_up_receiving(struct hfi_lane *lane, int os_errno)
{
    struct hfi_transport_why why;
    lane->connection.transport->explain(&lane->connection, &why);
    give_up(lane, HF_UNAVAILABLE, os_errno,
            os_errno == 0 ? "the server closed it" : why.what[0] != 0 ? why.what : "receiving failed");
}

enum hfi_taken hfi_lane_take_in(struct hfi_lane *lane, bool fresh)
{
    ssize_t got = lane->connection.transport->recv(&lane->connection, lane->in, lane->in_capacity);
    if (got < 0 && errno == EAGAIN)
        return HFI_EMPTY;
    if (got <= 0) {
        give_up_receiving(lane, got < 0 ? errno : 0);
        return HFI_OVER;
    }
    atomic_store_explicit(&lane->is_silent, false, memory_order_relaxed);
    bool is_up = false;
    if (hfi_lane_is_sifted(lane)) {
        is_up = hfi_lane_sift(lane, (size_t)got, fresh);
    } else if (redisReaderFeed(lane->parser, lane->in, (size_t)got) == REDIS_OK) {
        lane->unparsed += (size_t)got;
        is_up = hfi_lane_match_all(lane, fresh);
    } else {
        give_up(lane, HF_NOMEM, ENOMEM, "no memory for its replies"); /* the only reason for feeding to fail */
    }
    /* Half of it: with TLS more may be in the socket though `in` is not full. */
    lane->goes_on = (size_t)got > lane->in_capacity / 2 || lane->skips || lane->parser->len > lane->parser->pos;
    return is_up ? HFI_GOT : HFI_OVER;
}
