/* SPDX-License-Identifier: MIT */
/* retire.c - see retire.h. in_doubt.c decides when a retirement is over, and when the next release is sent. */
#include "core/lock/retire.h"
#include "core/context/call.h"
#include "core/protocol/script_error.h"
#include "core/policy/in_doubt.h"
#include "core/protocol/scripts.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct hfi_retirement {
    struct hfi_retirement *next; /* in lock->retirements */
    struct hfi_lock *lock;    /* a reference; its mutex guards the fields below */
    struct hfi_alarm alarm;
    struct hfi_token token;
    struct hfi_in_doubt in_doubt;
    int64_t left_ns;          /* until then the server may have a key or a place of the token; 0: it never had one */
    int64_t not_before_ns;    /* earliest time of the next release; a revoked holder has until then to stop */
    struct hfi_releaser *releaser;
    bool    asked;            /* a release was sent at least once */
    bool    asking;
    bool    once_more;        /* an acquire of the token was executed, perhaps behind the release in flight */
    bool    over;             /* no longer in the list */
    int     references;       /* of the list, a command in flight, the armed alarm */
};

/* Called after unlocking, once the last reference is gone. */
static void end(struct hfi_retirement *retirement)
{
    struct hfi_lock *lock = retirement->lock;
    free(retirement);
    hfi_table_unref(lock);
}

static void tell_locked(struct hfi_retirement *retirement, hf_status status)
{
    struct hfi_releaser *releaser = retirement->releaser;
    if (releaser == NULL)
        return;
    retirement->releaser = NULL;
    releaser->status = status;
    releaser->done = true;
    hfi_park_wake(&releaser->park);
}

static void arm_locked(struct hfi_retirement *retirement, int64_t at_ns)
{
    hf_client *client = retirement->lock->client;
    if (atomic_load(&client->closing))
        return;
    if (at_ns < retirement->not_before_ns)
        at_ns = retirement->not_before_ns;
    if (!hfi_watchdog_arm(client->watchdog, &retirement->alarm.timer, at_ns))
        retirement->references++;
}

/* Ends the retirement: no acquire of the token can be executed any more, or no further release will be sent. Never
 * drops the last reference: the caller has one. */
static void finish_locked(struct hfi_retirement *retirement)
{
    struct hfi_retirement **at = &retirement->lock->retirements;
    if (retirement->over)
        return;
    while (*at != retirement)
        at = &(*at)->next;
    *at = retirement->next;
    retirement->over = true;
    retirement->references--;
    if (hfi_watchdog_arm(retirement->lock->client->watchdog, &retirement->alarm.timer, HFI_NEVER))
        retirement->references--;
}

/* The retirement of a token ends here, though the server may have a key or a place of it until left_ns. A client that
 * closes before that moment reports it: client->keys_left_ns is the latest of them. */
static void note_left(hf_client *client, int64_t left_ns)
{
    int64_t until = atomic_load(&client->keys_left_ns);
    while (left_ns > until && !atomic_compare_exchange_weak(&client->keys_left_ns, &until, left_ns))
        ;
}

static struct hfi_retirement *find_locked(const struct hfi_lock *lock, struct hfi_token token)
{
    struct hfi_retirement *retirement = lock->retirements;
    while (retirement != NULL && !hfi_token_is_same(retirement->token, token))
        retirement = retirement->next;
    return retirement;
}

/* The word for a token's mark; a mark ages (in_doubt.h). client->retired has the marks of tokens that were given back
 * a moment ago and are over: a message that names one is merely late. That is common, for the next waiter's R often
 * crosses the holder's release. A token that may come alive again is marked in client->healed instead: its mark paces
 * the next release that a message leads to. */
static _Atomic(uint64_t) *mark_of(_Atomic(uint64_t) marks[HFI_MARKS], struct hfi_token token)
{
    return &marks[token.random % HFI_MARKS];
}

/* Puts the server's refusal into the error of the releasing thread. */
static void note_refusal(const struct hfi_retirement *retirement, const struct hfi_command *command)
{
    hf_error *why = retirement->releaser != NULL ? retirement->releaser->why : NULL;
    if (why == NULL)
        return;
    (void)hfi_reply_fail(command->reply, "the server refuses to release", hfi_pool_server_name(retirement->lock->client->pool),
                         why);
    hfi_script_error_annotate(command->reply->str, &hfi_script_release, why);
}

