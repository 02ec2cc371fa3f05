/* SPDX-License-Identifier: MIT */
/* deadlock.c - see deadlock.h. An alarm looks for waits (waits.h) and sends a probe along each; while nothing waits it is not
 * armed. Each step looks at one lock under its mutex, and none holds two. */
#include "core/lock/deadlock.h"
#include "core/context/call.h"
#include "core/lock/acquirer.h"
#include "core/lock/handle.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "core/lock/waits.h"
#include "core/protocol/probe.h"
#include "core/protocol/wire.h"
#include "base/error.h"
#include "base/perturb.h"
#include "base/random.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN       3   /* locks of a ring in the words of its victim, and the last one */
#define PASSED_MOST 1000 /* probes that a wait passes on between two looks: anybody may publish them */
#define ASKED_MOST  1000 /* questions in flight: a server that is silent answers none */

struct question { /* who holds the lock that a wait waits for */
    struct hfi_lock *lock; /* a reference */
    struct hfi_probe probe;
};

static struct hfi_lane *lane_of(hf_client *client)
{
    return hfi_pool_lane(client->pool, HFI_USER_LANE, 0);
}

/* ---- the walks ---- */

static void publish(hf_client *client, const char *token, const char *text)
{
    char channel[HFI_CHANNEL_SIZE + 1];
    struct hfi_token_parts parts;
    if (!hfi_token_parse(token, strlen(token), &parts))
        return;
    (void)snprintf(channel, sizeof channel, "hf:c:%s", parts.id);
    hfi_call_publish(client, lane_of(client), channel, text, hfi_now(client->clock));
    hfi_lane_flush(lane_of(client));
}

/* Fills the hop with what this client holds by that token. 0: nothing, or nobody's. */
static uint64_t owner_of_hold(hf_client *client, const char *token_text, struct hfi_hop *hop)
{
    struct hfi_token token;
    uint64_t owner = 0;
    if (!hfi_token_is_of(&client->identity, token_text, strlen(token_text), &token))
        return 0;
    struct hfi_lock *lock = hfi_table_by_grant(client, token.grant);
    if (lock == NULL)
        return 0;
    HFI_PERTURB("probe-to-hold");
    hfi_mutex_lock(lock->mutex);
    const hf_lease *holder = lock->holder;
    if (lock->entry.remote == HFI_HELD && hfi_token_is_same(lock->token, token) && holder != NULL && hf_lease_is_valid(holder)) {
        owner = atomic_load(&holder->owner);
        (void)snprintf(hop->token, sizeof hop->token, "%s", token_text);
        hop->fence = holder->fence;
        hfi_hop_set_name(hop, hfi_keys_name(&lock->keys), lock->keys.name_size);
    }
    hfi_mutex_unlock(lock->mutex);
    hfi_table_unref(lock);
    return owner;
}

/* Of a long ring the first three locks and the last one. */
static void describe(const struct hfi_probe *probe, char *text, size_t room)
{
    size_t size = 0;
    text[0] = 0;
    for (int i = 0; i < probe->count && size + 1 < room; i++) {
        struct hfi_token_parts parts;
        const struct hfi_hop *hop = &probe->hops[i];
        int added = 0, left_out = probe->count - 1 - SHOWN;
        if (i == SHOWN && left_out > 0)
            added = snprintf(text + size, room - size, "%d more, the last for ", left_out);
        else if (i == probe->count - 1)
            added = snprintf(text + size, room - size, "lock \"%s\", held here", hop->name);
        else if (i < SHOWN && hfi_token_parse(hop->token, strlen(hop->token), &parts))
            added = snprintf(text + size, room - size, "lock \"%s\", held by process %" PRId64 " on %s, which waits for ",
                             hop->name, parts.pid, parts.host);
        size += added > 0 ? (size_t)added : 0;
    }
}

/* Refuses the wait that the probe is of, if it still waits. */
static void refuse(const struct hfi_probe *probe, const struct hfi_listed_wait *wait)
{
    struct hfi_lock *lock = wait->lock;
    char ring[700];
    hf_error *why = malloc(sizeof *why);
    describe(probe, ring, sizeof ring);
    if (why != NULL)
        (void)hfi_fail(why, HF_DEADLOCK, "take the locks in one order everywhere, or together with hf_multilock_acquire",
                       "this call waits for itself: for %s", ring);
    HFI_PERTURB("ring-to-refuse");
    int64_t now = hfi_lock_enter(lock);
    struct hfi_acquirer *acquirer = hfi_waits_find(lock, wait->number);
    if (acquirer != NULL) {
        acquirer->ring = why;
        why = NULL;
        hfi_acquirer_give_up(acquirer, HF_DEADLOCK, now);
        if (acquirer->wake != NULL)
            acquirer->wake(acquirer);
    }
    hfi_lock_leave(lock);
    free(why);
}

