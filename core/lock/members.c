/* SPDX-License-Identifier: MIT */
/* members.c - see members.h. One question about a set is under way at a time; what changes meanwhile is asked about behind it.
 * Where client tracking tells of changes, it tells of one: each question tracks the set anew. */
#include "core/lock/members.h"
#include "core/context/call.h"
#include "core/lock/key_events.h"
#include "core/lock/lock.h"
#include "core/lock/table.h"
#include "core/lock/tracking.h"
#include "core/protocol/dialect.h"
#include "core/protocol/wire.h"
#include "base/perturb.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

struct members {
    hf_client *client;
    const struct hfi_dialect *dialect;
    int64_t tracker; /* the question also has it told of the set's next change; 0: nobody */
    int count, room;
    struct hfi_lock **locks; /* references */
};

enum { IDLE, ASKED, ASK_AGAIN };

static void note(struct hfi_lock *lock, void *arg)
{
    struct members *members = arg;
    if (lock->keys.dialect != members->dialect)
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
    texts[1] = members->dialect->parameter;
    for (size_t i = 0; i < count; i++) {
        const struct hfi_keys *keys = i < 2 ? NULL : &members->locks[i - 2]->keys;
        texts[i] = keys != NULL ? keys->name : texts[i];
        sizes[i] = keys != NULL ? keys->name_size : strlen(texts[i]);
    }
    struct hfi_command *command = members->tracker > 0 ? hfi_wire_tracked(members->tracker, (int)count, texts, sizes)
                                                       : hfi_command_new((int)count, texts, sizes);
    free(texts);
    return command;
}

/* reply NULL: none. Before 6.2 there is no such question, and each one asks. */
static void end(struct members *members, const redisReply *reply)
{
    hf_client *client = members->client;
    const struct hfi_dialect *dialect = members->dialect;
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
    if (atomic_exchange(&client->members[dialect->number], IDLE) == ASK_AGAIN)
        hfi_members_changed(client, dialect);
    hfi_client_unref(client);
}

static void answered(struct hfi_command *command)
{
    end(command->self, command->outcome == HFI_ANSWERED ? command->reply : NULL);
}

void hfi_members_changed(hf_client *client, const struct hfi_dialect *dialect)
{
    _Atomic(int) *state = &client->members[dialect->number];
    int was = IDLE;
    if (!atomic_compare_exchange_strong(state, &was, ASKED)) {
        if (was == ASK_AGAIN || atomic_compare_exchange_strong(state, &was, ASK_AGAIN))
            return;
        hfi_members_changed(client, dialect); /* it has been answered meanwhile */
        return;
    }
    struct members *members = calloc(1, sizeof *members);
    if (members == NULL) { /* the timed re-check finds it */
        atomic_store(state, IDLE);
        return;
    }
    hfi_client_ref(client);
    members->client = client;
    members->dialect = dialect;
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
    hfi_call_list(client, lane, command, answered, members, hfi_now(client->clock));
    hfi_lane_flush(lane);
    if (tracker > 0 && hfi_tracking_id(client) != tracker) /* the lane may redirect to one that is gone, as in tracking.c */
        hfi_members_changed(client, dialect);
}
