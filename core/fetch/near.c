/* SPDX-License-Identifier: MIT */
/*
 * near.c - see near.h.
 *
 *   hfi_near_look ----> alarm: every half of near_lag_ms, while somebody asks
 *                         |--> hfi_pool_prove: PING to the tracker ----PONG----> hfi_near_proved
 *                         `--> each lane in use: is it armed? is the tracker ours? ---> asked
 *   on_message -------> hfi_near_told: the key is near no more
 */
#include "core/fetch/near.h"
#include "core/context/call.h"
#include "core/lock/alarm.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define TRY_NS  (10 * HFI_MS) /* so seldom a call looks whether its lane can be armed now */
#define IDLE_MS 2000 /* beside twice the lag: so long after the last call nothing is proved any more */

enum state { UNTRIED, WANTED, REFUSED };

struct lane {
    _Alignas(64) _Atomic(uint64_t) epoch; /* of `proof`, for who has no mutex */
    _Atomic(int64_t) proved_ns;
    _Atomic(struct hfi_lane *) pool_lane; /* NULL: nothing was read on it */
    _Atomic(int64_t) armed_ns;            /* when that was asked last, */
    _Atomic(int64_t) tried_ns;            /* or would have been */
};

struct hfi_near {
    struct hfi_alarm alarm;
    hf_client *client;
    int64_t lag_ms;
    _Atomic(int) state;
    _Atomic(bool) beats;       /* the alarm is armed, or rings */
    _Atomic(int64_t) used_ns;
    struct hfi_mutex mutex;    /* guards `proof` */
    struct hfi_near_proof proof;
    struct lane lanes[];
};

struct question { /* in its command */
    int64_t tracker;
    uint64_t epoch;
    int lane;
};
_Static_assert(sizeof(struct question) <= HFI_COMMAND_CONTEXT, "a question fits into its command");

static HFI_RARE void ring(struct hfi_alarm *alarm, struct hfi_tick *tick);

HFI_RARE bool hfi_near_open(hf_client *client, int lanes, int64_t lag_ms)
{
    struct hfi_near *near = aligned_alloc(64, sizeof *near + (size_t)lanes * sizeof near->lanes[0]);
    if (near == NULL)
        return false;
    memset(near, 0, sizeof *near + (size_t)lanes * sizeof near->lanes[0]);
    near->proof.lanes = calloc((size_t)lanes, sizeof *near->proof.lanes);
    if (near->proof.lanes == NULL) {
        free(near);
        return false;
    }
    near->proof.count = lanes;
    near->alarm.ring = ring;
    near->client = client;
    near->lag_ms = lag_ms;
    hfi_mutex_init(&near->mutex, HFI_RANK_INNER);
    client->near = near;
    return true;
}

HFI_RARE void hfi_near_free(hf_client *client)
{
    struct hfi_near *near = client->near;
    if (near == NULL)
        return;
    hfi_mutex_destroy(&near->mutex);
    free(near->proof.lanes);
    free(near);
    client->near = NULL;
}

static HFI_RARE void refuse(struct hfi_near *near, const char *why)
{
    char text[160];
    if (atomic_exchange(&near->state, REFUSED) != REFUSED)
        hfi_log(&near->client->log, HF_LOG_WARNING, "near_ms has no effect, each value is asked for: %s",
                hfi_quote(text, sizeof text, why, strlen(why)));
}

/* Mutex held. */
static HFI_RARE void publish_locked(struct hfi_near *near)
{
    HFI_ASSERT_HELD(&near->mutex);
    for (int i = 0; i < near->proof.count; i++) {
        atomic_store(&near->lanes[i].epoch, near->proof.lanes[i].epoch);
        atomic_store(&near->lanes[i].proved_ns, hfi_near_proved_ns(&near->proof, i));
    }
}

/* ---- questions to the lanes ---- */

/* An array of the OK of TRACKING and CACHING if it was to arm, ROLE and GETREDIR. */
static bool is_good(const struct redisReply *reply, const struct question *question)
{
    size_t first = question->epoch == 0 ? 2 : 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != first + 2)
        return false;
    for (size_t i = 0; i < first; i++)
        if (reply->element[i]->type != REDIS_REPLY_STATUS)
            return false;
    return hfi_reply_is_master(reply->element[first]) && hfi_wire_number(reply, first + 1, -1) == question->tracker;
}

/* What the server will not do however often it is asked. */
static HFI_RARE const struct redisReply *refusal_in(const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR && hfi_reply_is_withheld(reply))
        return reply;
    for (size_t i = 0; i < reply->elements; i++)
        if (reply->element[i]->type == REDIS_REPLY_ERROR && hfi_reply_is_withheld(reply->element[i]) &&
            reply->elements != i + 2) /* ROLE may be withheld */
            return reply->element[i];
    return NULL;
}

