/* SPDX-License-Identifier: MIT */
/* retire.c - see retire.h. Which tokens are retired; retirement.c sends their releases. */
#include "core/lock/retire.h"
#include "core/context/dialects.h"
#include "core/context/cached.h"
#include "core/lock/retirement.h"
#include "core/lock/table.h"
#include "core/policy/pace.h"
#include "base/perturb.h"

#include <stdlib.h>
#include <string.h>

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
    if (hfi_retirement_find(lock, token) != NULL)
        return;
    int64_t ends = end_of_another(lock, now);
    struct hfi_retirement *retirement = hfi_retirement_begin(lock, token, ends, ends);
    if (retirement == NULL)
        return;
    retirement->not_before_ns = not_before;
    hfi_retirement_send(retirement, now);
}

void hfi_retire_revoked(struct hfi_lock *lock, struct hfi_token token, int64_t now)
{
    give_back_revoked(lock, token, hfi_after_ms(now, lock->entry.rules->guard_ms), now);
}

static bool names_revoked(const struct hfi_lock *lock, const struct hfi_message *message, uint64_t grant,
                          struct hfi_token *revoked)
{
    return hfi_token_is_left_of(&lock->client->identity, message->rest, message->rest_size, grant, revoked);
}

void hfi_retire_note_break(struct hfi_lock *lock, const struct hfi_message *message)
{
    HFI_ASSERT_HELD(lock->mutex);
    struct hfi_token revoked;
    if (names_revoked(lock, message, lock->token.grant, &revoked) && revoked.random != lock->token.random)
        lock->revoked = revoked.random;
}

void hfi_retire_begin(struct hfi_lock *lock, int64_t now, bool wanted, struct hfi_releaser *releaser)
{
    struct hfi_token revoked = {lock->token.grant, lock->revoked};
    lock->revoked = 0;
    if (revoked.random != 0 && releaser != NULL) { /* the holder has stopped */
        releaser->revoked = true;
        give_back_revoked(lock, revoked, now, now);
    } else if (revoked.random != 0) {
        hfi_retire_revoked(lock, revoked, now);
    }
    int64_t ends = end_of_key(lock, now);
    struct hfi_retirement *retirement = hfi_retirement_begin(lock, lock->token, ends, lock->there ? ends : 0);
    if (retirement != NULL) {
        retirement->releaser = releaser;
        retirement->of = lock;
        retirement->wanted = wanted;
        retirement->in_doubt.unanswered = lock->in_doubt;
        retirement->in_doubt.last_chance_us = lock->last_chance_us;
        retirement->in_doubt.last_chance_ns = lock->last_chance_ns;
        hfi_retirement_send(retirement, now);
    } else if (releaser != NULL) {
        releaser->status = HF_UNKNOWN;
        releaser->done = true;
    }
}

void hfi_retire_answered_elsewhere(struct hfi_lock *lock, struct hfi_token token, bool there, int64_t now)
{
    struct hfi_retirement *retirement = hfi_retirement_find(lock, token);
    if (there)
        hfi_retire_again(lock, token, false, 0, now);
    if (retirement == NULL) /* begun just now, by its release; or over */
        return;
    retirement->in_doubt.unanswered = false; /* it was the only question with this token */
    retirement->once_more = there && retirement->asking;
    hfi_retirement_send(retirement, now);
}

void hfi_retire_again(struct hfi_lock *lock, struct hfi_token token, bool in_doubt, int64_t last_chance_us, int64_t now)
{
    int64_t ends = end_of_another(lock, now);
    struct hfi_retirement *retirement = hfi_retirement_find(lock, token);
    bool begun = retirement == NULL;
    if (begun)
        retirement = hfi_retirement_begin(lock, token, ends, ends);
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
        hfi_retirement_send(retirement, now);
}

/* Until when a revoked holder of this grant has time to stop; 0: none has. A second break, which leaves another token
 * of the grant, does not shorten that time. */
static int64_t time_to_stop(struct hfi_lock *lock, uint64_t grant)
{
    int64_t until = 0;
    for (const struct hfi_retirement *at = hfi_lock_home(lock)->retirements; at != NULL; at = at->next)
        if (at->token.grant == grant && at->not_before_ns > until)
            until = at->not_before_ns;
    return until;
}