static void judge_locked(struct hfi_retirement *retirement, const struct hfi_command *command, const struct hfi_script_reply *said,
                         int64_t now)
{
    hf_client *client = retirement->lock->client;
    int64_t again = HFI_NEVER;
    bool known = said->word[0] != 0;
    bool refused = command->outcome == HFI_ANSWERED && command->reply->type == REDIS_REPLY_ERROR;
    bool over = known && hfi_in_doubt_is_over(&retirement->in_doubt, said->now_us, now);
    bool was_ours = strcmp(said->word, "FREE") == 0 || strcmp(said->word, "HANDED") == 0;
    if (strcmp(said->word, "HANDED") == 0)
        hfi_count(client, hand_offs_given);
    if (refused)
        note_refusal(retirement, command);
    tell_locked(retirement, !known ? HF_UNKNOWN : was_ours ? HF_OK : HF_LOST);
    retirement->not_before_ns = now + HFI_PACE_NS;
    if (!known)
        again = hfi_in_doubt_failed_ns(&retirement->in_doubt, refused, now);
    else if (!over)
        again = hfi_in_doubt_again_ns(&retirement->in_doubt, said->now_us, now);
    else if (!retirement->in_doubt.unanswered)
        atomic_store(mark_of(client->retired, retirement->token), hfi_in_doubt_over_mark(retirement->token.random, now));
    if (again == HFI_NEVER && retirement->in_doubt.unanswered)
        atomic_store(mark_of(client->healed, retirement->token), hfi_in_doubt_over_mark(retirement->token.random, now));
    if (again != HFI_NEVER) {
        arm_locked(retirement, again);
        return;
    }
    if (!over)
        note_left(client, retirement->left_ns);
    finish_locked(retirement);
}

static void send_locked(struct hfi_retirement *retirement, int64_t now);

static void released(struct hfi_command *command)
{
    struct hfi_retirement *retirement = command->self;
    struct hfi_lock *lock = retirement->lock;
    struct hfi_script_reply said = {"", 0, 0};
    if (command->outcome == HFI_ANSWERED) {
        said = hfi_wire_script_reply(command->reply);
        hfi_server_time_observe(lock->client, hfi_lane_index(lock->lane), said.now_us, command->stamp_ns, command->answered_ns);
    }
    bool more = strcmp(said.word, "MORE") == 0; /* dropped as many old records as allowed; key not yet released */
    HFI_PERTURB("release-answered");
    int64_t now = hfi_lock_enter(lock);
    retirement->asking = false;
    more = more || retirement->once_more;
    retirement->once_more = false;
    if (more)
        send_locked(retirement, now);
    else
        judge_locked(retirement, command, &said, now);
    bool last = --retirement->references == 0;
    struct hfi_lane *lane = lock->lane; /* see hfi_lock_leave */
    hfi_mutex_unlock(&lock->mutex);
    if (more)
        hfi_lane_flush(lane);
    if (last)
        end(retirement);
}

/* Sends a release now if it is due and none is in flight. Without memory for the command the alarm tries again. */
static void send_locked(struct hfi_retirement *retirement, int64_t now)
{
    struct hfi_lock *lock = retirement->lock;
    if (retirement->asking)
        return;
    if (now < retirement->not_before_ns) {
        arm_locked(retirement, retirement->not_before_ns);
        return;
    }
    struct hfi_command *command = hfi_wire_release(&lock->client->identity, &lock->keys, retirement->token);
    if (command == NULL) {
        tell_locked(retirement, HF_UNKNOWN);
        arm_locked(retirement, now + HFI_IN_DOUBT_RETRY_NS);
        return;
    }
    retirement->asked = retirement->asking = true;
    retirement->references++;
    HFI_PERTURB("release-to-list");
    hfi_call_list(lock->client, lock->lane, command, released, retirement, now);
}

static void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hfi_retirement *retirement = hfi_container_of(alarm, struct hfi_retirement, alarm);
    struct hfi_lock *lock = retirement->lock;
    HFI_PERTURB("closing-rings");
    hfi_mutex_lock(&lock->mutex);
    if (!retirement->over)
        send_locked(retirement, tick->now);
    bool last = --retirement->references == 0;
    hfi_lock_leave(lock);
    if (last)
        end(retirement);
}

/* Adds a retirement to the lock's list. ends_ns: when the key has expired by itself. NULL: no memory; the key is left
 * to expire, and noted. */
static struct hfi_retirement *begin(struct hfi_lock *lock, struct hfi_token token, int64_t ends_ns, int64_t left_ns)
{
    struct hfi_retirement *retirement = calloc(1, sizeof *retirement);
    if (retirement == NULL) {
        note_left(lock->client, left_ns);
        return NULL;
    }
    hfi_table_ref(lock);
    retirement->lock = lock;
    retirement->alarm.ring = ring;
    retirement->references = 1;
    retirement->token = token;
    retirement->in_doubt.ends_ns = ends_ns;
    retirement->left_ns = left_ns;
    retirement->next = lock->retirements;
    lock->retirements = retirement;
    return retirement;
}

