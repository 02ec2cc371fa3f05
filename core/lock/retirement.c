/* SPDX-License-Identifier: MIT */
/* retirement.c - see retirement.h. */
#include "core/lock/retirement.h"
#include "core/context/call.h"
#include "core/context/cached.h"
#include "core/protocol/script_error.h"
#include "core/protocol/scripts.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/policy/pace.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "base/thread.h"
#include "pool/replies.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* Called after unlocking, once the last reference is gone. */
static void end(struct hfi_retirement *retirement)
{
    struct hfi_lock *lock = retirement->lock;
    free(hfi_cached_leave(lock->client, retirement->cached, retirement));
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
    if (retirement->over)
        return;
    *retirement->link = retirement->next;
    if (retirement->next != NULL)
        retirement->next->link = retirement->link;
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

struct hfi_retirement *hfi_retirement_find(struct hfi_lock *lock, struct hfi_token token)
{
    struct hfi_retirement *retirement = hfi_lock_home(lock)->retirements;
    while (retirement != NULL && !hfi_token_is_same(retirement->token, token))
        retirement = retirement->next;
    return retirement;
}

_Atomic(uint64_t) *hfi_retirement_mark(_Atomic(uint64_t) marks[HFI_MARKS], struct hfi_token token)
{
    return &marks[token.random % HFI_MARKS];
}

static void mark_over(_Atomic(uint64_t) marks[HFI_MARKS], struct hfi_token token, int64_t now)
{
    atomic_store(hfi_retirement_mark(marks, token), hfi_in_doubt_over_mark(hfi_token_hash(token), now));
}

void hfi_retirement_note_refusal(const struct hfi_lock *lock, const struct hfi_command *command, struct hfi_releaser *releaser)
{
    hf_error *why = releaser != NULL ? releaser->why : NULL;
    if (why == NULL)
        return;
    (void)hfi_reply_fail(command->reply, "the server refuses to release", hfi_pool_server_name(lock->client->pool), why);
    hfi_script_error_annotate(command->reply->str, command->script != NULL ? command->script : hfi_script_release, why);
}

/* A break of which no message has come has left another token: that is released as well, once its holder has had its time to
 * stop, or at once where that holder is the one that gives it back. */
static HFI_RARE void release_left(struct hfi_retirement *retirement, const struct redisReply *left, int64_t now)
{
    struct hfi_lock *lock = retirement->lock;
    struct hfi_releaser *releaser = retirement->releaser;
    struct hfi_token token;
    if (!hfi_token_is_left_of(&lock->client->identity, left->str, left->len, retirement->token.grant, &token))
        return;
    if (releaser != NULL)
        releaser->revoked = true;
    if (hfi_retirement_find(lock, token) != NULL)
        return;
    struct hfi_retirement *next = hfi_retirement_begin(lock, token, retirement->left_ns, retirement->left_ns);
    if (next == NULL)
        return;
    bool has_stopped = releaser != NULL || atomic_load(&lock->client->closing);
    next->not_before_ns = has_stopped ? now : hfi_after_ms(now, lock->entry.rules->guard_ms);
    hfi_retirement_send(next, now);
}

static void judge_locked(struct hfi_retirement *retirement, const struct hfi_command *command, const struct hfi_script_reply *said,
                         int64_t now)
{
    hf_client *client = retirement->lock->client;
    int64_t again = HFI_NEVER;
    bool known = said->word[0] != 0;
    bool refused = command->outcome == HFI_ANSWERED && command->reply->type == REDIS_REPLY_ERROR;
    bool over = known && hfi_in_doubt_is_over(&retirement->in_doubt, said->now_us, now);
    bool was_ours = strcmp(said->word, "FREE") == 0 || strcmp(said->word, "HANDED") == 0 || strcmp(said->word, "OTHERS") == 0;
    if (strcmp(said->word, "HANDED") == 0)
        hfi_count(client, hand_offs_given);
    if ((was_ours || !known) && command->outcome != HFI_UNSENT && retirement->of != NULL)
        hfi_lock_overtake(retirement->of, NULL, retirement->token.grant, 0, known ? HFI_OVERTAKEN : HFI_MAYBE_OVERTAKEN);
    if (refused)
        hfi_retirement_note_refusal(retirement->lock, command, retirement->releaser);
    tell_locked(retirement, !known ? HF_UNKNOWN : was_ours ? HF_OK : HF_LOST);
    retirement->not_before_ns = now + HFI_PACE_NS;
    if (!known)
        again = hfi_in_doubt_failed_ns(&retirement->in_doubt, refused, now);
    else if (!over)
        again = hfi_in_doubt_again_ns(&retirement->in_doubt, said->now_us, now);
    else if (!retirement->in_doubt.unanswered)
        mark_over(client->retired, retirement->token, now);
    if (again == HFI_NEVER && retirement->in_doubt.unanswered)
        mark_over(client->healed, retirement->token, now);
    if (again != HFI_NEVER) {
        arm_locked(retirement, again);
        return;
    }
    if (!over)
        note_left(client, retirement->left_ns);
    finish_locked(retirement);
}

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
    bool revoked = strcmp(said.word, "REVOKED") == 0;
    HFI_PERTURB("release-answered");
    int64_t now = hfi_lock_enter(lock);
    retirement->asking = false;
    more = more || retirement->once_more;
    retirement->once_more = false;
    if (revoked)
        release_left(retirement, command->reply->element[2], now);
    if (more)
        hfi_retirement_send(retirement, now);
    else
        judge_locked(retirement, command, &said, now);
    bool last = --retirement->references == 0;
    struct hfi_lane *lane = lock->lane; /* see hfi_lock_leave */
    hfi_mutex_unlock(lock->mutex);
    if (more || revoked)
        hfi_lane_flush_posted(lane);
    if (last)
        end(retirement);
}

