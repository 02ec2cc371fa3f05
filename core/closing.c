/* SPDX-License-Identifier: MIT */
/* closing.c - see closing.h. When it is over, and when to ask again, is decided in doubt.c. */
#include "core/closing.h"
#include "core/blame.h"
#include "core/doubt.h"
#include "core/scripts.h"
#include "core/server_time.h"
#include "core/table.h"
#include "base/perturb.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct hfi_closing {
    struct hfi_closing *next; /* of lock->closings */
    struct hfi_lock *lock;    /* a reference; its mutex guards what follows */
    struct hfi_alarm alarm;
    uint64_t grant, random;
    struct hfi_doubt doubt;
    int64_t not_before_ns;    /* the next release; a revoked holder has until then to stop */
    struct hfi_giving *giving;
    bool    asked;            /* once at least */
    bool    asking;
    bool    over;             /* not in the list any more */
    int     references;       /* the list, a command under way, the armed alarm */
};

/* After the mutex, with what was the last reference. */
static void end(struct hfi_closing *closing)
{
    struct hfi_lock *lock = closing->lock;
    free(closing);
    hfi_table_unref(lock);
}

static void tell_locked(struct hfi_closing *closing, hf_status status)
{
    struct hfi_giving *giving = closing->giving;
    if (giving == NULL)
        return;
    closing->giving = NULL;
    giving->status = status;
    giving->done = true;
    hfi_park_wake(&giving->park);
}

static void arm_locked(struct hfi_closing *closing, int64_t at_ns)
{
    hf_client *client = closing->lock->client;
    if (atomic_load(&client->closing))
        return;
    if (at_ns < closing->not_before_ns)
        at_ns = closing->not_before_ns;
    if (!hfi_watchdog_arm(client->watchdog, &closing->alarm.timer, at_ns))
        closing->references++;
}

/* Nothing of this token can come any more, or nobody is there to ask. Never the last reference: the caller has one. */
static void finish_locked(struct hfi_closing *closing)
{
    struct hfi_closing **at = &closing->lock->closings;
    if (closing->over)
        return;
    while (*at != closing)
        at = &(*at)->next;
    *at = closing->next;
    closing->over = true;
    closing->references--;
    if (hfi_watchdog_arm(closing->lock->client->watchdog, &closing->alarm.timer, HFI_NEVER))
        closing->references--;
}

static struct hfi_closing *find_locked(const struct hfi_lock *lock, uint64_t grant, uint64_t random)
{
    struct hfi_closing *closing = lock->closings;
    while (closing != NULL && (closing->grant != grant || closing->random != random))
        closing = closing->next;
    return closing;
}

/* A message about a token that has just been given back is late and no more, and there are many: the next one's wish and
 * the holder's release often cross. Those that may come alive again are not among these, and a mark ages (doubt.h). */
static _Atomic(uint64_t) *settled(hf_client *client, uint64_t random)
{
    return &client->settled[random % (sizeof client->settled / sizeof client->settled[0])];
}

static _Atomic(uint64_t) *healed(hf_client *client, uint64_t random)
{
    return &client->healed[random % (sizeof client->healed / sizeof client->healed[0])];
}

/* What the server said to it, in the releasing thread's words. */
static void note_refusal(const struct hfi_closing *closing, const struct hfi_command *command)
{
    hf_error *why = closing->giving != NULL ? closing->giving->why : NULL;
    if (why == NULL)
        return;
    (void)hfi_reply_fail(command->reply, "the server refuses to release", hfi_pool_server_name(closing->lock->client->pool),
                         why);
    hfi_blame(command->reply->str, &hfi_script_release, why);
}