static HFI_RARE void asked(struct hfi_command *command)
{
    struct hfi_near *near = command->self;
    const struct question *question = hfi_command_context(command, struct question);
    struct hfi_near_answer answer = {question->epoch, question->tracker, command->stamp_ns, 0, command->run, false};
    if (command->outcome == HFI_ANSWERED) {
        const struct redisReply *refusal = refusal_in(command->reply);
        answer.connection = command->connection;
        answer.is_good = is_good(command->reply, question);
        if (refusal != NULL)
            refuse(near, refusal->str);
    }
    hfi_mutex_lock(&near->mutex);
    hfi_near_answered(&near->proof, question->lane, &answer);
    publish_locked(near);
    hfi_mutex_unlock(&near->mutex);
}

/* Mutex held: questions of a lane leave in the order in which they were decided. */
static HFI_RARE void ask_locked(struct hfi_near *near, int lane, int64_t now)
{
    struct hfi_lane *pool_lane = atomic_load(&near->lanes[lane].pool_lane);
    enum hfi_near_ask what = hfi_near_next(&near->proof, lane);
    if (pool_lane == NULL || what == HFI_NEAR_ASK_NOTHING || !hfi_lane_is_up(pool_lane)) /* whose server may_track knows */
        return;
    struct hfi_command *command = hfi_wire_near_question(what == HFI_NEAR_ARM ? near->proof.tracker : 0);
    if (command == NULL)
        return; /* the next beat comes */
    struct question *question = hfi_command_context(command, struct question);
    *question = (struct question){near->proof.tracker, near->proof.lanes[lane].epoch, lane};
    command->optional = true;
    command->awaited = HFI_AWAITED_BY_NOBODY;
    if (what == HFI_NEAR_ARM)
        atomic_store(&near->lanes[lane].armed_ns, now);
    hfi_call_list(near->client, pool_lane, command, asked, near, now);
}

/* Asked each time: a lazy client learns it late, and another server may be meant by now. */
static bool may_track(struct hfi_near *near)
{
    struct hfi_server server;
    hfi_pool_server(near->client->pool, &server);
    bool is_frail = server.version >= 70000 && server.version < 70009;
    if (is_frail)
        refuse(near, "client tracking can end a server of version 7.0.0 to 7.0.8");
    return !is_frail;
}

/* Lanes of a tracker that has just been found; or all. */
static HFI_RARE void ask_all(struct hfi_near *near, int64_t now)
{
    if (!may_track(near))
        return;
    hfi_mutex_lock(&near->mutex);
    for (int i = 0; i < near->proof.count; i++)
        ask_locked(near, i, now);
    hfi_mutex_unlock(&near->mutex);
    for (int i = 0; i < near->proof.count; i++) {
        struct hfi_lane *pool_lane = atomic_load(&near->lanes[i].pool_lane);
        if (pool_lane != NULL)
            hfi_lane_flush(pool_lane);
    }
}

static HFI_RARE void ask_one(struct hfi_near *near, int lane, int64_t now)
{
    if (!may_track(near))
        return;
    hfi_mutex_lock(&near->mutex);
    ask_locked(near, lane, now);
    hfi_mutex_unlock(&near->mutex);
    hfi_lane_flush(atomic_load(&near->lanes[lane].pool_lane));
}

/* ---- beats ---- */

static HFI_RARE bool begin(struct hfi_near *near)
{
    int untried = UNTRIED;
    if (atomic_compare_exchange_strong(&near->state, &untried, WANTED) &&
        !hfi_pool_subscribe(near->client->pool, HFI_INVALIDATIONS, strlen(HFI_INVALIDATIONS)))
        atomic_store(&near->state, UNTRIED);
    return atomic_load(&near->state) == WANTED;
}

static bool is_used(const struct hfi_near *near, int64_t now)
{
    return now < hfi_after_ms(atomic_load(&near->used_ns), 2 * near->lag_ms + IDLE_MS);
}

static HFI_RARE void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hfi_near *near = hfi_container_of(alarm, struct hfi_near, alarm);
    if (!is_used(near, tick->now) || !begin(near)) {
        atomic_store(&near->beats, false);
        HFI_PERTURB("beat-off-to-used");
        if (atomic_load(&near->state) == REFUSED || !is_used(near, tick->now) || atomic_exchange(&near->beats, true))
            return;
    }
    if (hfi_pool_tracker_id(near->client->pool) < 0)
        refuse(near, "the server tells no CLIENT ID or no run id, or refuses the channel");
    hfi_pool_prove(near->client->pool);
    ask_all(near, tick->now);
    (void)hfi_watchdog_arm(near->client->watchdog, &near->alarm.timer, tick->now + near->lag_ms * HFI_MS / 2);
}

static void use(struct hfi_near *near, int64_t now)
{
    if (now - atomic_load_explicit(&near->used_ns, memory_order_relaxed) > near->lag_ms * HFI_MS / 8) /* not by every thread each time */
        atomic_store(&near->used_ns, now);
    if (!atomic_load(&near->beats) && !atomic_exchange(&near->beats, true))
        (void)hfi_watchdog_arm(near->client->watchdog, &near->alarm.timer, now);
}