/* True: the hop is as it was: the same hold, whose owner has the same wait. `wait`: with a reference to its lock. */
static bool is_unchanged(hf_client *client, const struct hfi_hop *hop, struct hfi_listed_wait *wait)
{
    struct hfi_hop now;
    uint64_t owner = owner_of_hold(client, hop->token, &now);
    if (owner == 0 || now.fence != hop->fence)
        return false;
    for (int i = 0; hfi_waits_of(client->lock_waits, owner, i, wait); i++) {
        hfi_mutex_lock(wait->lock->mutex);
        bool waits = wait->number == hop->wait && hfi_waits_find(wait->lock, wait->number) != NULL;
        hfi_mutex_unlock(wait->lock->mutex);
        if (waits)
            return true;
        hfi_table_unref(wait->lock);
    }
    return false;
}

static bool is_ours(const hf_client *client, const struct hfi_hop *hop)
{
    struct hfi_token token;
    return hfi_token_is_of(&client->identity, hop->token, strlen(hop->token), &token);
}

/* The second walk, from this hop on: all that the first one saw is still so, therefore all of it was so at the moment
 * between the two, and nobody in the ring can go on. A hop that names this client and is not ours is made up. */
static void check(hf_client *client, struct hfi_probe *probe, int index)
{
    for (; index < probe->count && is_ours(client, &probe->hops[index]); index++) {
        struct hfi_listed_wait wait;
        if (!is_unchanged(client, &probe->hops[index], &wait))
            return;
        if (index == probe->count - 1 && wait.nonce == probe->nonce && wait.number == probe->wait.number &&
            strcmp(probe->wait.client, client->identity.id) == 0)
            refuse(probe, &wait);
        hfi_table_unref(wait.lock);
    }
    struct hfi_token_parts next;
    const char *token = index < probe->count ? probe->hops[index].token : "";
    if (!hfi_token_parse(token, strlen(token), &next) || strcmp(next.id, client->identity.id) == 0)
        return;
    char *text = malloc(HFI_PROBE_CAPACITY);
    if (text != NULL) {
        hfi_probe_print_check(probe, index, text);
        publish(client, token, text);
    }
    free(text);
}

static void spread(hf_client *client, const struct hfi_listed_wait *wait, struct hfi_probe *probe);

/* The probe arrives at a hold of this client, the last hop but for its wait. */
static void arrive(hf_client *client, struct hfi_probe *probe, uint64_t owner)
{
    struct hfi_hop *hop = &probe->hops[probe->count - 1];
    struct hfi_listed_wait wait;
    int count = probe->count;
    for (int i = 0; hfi_waits_of(client->lock_waits, owner, i, &wait); i++) {
        struct hfi_wait_id id = {.start_us = wait.start_us, .number = wait.number};
        memcpy(id.client, client->identity.id, sizeof id.client);
        bool own = id.number == probe->wait.number && strcmp(id.client, probe->wait.client) == 0;
        hop->wait = wait.number;
        bool goes_on = own || (hfi_wait_is_younger(&probe->wait, &id) && count < HFI_HOPS_MOST);
        goes_on = goes_on && hfi_waits_pass(client->lock_waits, wait.number, PASSED_MOST);
        if (goes_on && own)
            check(client, probe, 0);
        else if (goes_on)
            spread(client, &wait, probe);
        probe->count = count;
        hfi_table_unref(wait.lock);
    }
}

/* What the server says of the holder. Stale by now, perhaps: the second walk looks again. */
static void answered(struct hfi_command *command)
{
    struct question *question = command->self;
    struct hfi_lock *lock = question->lock;
    hf_client *client = lock->client;
    const redisReply *reply = command->outcome == HFI_ANSWERED ? command->reply : NULL;
    const redisReply *value = reply != NULL && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 ? reply->element[0] : NULL;
    struct hfi_token_parts parts;
    char token[HFI_TOKEN_CAPACITY];
    if (value != NULL && value->type == REDIS_REPLY_STRING && value->len < sizeof token &&
        hfi_token_parse(value->str, value->len, &parts) && strcmp(parts.id, client->identity.id) != 0) {
        (void)snprintf(token, sizeof token, "%s", value->str);
        char *text = malloc(HFI_PROBE_CAPACITY);
        if (text != NULL) {
            hfi_probe_print(&question->probe, token, text);
            publish(client, token, text);
        }
        free(text);
    }
    free(question);
    (void)atomic_fetch_sub(&client->lock_waits->questions, 1);
    hfi_table_unref(lock);
}