/* One failure ends this retirement: a process that wants the lock publishes R again. A repeated message, whatever its
 * origin, costs one release per HFI_PACE_NS and not one per round trip. */
static void release_forgotten_locked(struct hfi_lock *lock, struct hfi_token token, int64_t now)
{
    struct hfi_retirement *retirement = hfi_retirement_find(lock, token);
    if (retirement == NULL) {
        int64_t not_before = time_to_stop(lock, token.grant);
        uint64_t mark = atomic_load(hfi_retirement_mark(lock->client->healed, token));
        int64_t paced = hfi_in_doubt_heal_ns(mark, hfi_token_hash(token), now);
        retirement = hfi_retirement_begin(lock, token, now, end_of_another(lock, now));
        if (retirement == NULL)
            return;
        retirement->not_before_ns = not_before > paced ? not_before : paced;
        retirement->in_doubt.unanswered = true; /* as far as the mark is concerned: the token may come alive again */
    }
    hfi_retirement_send(retirement, now);
}

/* The locks of the message's key, one after the other: that of no dialect, then those of the dialects. Takes over the reference to
 * `last`. */
static struct hfi_lock *next_by_key(hf_client *client, const struct hfi_message *message, struct hfi_lock *last)
{
    const struct hfi_dialect *dialect = last == NULL ? NULL : last->keys.dialect;
    struct hfi_lock *lock = last == NULL ? hfi_table_by_key(client, NULL, message->key, message->key_size) : NULL;
    if (last != NULL)
        hfi_table_unref(last);
    dialect = dialect == NULL ? hfi_dialects_first(client) : dialect->next;
    for (; lock == NULL && dialect != NULL; dialect = dialect->next)
        lock = hfi_table_by_key(client, dialect, message->key, message->key_size);
    return lock;
}

/* A message names a token that was given up: its acquire was executed long after that (a native one has no not_after),
 * or its release was lost with a server that failed over. The sender of the message may have made up token and key:
 * the release deletes only this very token, which is not in use. */
static void release_forgotten(hf_client *client, struct hfi_token token, const struct hfi_message *message)
{
    uint64_t mark = atomic_load(hfi_retirement_mark(client->retired, token));
    if (hfi_in_doubt_has_crossed(mark, hfi_token_hash(token), hfi_now(client->clock)))
        return;
    for (struct hfi_lock *lock, *last = NULL; (lock = next_by_key(client, message, last)) != NULL; last = lock) {
        release_forgotten_locked(lock, token, hfi_lock_enter(lock));
        hfi_lock_leave(lock);
    }
}

/* Sends the release of a token that this lock retires. False: it does not retire this token. */
static bool hurry(struct hfi_lock *lock, struct hfi_token token)
{
    HFI_PERTURB("closing-found");
    int64_t now = hfi_lock_enter(lock);
    struct hfi_retirement *retirement = hfi_retirement_find(lock, token);
    if (retirement != NULL)
        hfi_retirement_send(retirement, now);
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

/* The slot of an old grant number may belong to another lock by now: then its key tells. If it does not, its retirements know how
 * long the revoked holder has to stop; a key alone finds the lock of those that want it alone, not that of its readers. */
static void clear_break(hf_client *client, struct hfi_lock *by_grant, uint64_t grant, const struct hfi_message *message)
{
    bool has_key = by_grant != NULL && by_grant->keys.lock_size == message->key_size &&
                   memcmp(by_grant->keys.lock, message->key, message->key_size) == 0;
    struct hfi_lock *by_key = has_key ? NULL : next_by_key(client, message, NULL);
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
        hfi_retirement_send(retirement, now);
    }
}

static void stop(struct hfi_lock *lock, void *arg)
{
    (void)arg;
    HFI_PERTURB("closing-stopped");
    hfi_mutex_lock(lock->mutex);
    while (lock->retirements != NULL)
        hfi_retirement_abandon(lock->retirements); /* not the last reference to the lock: hfi_table_each() has one */
    hfi_mutex_unlock(lock->mutex);
}

void hfi_retire_stop(hf_client *client)
{
    hfi_table_each(client, stop, NULL);
}

void hfi_retire_free_cached(hf_client *client)
{
    for (int i = 0; i < HFI_CACHED; i++)
        free(hfi_cached_take(&client->cached[i].retirement));
}