static void judge_locked(struct hfi_closing *closing, const struct hfi_command *command, const struct hfi_script_reply *said,
                         int64_t now)
{
    hf_client *client = closing->lock->client;
    int64_t again = HFI_NEVER;
    bool known = said->word[0] != 0;
    bool refused = command->outcome == HFI_ANSWERED && command->reply->type == REDIS_REPLY_ERROR;
    bool was_ours = strcmp(said->word, "FREE") == 0 || strcmp(said->word, "HANDED") == 0;
    if (strcmp(said->word, "HANDED") == 0)
        hfi_count(client, hand_offs_given);
    if (refused)
        note_refusal(closing, command);
    tell_locked(closing, !known ? HF_UNKNOWN : was_ours ? HF_OK : HF_LOST);
    closing->not_before_ns = now + HFI_PACE_NS;
    if (!known)
        again = hfi_doubt_failed_ns(&closing->doubt, refused, now);
    else if (!hfi_doubt_is_over(&closing->doubt, said->now_us, now))
        again = hfi_doubt_again_ns(&closing->doubt, said->now_us, now);
    else if (!closing->doubt.unclear)
        atomic_store(settled(client, closing->random), hfi_doubt_over_mark(closing->random, now));
    if (again == HFI_NEVER && closing->doubt.unclear)
        atomic_store(healed(client, closing->random), hfi_doubt_over_mark(closing->random, now));
    if (again == HFI_NEVER || atomic_load(&client->closing))
        finish_locked(closing);
    else
        arm_locked(closing, again);
}

static void send_locked(struct hfi_closing *closing, int64_t now);

static void released(struct hfi_command *command)
{
    struct hfi_closing *closing = command->self;
    struct hfi_lock *lock = closing->lock;
    struct hfi_script_reply said = {"", 0, 0};
    if (command->outcome == HFI_ANSWERED) {
        said = hfi_wire_script_reply(command->reply);
        hfi_server_time_saw(lock->client, hfi_lane_index(lock->lane), said.now_us, command->stamp_ns, command->answered_ns);
    }
    bool more = strcmp(said.word, "MORE") == 0; /* it dropped as many old records as it may, and gave nothing back yet */
    HFI_PERTURB("release-answered");
    int64_t now = hfi_lock_enter(lock);
    closing->asking = false;
    if (more)
        send_locked(closing, now);
    else
        judge_locked(closing, command, &said, now);
    bool last = --closing->references == 0;
    (void)pthread_mutex_unlock(&lock->mutex);
    if (more)
        hfi_lane_flush(lock->lane);
    if (last)
        end(closing);
}

/* Now, if it is time and none is under way. Without memory for the command the alarm tries again. */
static void send_locked(struct hfi_closing *closing, int64_t now)
{
    struct hfi_lock *lock = closing->lock;
    char token[HFI_TOKEN_ROOM];
    if (closing->asking)
        return;
    if (now < closing->not_before_ns) {
        arm_locked(closing, closing->not_before_ns);
        return;
    }
    (void)hfi_token_make(&lock->client->identity, closing->grant, closing->random, token);
    struct hfi_command *command = hfi_wire_release(&lock->keys, token);
    if (command == NULL) {
        tell_locked(closing, HF_UNKNOWN);
        arm_locked(closing, now + HFI_DOUBT_RETRY_NS);
        return;
    }
    closing->asked = closing->asking = true;
    closing->references++;
    command->done = released;
    command->self = closing;
    command->stamp_ns = now;
    command->until_ns = now + lock->client->command_ms * HFI_MS;
    HFI_PERTURB("release-to-list");
    hfi_lane_list(lock->lane, command);
    hfi_command_unref(command);
}

static void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hfi_closing *closing = hfi_of(alarm, struct hfi_closing, alarm);
    struct hfi_lock *lock = closing->lock;
    HFI_PERTURB("closing-rings");
    (void)pthread_mutex_lock(&lock->mutex);
    if (!closing->over)
        send_locked(closing, tick->now);
    bool last = --closing->references == 0;
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    if (last)
        end(closing);
}

/* NULL: no memory, the key ends by itself. ends_ns: when that is. */
static struct hfi_closing *begin(struct hfi_lock *lock, uint64_t grant, uint64_t random, int64_t ends_ns)
{
    struct hfi_closing *closing = calloc(1, sizeof *closing);
    if (closing == NULL)
        return NULL;
    hfi_table_ref(lock);
    closing->lock = lock;
    closing->alarm.ring = ring;
    closing->references = 1;
    closing->grant = grant;
    closing->random = random;
    closing->doubt.ends_ns = ends_ns;
    closing->next = lock->closings;
    lock->closings = closing;
    return closing;
}