void hfi_retirement_send(struct hfi_retirement *retirement, int64_t now)
{
    struct hfi_lock *lock = retirement->lock;
    HFI_ASSERT_HELD(lock->mutex);
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
    if (retirement->wanted)
        (void)hfi_command_ping_first(command);
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
    hfi_mutex_lock(lock->mutex);
    if (!retirement->over)
        hfi_retirement_send(retirement, tick->now);
    bool last = --retirement->references == 0;
    hfi_lock_leave(lock);
    if (last)
        end(retirement);
}

/* When memory is short: what is given back must not wait for the end of its lease. */
static HFI_RARE struct hfi_retirement *left_by_any(hf_client *client)
{
    struct hfi_retirement *left = NULL;
    for (int i = 0; i < HFI_CACHED && left == NULL; i++)
        left = hfi_cached_take(&client->cached[i].retirement);
    return left;
}

struct hfi_retirement *hfi_retirement_begin(struct hfi_lock *lock, struct hfi_token token, int64_t ends_ns, int64_t left_ns)
{
    HFI_ASSERT_HELD(lock->mutex);
    _Atomic(void *) *cached = &lock->client->cached[hfi_thread_number() % HFI_CACHED].retirement;
    struct hfi_retirement *retirement = hfi_cached_take(cached);
    if (retirement == NULL)
        retirement = malloc(sizeof *retirement);
    if (retirement == NULL)
        retirement = left_by_any(lock->client);
    if (retirement == NULL) {
        note_left(lock->client, left_ns);
        return NULL;
    }
    lock = hfi_lock_home(lock);
    hfi_table_ref(lock);
    *retirement = (struct hfi_retirement){
        .lock = lock,
        .alarm.ring = ring,
        .references = 1,
        .token = token,
        .in_doubt.ends_ns = ends_ns,
        .left_ns = left_ns,
        .next = lock->retirements,
        .link = &lock->retirements,
        .cached = cached,
    };
    if (retirement->next != NULL)
        retirement->next->link = &retirement->next;
    lock->retirements = retirement;
    return retirement;
}

void hfi_retirement_abandon(struct hfi_retirement *retirement)
{
    tell_locked(retirement, HF_UNKNOWN);
    note_left(retirement->lock->client, retirement->left_ns);
    retirement->references++;
    finish_locked(retirement);
    if (--retirement->references == 0)
        end(retirement);
}