static void ask_for_holder(hf_client *client, struct hfi_lock *lock, const struct hfi_probe *probe)
{
    struct hfi_name key = hfi_name_of(HFI_MUTEX, lock->keys.lock, lock->keys.lock_size);
    bool few = atomic_load(&client->lock_waits->questions) < ASKED_MOST;
    struct question *question = few ? malloc(sizeof *question) : NULL;
    struct hfi_command *command = question != NULL ? hfi_wire_get_pttl(&key) : NULL;
    if (command == NULL) {
        free(question);
        return;
    }
    question->lock = lock;
    question->probe = *probe;
    hfi_table_ref(lock);
    (void)atomic_fetch_add(&client->lock_waits->questions, 1);
    command->optional = true;
    command->awaited = HFI_AWAITED_BY_NOBODY;
    hfi_call_list(client, lane_of(client), command, answered, question, hfi_now(client->clock));
    hfi_lane_flush(lane_of(client));
}

/* Sends the probe along this wait, to whoever holds what it waits for. */
static void spread(hf_client *client, const struct hfi_listed_wait *wait, struct hfi_probe *probe)
{
    struct hfi_lock *lock = wait->lock;
    char token[HFI_TOKEN_CAPACITY];
    HFI_PERTURB("probe-to-spread");
    hfi_mutex_lock(lock->mutex);
    bool waits = hfi_waits_find(lock, wait->number) != NULL, held_here = lock->entry.remote == HFI_HELD;
    if (held_here)
        (void)hfi_token_make(&client->identity, lock->token, token);
    hfi_mutex_unlock(lock->mutex);
    if (!waits)
        return;
    if (!held_here) {
        ask_for_holder(client, lock, probe);
        return;
    }
    uint64_t owner = owner_of_hold(client, token, &probe->hops[probe->count]);
    if (owner == 0 || owner == wait->owner) /* another thread of the owner has it, and works */
        return;
    probe->count++;
    arrive(client, probe, owner);
}

/* ---- when ---- */

static void probe_all(hf_client *client)
{
    struct hfi_probe *probe = malloc(sizeof *probe);
    for (int i = 0; probe != NULL; i++) {
        struct hfi_listed_wait wait;
        if (!hfi_waits_at(client->lock_waits, i, &wait))
            break;
        probe->wait = (struct hfi_wait_id){.start_us = wait.start_us, .number = wait.number};
        memcpy(probe->wait.client, client->identity.id, sizeof probe->wait.client);
        probe->nonce = wait.nonce;
        probe->count = 0;
        spread(client, &wait, probe);
        hfi_table_unref(wait.lock);
    }
    free(probe);
}

static void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hfi_waits *waits = hfi_container_of(alarm, struct hfi_waits, alarm);
    (void)tick;
    hfi_waits_look(waits);
    probe_all(waits->client);
}

void hfi_deadlocks_message(hf_client *client, const struct hfi_message *message)
{
    char token[HFI_TOKEN_CAPACITY];
    int index;
    struct hfi_probe *probe = client->lock_waits != NULL && message->token_size < sizeof token ? malloc(sizeof *probe) : NULL;
    if (probe == NULL)
        return;
    (void)snprintf(token, sizeof token, "%.*s", (int)message->token_size, message->token);
    bool is_check = message->letter == 'E';
    if (!hfi_probe_parse(message->rest, message->rest_size, is_check, probe, &index)) {
        free(probe);
        return;
    }
    if (is_check) {
        if (strcmp(token, probe->hops[index].token) == 0 && is_ours(client, &probe->hops[index]))
            check(client, probe, index);
    } else if (probe->count < HFI_HOPS_MOST) {
        uint64_t owner = owner_of_hold(client, token, &probe->hops[probe->count]);
        probe->count += owner != 0;
        if (owner != 0)
            arrive(client, probe, owner);
    }
    free(probe);
}

bool hfi_deadlocks_begin(hf_client *client, int64_t every_ns)
{
    client->lock_waits = hfi_waits_new(client, every_ns, ring);
    return client->lock_waits != NULL;
}