/* All that could give it the key, or prolong that, was sent by now. */
static int64_t end_of_key(const struct hfi_lock *lock, int64_t now)
{
    return hfi_after_ms(now, lock->client->command_ms + lock->may_live_ms);
}

/* Of a token that is not, or not surely, the one that was sent last: what was asked for is not known any more. */
static int64_t end_of_another(const struct hfi_lock *lock, int64_t now)
{
    const hf_client *client = lock->client;
    int64_t usual_ms = client->lease_ms + hfi_guard_ms(client->lease_ms, lock->entry.rules->guard_ms) +
                       3 * hfi_recheck_ms(INT64_MAX, UINT64_MAX, INT64_MAX);
    int64_t ms = usual_ms > lock->may_live_ms ? usual_ms : lock->may_live_ms;
    return hfi_after_ms(now, client->command_ms + ms);
}

static void give_back_revoked(struct hfi_lock *lock, uint64_t grant, uint64_t random, int64_t not_before, int64_t now)
{
    if (find_locked(lock, grant, random) != NULL)
        return;
    struct hfi_closing *closing = begin(lock, grant, random, end_of_another(lock, now));
    if (closing == NULL)
        return;
    closing->not_before_ns = not_before;
    send_locked(closing, now);
}

void hfi_closing_revoked(struct hfi_lock *lock, uint64_t grant, uint64_t random, int64_t now)
{
    give_back_revoked(lock, grant, random, hfi_after_ms(now, lock->entry.rules->guard_ms), now);
}

static bool names_revoked(const struct hfi_lock *lock, const struct hfi_message *message, uint64_t grant, uint64_t *random)
{
    return hfi_token_is_of_grant(&lock->client->identity, message->rest, message->rest_size, grant, random);
}

void hfi_closing_note_break(struct hfi_lock *lock, const struct hfi_message *message)
{
    uint64_t random;
    if (names_revoked(lock, message, lock->grant, &random) && random != lock->random)
        lock->revoked = random;
}

void hfi_closing_begin(struct hfi_lock *lock, int64_t now, struct hfi_giving *giving)
{
    uint64_t revoked = lock->revoked;
    lock->revoked = 0;
    if (revoked != 0 && giving != NULL) /* the holder has stopped */
        give_back_revoked(lock, lock->grant, revoked, now, now);
    else if (revoked != 0)
        hfi_closing_revoked(lock, lock->grant, revoked, now);
    struct hfi_closing *closing = begin(lock, lock->grant, lock->random, end_of_key(lock, now));
    if (closing != NULL) {
        closing->giving = giving;
        closing->doubt.unclear = lock->unclear;
        closing->doubt.last_chance_us = lock->last_chance_us;
        closing->doubt.last_chance_ns = lock->last_chance_ns;
        send_locked(closing, now);
    } else if (giving != NULL) {
        giving->status = HF_UNKNOWN;
        giving->done = true;
    }
}

void hfi_closing_doubt(struct hfi_lock *lock, uint64_t grant, uint64_t random)
{
    struct hfi_closing *closing = find_locked(lock, grant, random);
    if (closing != NULL)
        closing->doubt.unclear = true;
}

void hfi_closing_again(struct hfi_lock *lock, uint64_t grant, uint64_t random, int64_t now)
{
    int64_t ends = end_of_another(lock, now);
    struct hfi_closing *closing = find_locked(lock, grant, random);
    if (closing != NULL) { /* its release comes behind this acquire */
        closing->doubt.ends_ns = closing->doubt.ends_ns > ends ? closing->doubt.ends_ns : ends;
        return;
    }
    closing = begin(lock, grant, random, ends);
    if (closing != NULL)
        send_locked(closing, now);
}

/* A revoked holder keeps its time to stop, whichever token of its grant a second break has put there. */
static int64_t time_to_stop(const struct hfi_lock *lock, uint64_t grant)
{
    int64_t until = 0;
    for (const struct hfi_closing *at = lock->closings; at != NULL; at = at->next)
        if (at->grant == grant && at->not_before_ns > until)
            until = at->not_before_ns;
    return until;
}

/* One failure ends it: who wants the lock will say so again. A message that is repeated, whoever made it up, costs a release
 * in HFI_PACE_NS and not one in each round trip. */