/* When a key with the current token has certainly expired: all commands that could create or prolong it were sent by
 * now. */
static int64_t end_of_key(const struct hfi_lock *lock, int64_t now)
{
    return hfi_after_ms(now, lock->client->command_ms + lock->may_live_ms);
}

/* As end_of_key, for a token that is not, or not certainly, the one sent last: the TTL that was asked for with it is
 * not known any more. */
static int64_t end_of_another(const struct hfi_lock *lock, int64_t now)
{
    const hf_client *client = lock->client;
    int64_t usual_ms = client->lease_ms + hfi_guard_ms(client->lease_ms, lock->entry.rules->guard_ms) +
                       3 * hfi_recheck_ms(INT64_MAX, UINT64_MAX, INT64_MAX);
    int64_t longest_ms = atomic_load(&client->longest_ms);
    return hfi_after_ms(now, client->command_ms + (usual_ms > longest_ms ? usual_ms : longest_ms));
}

static void give_back_revoked(struct hfi_lock *lock, struct hfi_token token, int64_t not_before, int64_t now)
{
    if (find_locked(lock, token) != NULL)
        return;
    int64_t ends = end_of_another(lock, now);
    struct hfi_retirement *retirement = begin(lock, token, ends, ends);
    if (retirement == NULL)
        return;
    retirement->not_before_ns = not_before;
    send_locked(retirement, now);
}

void hfi_retire_revoked(struct hfi_lock *lock, struct hfi_token token, int64_t now)
{
    give_back_revoked(lock, token, hfi_after_ms(now, lock->entry.rules->guard_ms), now);
}

static bool names_revoked(const struct hfi_lock *lock, const struct hfi_message *message, uint64_t grant,
                          struct hfi_token *revoked)
{
    return hfi_token_is_of_grant(&lock->client->identity, message->rest, message->rest_size, grant, revoked);
}

void hfi_retire_note_break(struct hfi_lock *lock, const struct hfi_message *message)
{
    struct hfi_token revoked;
    if (names_revoked(lock, message, lock->token.grant, &revoked) && revoked.random != lock->token.random)
        lock->revoked = revoked;
}

void hfi_retire_begin(struct hfi_lock *lock, int64_t now, struct hfi_releaser *releaser)
{
    struct hfi_token revoked = lock->revoked;
    lock->revoked.grant = 0;
    if (revoked.grant != 0 && releaser != NULL) /* the holder has stopped */
        give_back_revoked(lock, revoked, now, now);
    else if (revoked.grant != 0)
        hfi_retire_revoked(lock, revoked, now);
    int64_t ends = end_of_key(lock, now);
    struct hfi_retirement *retirement = begin(lock, lock->token, ends, lock->there ? ends : 0);
    if (retirement != NULL) {
        retirement->releaser = releaser;
        retirement->in_doubt.unanswered = lock->in_doubt;
        retirement->in_doubt.last_chance_us = lock->last_chance_us;
        retirement->in_doubt.last_chance_ns = lock->last_chance_ns;
        send_locked(retirement, now);
    } else if (releaser != NULL) {
        releaser->status = HF_UNKNOWN;
        releaser->done = true;
    }
}

void hfi_retire_answered_elsewhere(struct hfi_lock *lock, struct hfi_token token, bool there, int64_t now)
{
    struct hfi_retirement *retirement = find_locked(lock, token);
    if (there)
        hfi_retire_again(lock, token, false, 0, now);
    if (retirement == NULL) /* begun just now, by its release; or over */
        return;
    retirement->in_doubt.unanswered = false; /* it was the only question with this token */
    retirement->once_more = there && retirement->asking;
    send_locked(retirement, now);
}

void hfi_retire_again(struct hfi_lock *lock, struct hfi_token token, bool in_doubt, int64_t last_chance_us, int64_t now)
{
    int64_t ends = end_of_another(lock, now);
    struct hfi_retirement *retirement = find_locked(lock, token);
    bool begun = retirement == NULL;
    if (begun)
        retirement = begin(lock, token, ends, ends);
    if (retirement == NULL)
        return;
    retirement->left_ns = ends > retirement->left_ns ? ends : retirement->left_ns;
    if (in_doubt)
        retirement->in_doubt.unanswered = true;
    else if (ends > retirement->in_doubt.ends_ns)
        retirement->in_doubt.ends_ns = ends;
    if (in_doubt && last_chance_us > retirement->in_doubt.last_chance_us)
        retirement->in_doubt.last_chance_us = last_chance_us;
    if (begun && in_doubt) /* it is most likely to be executed soon */
        retirement->in_doubt.last_chance_ns = hfi_after_ms(now, lock->client->command_ms);
    if (begun) /* else its release follows this acquire */
        send_locked(retirement, now);
}

