/* SPDX-License-Identifier: MIT */
/* members.c - see members.h. One question about a set is under way at a time, or waits for its turn (pace.h); what changes
 * meanwhile is asked about behind it. Where client tracking tells of changes, it tells of one: each question tracks the set anew. */
#include "core/lock/members.h"
#include "core/context/call.h"
#include "core/context/dialects.h"
#include "core/lock/alarm.h"
#include "core/lock/key_events.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"
#include "core/lock/tracking.h"
#include "core/policy/pace.h"
#include "core/protocol/dialect.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct hfi_member_set { /* as a dialect's names have one */
    struct hfi_alarm alarm;
    hf_client *client;
    const struct hfi_dialect *dialect;
    _Atomic(int) state;
    int64_t paid_ns; /* belongs to who may ask: who changed IDLE to ASKED, `end` where that was changed again, the listener in DUE */
};

/* ASKED and ASK_AGAIN: a question is under way, or waits for its turn. DUE: its turn has come, and the listener is to ask. */
enum { IDLE, ASKED, ASK_AGAIN, DUE };

struct members {
    struct hfi_member_set *set;
    int64_t tracker; /* the question also has it told of the set's next change; 0: nobody */
    int count, room;
    struct hfi_lock **locks; /* references */
};

static void note(struct hfi_lock *lock, void *arg)
{
    struct members *members = arg;
    if (lock->keys.dialect != members->set->dialect)
        return;
    hfi_mutex_lock(lock->mutex);
    bool watched = lock->watched;
    hfi_mutex_unlock(lock->mutex);
    if (!watched)
        return;
    if (members->count == members->room) {
        int room = members->room > 0 ? 2 * members->room : 16;
        struct hfi_lock **more = realloc(members->locks, (size_t)room * sizeof *more);
        if (more == NULL) {
            hfi_key_events_requery(lock);
            return;
        }
        members->locks = more;
        members->room = room;
    }
    hfi_table_ref(lock);
    members->locks[members->count++] = lock;
}

static struct hfi_command *question(const struct members *members)
{
    const size_t count = 2 + (size_t)members->count;
    const char **texts = malloc(count * (sizeof *texts + sizeof(size_t)));
    if (texts == NULL)
        return NULL;
    size_t *sizes = (size_t *)(texts + count);
    texts[0] = "SMISMEMBER";
    texts[1] = members->set->dialect->parameter;
    for (size_t i = 0; i < count; i++) {
        const struct hfi_keys *keys = i < 2 ? NULL : &members->locks[i - 2]->keys;
        texts[i] = keys != NULL ? hfi_keys_name(keys) : texts[i];
        sizes[i] = keys != NULL ? keys->name_size : strlen(texts[i]);
    }
    struct hfi_command *command = members->tracker > 0 ? hfi_wire_tracked(members->tracker, (int)count, texts, sizes)
                                                       : hfi_command_new((int)count, texts, sizes);
    free(texts);
    return command;
}

static void begin(struct hfi_member_set *set);

/* reply NULL: none. Before 6.2 there is no such question, and each one asks. */
static void end(struct members *members, const redisReply *reply)
{
    struct hfi_member_set *set = members->set;
    hf_client *client = set->client;
    if (members->tracker > 0 && reply != NULL)
        reply = reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 ? reply->element[2] : NULL;
    bool told = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == (size_t)members->count;
    for (int i = 0; i < members->count; i++) {
        if (!told || reply->element[i]->type != REDIS_REPLY_INTEGER || reply->element[i]->integer == 0)
            hfi_key_events_requery(members->locks[i]);
        hfi_table_unref(members->locks[i]);
    }
    free(members->locks);
    free(members);
    HFI_PERTURB("members-to-idle");
    int asked = ASKED;
    if (!atomic_compare_exchange_strong(&set->state, &asked, IDLE))
        begin(set);
    hfi_client_unref(client);
}

static void answered(struct hfi_command *command)
{
    end(command->self, command->outcome == HFI_ANSWERED ? command->reply : NULL);
}

static void changed(struct hfi_member_set *set)
{
    int was = IDLE;
    if (atomic_compare_exchange_strong(&set->state, &was, ASKED))
        begin(set);
    else if (was == ASKED && !atomic_compare_exchange_strong(&set->state, &was, ASK_AGAIN))
        changed(set); /* it has been answered meanwhile */
}

/* This thread alone may ask. What changes from here on is asked about once more. */
static void ask(struct hfi_member_set *set, int64_t now)
{
    hf_client *client = set->client;
    struct members *members = calloc(1, sizeof *members);
    atomic_store(&set->state, members != NULL ? ASKED : IDLE);
    if (members == NULL) /* the timed re-check finds it */
        return;
    hfi_client_ref(client);
    members->set = set;
    set->paid_ns = hfi_pace_paid_ns(set->paid_ns, now); /* the search has its cost as well, whether anybody waits or not */
    members->tracker = hfi_tracking_id(client);
    hfi_table_each(client, note, members);
    struct hfi_command *command = members->count > 0 ? question(members) : NULL;
    if (command == NULL) {
        end(members, NULL);
        return;
    }
    int64_t tracker = members->tracker; /* when it is answered there is no *members */
    struct hfi_lane *lane = hfi_pool_lane(client->pool, HFI_LOCK_LANE, 0);
    command->optional = true;
    command->awaited = HFI_AWAITED_BY_NOBODY;
    hfi_call_list(client, lane, command, answered, members, now);
    hfi_lane_flush(lane);
    if (tracker > 0 && hfi_tracking_id(client) != tracker) /* the lane may redirect to one that is gone, as in tracking.c */
        changed(set);
}

/* To look for those that wait takes long where there are many names, and the watchdog has losses to tell of. */
static void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hfi_member_set *set = hfi_container_of(alarm, struct hfi_member_set, alarm);
    (void)tick;
    atomic_store(&set->state, DUE);
    hfi_pool_kick(set->client->pool);
}

void hfi_members_kicked(hf_client *client)
{
    for (const struct hfi_dialect *at = hfi_dialects_first(client); at != NULL; at = at->next) {
        struct hfi_member_set *set = atomic_load(&client->sets[at->number]);
        if (set != NULL && atomic_load(&set->state) == DUE)
            ask(set, hfi_now(client->clock));
    }
}

/* The state is ASKED or ASK_AGAIN. */
static void begin(struct hfi_member_set *set)
{
    int64_t now = hfi_now(set->client->clock), at = hfi_pace_next_ns(set->paid_ns, now);
    if (at <= now)
        ask(set, now);
    else if (!atomic_load(&set->client->closing))
        (void)hfi_watchdog_arm(set->client->watchdog, &set->alarm.timer, at);
}

/* NULL: no memory. */
static struct hfi_member_set *set_of(hf_client *client, const struct hfi_dialect *dialect)
{
    _Atomic(struct hfi_member_set *) *at = &client->sets[dialect->number];
    struct hfi_member_set *set = atomic_load(at), *made = set == NULL ? malloc(sizeof *made) : NULL;
    if (made == NULL)
        return set;
    *made = (struct hfi_member_set){.alarm.ring = ring, .client = client, .dialect = dialect};
    if (atomic_compare_exchange_strong(at, &set, made))
        return made;
    free(made);
    return set;
}

void hfi_members_changed(hf_client *client, const struct hfi_dialect *dialect)
{
    struct hfi_member_set *set = set_of(client, dialect);
    if (set != NULL)
        changed(set);
}

void hfi_members_free(hf_client *client)
{
    for (int i = 0; i < HFI_DIALECTS; i++)
        free(atomic_load(&client->sets[i]));
}