HFI_RARE void hfi_near_proved(void *self, int64_t tracker, uint64_t run, int64_t stamp_ns)
{
    hf_client *client = self;
    struct hfi_near *near = client->near;
    hfi_mutex_lock(&near->mutex);
    bool is_another = hfi_near_hears(&near->proof, tracker, run, stamp_ns);
    publish_locked(near);
    hfi_mutex_unlock(&near->mutex);
    if (is_another && atomic_load(&near->state) == WANTED)
        ask_all(near, hfi_now(client->clock));
}

HFI_RARE void hfi_near_told(hf_client *client, const char *key, size_t size)
{
    struct hfi_near *near = client->near;
    if (key != NULL) {
        const struct hfi_name name = hfi_name_of(HFI_FETCH, key, size);
        hfi_count(client, near_told);
        hfi_local_changed(client, &name);
        return;
    }
    hfi_mutex_lock(&near->mutex);
    hfi_near_all_changed(&near->proof);
    publish_locked(near);
    hfi_mutex_unlock(&near->mutex);
}

/* ---- values ---- */

static struct lane *lane_of(struct hfi_near *near, const struct hfi_name *key)
{
    return &near->lanes[key->hash % (uint64_t)near->proof.count];
}

/* The proof is read first, then the value, then the epoch: whatever was told before that proof has voided the value by now. */
void hfi_near_look(hf_client *client, const struct hfi_name *key, int64_t near_ms, int64_t now, struct hfi_seen *seen)
{
    struct hfi_near *near = client->near;
    struct lane *lane = lane_of(near, key);
    if (atomic_load_explicit(&near->state, memory_order_relaxed) == REFUSED || client->local_bytes == HF_OFF) {
        *seen = (struct hfi_seen){0};
        return;
    }
    use(near, now);
    int64_t proved_ns = atomic_load(&lane->proved_ns);
    HFI_PERTURB("proof-to-value");
    hfi_local_look(client, key, seen);
    if (seen->body == NULL)
        return;
    enum hfi_near_verdict verdict =
        hfi_near_judge(&seen->near, atomic_load(&lane->epoch), proved_ns, near_ms, near->lag_ms, now);
    if (verdict == HFI_NEAR_UNPROVED)
        hfi_count(client, near_lapses);
    if (verdict != HFI_NEAR_GOOD) {
        hfi_body_unref(seen->body);
        seen->body = NULL;
    }
}

void hfi_near_note(hf_client *client, const struct hfi_name *key, int64_t now, struct hfi_near_reading *reading)
{
    *reading = (struct hfi_near_reading){0, hfi_local_changes(client, key), now};
}

void hfi_near_begin(hf_client *client, const struct hfi_name *key, struct hfi_lane *lane, struct hfi_near_reading *reading)
{
    struct hfi_near *near = client->near;
    struct lane *ours = lane_of(near, key);
    hfi_near_note(client, key, hfi_now(client->clock), reading);
    if (atomic_load(&near->state) == REFUSED || client->local_bytes == HF_OFF)
        return;
    if (atomic_load(&ours->pool_lane) == NULL)
        atomic_store(&ours->pool_lane, lane);
    reading->epoch = atomic_load(&ours->epoch);
    int64_t tried_ns = atomic_load(&ours->tried_ns);
    if (reading->epoch == 0 && atomic_load(&near->state) == WANTED && reading->stamp_ns - tried_ns > TRY_NS &&
        reading->stamp_ns - atomic_load(&ours->armed_ns) > near->lag_ms * HFI_MS / 4 &&
        atomic_compare_exchange_strong(&ours->tried_ns, &tried_ns, reading->stamp_ns))
        ask_one(near, (int)(ours - near->lanes), reading->stamp_ns); /* before the next beat: it was not up, or the tracker not there */
}

bool hfi_near_end(hf_client *client, const struct hfi_name *key, const struct hfi_near_reading *reading, uint32_t connection,
                  bool tracked)
{
    struct hfi_near *near = client->near;
    int lane = (int)(key->hash % (uint64_t)near->proof.count);
    hfi_mutex_lock(&near->mutex);
    struct hfi_near_lane *at = &near->proof.lanes[lane];
    if (at->epoch == reading->epoch)
        hfi_near_met(&near->proof, lane, tracked ? connection : 0);
    bool is_same = reading->epoch != 0 && at->epoch == reading->epoch;
    if (!is_same)
        publish_locked(near);
    hfi_mutex_unlock(&near->mutex);
    if (is_same)
        hfi_count(client, near_reads);
    else if (reading->epoch != 0)
        (void)hfi_watchdog_arm(client->watchdog, &near->alarm.timer, hfi_now(client->clock)); /* the lane is armed anew */
    return is_same;
}

int64_t hfi_near_lag_ms(const hf_client *client)
{
    return client->near->lag_ms;
}

HFI_RARE bool hfi_near_is_refused(const hf_client *client)
{
    return atomic_load(&client->near->state) == REFUSED;
}

HFI_RARE const char *hfi_near_text(const hf_client *client)
{
    static const char *const texts[] = {"not asked for", "on", "refused"};
    return texts[atomic_load(&client->near->state)];
}