/* Until when a revoked holder of this grant has time to stop; 0: none has. A second break, which leaves another token
 * of the grant, does not shorten that time. */
static int64_t time_to_stop(const struct hfi_lock *lock, uint64_t grant)
{
    int64_t until = 0;
    for (const struct hfi_retirement *at = lock->retirements; at != NULL; at = at->next)
        if (at->token.grant == grant && at->not_before_ns > until)
            until = at->not_before_ns;
    return until;
}

/* One failure ends this retirement: a process that wants the lock publishes R again. A repeated message, whatever its
 * origin, costs one release per HFI_PACE_NS and not one per round trip. */
static void release_forgotten_locked(struct hfi_lock *lock, struct hfi_token token, int64_t now)
{
    struct hfi_retirement *retirement = find_locked(lock, token);
    if (retirement == NULL) {
        int64_t not_before = time_to_stop(lock, token.grant);
        int64_t paced = hfi_in_doubt_heal_ns(atomic_load(mark_of(lock->client->healed, token)), token.random, now);
        retirement = begin(lock, token, now, end_of_another(lock, now));
        if (retirement == NULL)
            return;
        retirement->not_before_ns = not_before > paced ? not_before : paced;
        retirement->in_doubt.unanswered = true; /* as far as the mark is concerned: the token may come alive again */
    }
    send_locked(retirement, now);
}

/* A message names a token that was given up: its acquire was executed long after that (a native one has no not_after),
 * or its release was lost with a server that failed over. The sender of the message may have made up token and key:
 * the release deletes only this very token, which is not in use. */
static void release_forgotten(hf_client *client, struct hfi_token token, const struct hfi_message *message)
{
    if (hfi_in_doubt_has_crossed(atomic_load(mark_of(client->retired, token)), token.random, hfi_now(client->clock)))
        return;
    struct hfi_lock *lock = hfi_table_by_key(client, message->key, message->key_size);
    if (lock == NULL)
        return;
    release_forgotten_locked(lock, token, hfi_lock_enter(lock));
    hfi_lock_leave(lock);
    hfi_table_unref(lock);
}

/* Sends the release of a token that this lock retires. False: it does not retire this token. */
static bool hurry(struct hfi_lock *lock, struct hfi_token token)
{
    HFI_PERTURB("closing-found");
    int64_t now = hfi_lock_enter(lock);
    struct hfi_retirement *retirement = find_locked(lock, token);
    if (retirement != NULL)
        send_locked(retirement, now);
    hfi_lock_leave(lock);
    return retirement != NULL;
}

/* A break of a token that is not held here: the token that the break left is not held either, and is released,
 * HFI_PACE_NS later at the earliest. A waiter here with the broken token asks within that time, and so keeps its
 * place. */
static void release_revoked(struct hfi_lock *lock, uint64_t grant, const struct hfi_message *message)
{
    struct hfi_token revoked;
    if (!names_revoked(lock, message, grant, &revoked))
        return;
    int64_t now = hfi_lock_enter(lock);
    int64_t not_before = time_to_stop(lock, grant), least = now + HFI_PACE_NS;
    give_back_revoked(lock, revoked, not_before > least ? not_before : least, now);
    hfi_lock_leave(lock);
}

/* The slot of an old grant number may belong to another lock by now, so the lock found by key is preferred. */
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

void hfi_retire_heal(hf_client *client, struct hfi_lock *lock, struct hfi_token token, const struct hfi_message *message)
{
    bool found = lock != NULL && hurry(lock, token);
    if (message->letter == 'B')
        clear_break(client, lock, token.grant, message);
    else if (!found && (message->letter == 'G' || message->letter == 'R'))
        release_forgotten(client, token, message);
}

void hfi_retire_hasten(struct hfi_lock *lock, bool last_time, int64_t now)
{
    for (struct hfi_retirement *retirement = lock->retirements; retirement != NULL; retirement = retirement->next) {
        if (retirement->asked && !last_time)
            continue;
        retirement->not_before_ns = 0;
        send_locked(retirement, now);
    }
}

static void stop(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    HFI_PERTURB("closing-stopped");
    hfi_mutex_lock(&lock->mutex);
    while (lock->retirements != NULL) {
        struct hfi_retirement *retirement = lock->retirements;
        tell_locked(retirement, HF_UNKNOWN);
        note_left(lock->client, retirement->left_ns);
        retirement->references++;
        finish_locked(retirement);
        if (--retirement->references == 0)
            end(retirement); /* not the last reference to the lock: hfi_table_each() has one */
    }
    hfi_mutex_unlock(&lock->mutex);
}

void hfi_retire_stop(hf_client *client)
{
    hfi_table_each(client, stop, NULL);
}