static void release_forgotten_locked(struct hfi_lock *lock, uint64_t grant, uint64_t random, int64_t now)
{
    struct hfi_closing *closing = find_locked(lock, grant, random);
    if (closing == NULL) {
        int64_t not_before = time_to_stop(lock, grant);
        int64_t paced = hfi_doubt_heal_ns(atomic_load(healed(lock->client, random)), random, now);
        closing = begin(lock, grant, random, now);
        if (closing == NULL)
            return;
        closing->not_before_ns = not_before > paced ? not_before : paced;
        closing->doubt.unclear = true; /* and stays so: it is not settled by an answer about this key */
    }
    send_locked(closing, now);
}

/* Long after we stopped to count with it, an acquire of ours was executed (a native one has no not_after), or its release
 * was lost with a server that failed over. Whoever sent the message may have made up token and key: the release deletes
 * nothing but this very token, which nobody uses. */
static void release_forgotten(hf_client *client, uint64_t grant, uint64_t random, const struct hfi_message *message)
{
    if (hfi_doubt_has_crossed(atomic_load(settled(client, random)), random, hfi_now(client->clock)))
        return;
    struct hfi_lock *lock = hfi_table_by_key(client, message->key, message->key_size);
    if (lock == NULL)
        return;
    release_forgotten_locked(lock, grant, random, hfi_lock_enter(lock));
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    hfi_table_unref(lock);
}

/* True: it is being given back here. */
static bool hurry(struct hfi_lock *lock, uint64_t grant, uint64_t random)
{
    HFI_PERTURB("closing-found");
    int64_t now = hfi_lock_enter(lock);
    struct hfi_closing *closing = find_locked(lock, grant, random);
    if (closing != NULL)
        send_locked(closing, now);
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    return closing != NULL;
}

/* A break of what nobody holds: what it has left there is nobody's either. Who waited here with the broken token asks
 * first, and so keeps its place: within HFI_PACE_NS. */
static void release_revoked(struct hfi_lock *lock, uint64_t grant, const struct hfi_message *message)
{
    uint64_t random;
    if (!names_revoked(lock, message, grant, &random))
        return;
    int64_t now = hfi_lock_enter(lock);
    int64_t not_before = time_to_stop(lock, grant), least = now + HFI_PACE_NS;
    give_back_revoked(lock, grant, random, not_before > least ? not_before : least, now);
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
}

/* The number of a grant that is long over may be another lock's by now, so the key goes before it. */
static void clear_break(hf_client *client, struct hfi_lock *by_grant, uint64_t grant, const struct hfi_message *message)
{
    struct hfi_lock *by_key = hfi_table_by_key(client, message->key, message->key_size);
    if (by_key != NULL) {
        release_revoked(by_key, grant, message);
        hfi_table_unref(by_key);
    } else if (by_grant != NULL) {
        release_revoked(by_grant, grant, message);
    }
}

void hfi_closing_heal(hf_client *client, struct hfi_lock *lock, uint64_t grant, uint64_t random,
                      const struct hfi_message *message)
{
    bool found = lock != NULL && hurry(lock, grant, random);
    if (message->letter == 'B')
        clear_break(client, lock, grant, message);
    else if (!found && (message->letter == 'G' || message->letter == 'R'))
        release_forgotten(client, grant, random, message);
}

void hfi_closing_hasten(struct hfi_lock *lock, int64_t now)
{
    for (struct hfi_closing *closing = lock->closings; closing != NULL; closing = closing->next) {
        if (closing->asked)
            continue;
        closing->not_before_ns = 0;
        send_locked(closing, now);
    }
}

static void stop(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    HFI_PERTURB("closing-stopped");
    (void)pthread_mutex_lock(&lock->mutex);
    while (lock->closings != NULL) {
        struct hfi_closing *closing = lock->closings;
        tell_locked(closing, HF_UNKNOWN);
        closing->references++;
        finish_locked(closing);
        if (--closing->references == 0)
            end(closing); /* not the last reference to the lock: the table's walk has one */
    }
    (void)pthread_mutex_unlock(&lock->mutex);
}

void hfi_closing_stop(hf_client *client)
{
    hfi_table_each(client, stop, NULL);
}
