/* SPDX-License-Identifier: MIT */
/* closing.c - see closing.h. When it is over, and when to ask again, is decided in doubt.c. */
#include "core/closing.h"
#include "core/doubt.h"
#include "core/server_time.h"
#include "core/table.h"
#include "base/perturb.h"

#include <stdlib.h>
#include <string.h>

struct hfi_closing {
    struct hfi_list link;    /* in client->closings; its mutex */
    struct hfi_lock *lock;   /* a reference; its mutex guards what follows */
    struct hfi_alarm alarm;
    uint64_t grant;
    struct hfi_doubt doubt;
    int64_t not_before_ns;   /* a revoked holder has until then to stop */
    struct hfi_giving *giving;
    bool    asking;
    bool    over;            /* the last reference frees it */
    _Atomic(int) references; /* the list, a command under way, the armed alarm */
    size_t  size;
    char    token[HFI_TOKEN_ROOM];
};

static void unref(struct hfi_closing *closing)
{
    struct hfi_lock *lock = closing->lock;
    if (atomic_fetch_sub(&closing->references, 1) != 1)
        return;
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
    if (!hfi_watchdog_arm(client->watchdog, &closing->alarm.timer, at_ns))
        atomic_fetch_add(&closing->references, 1);
}

/* Nothing of this token can come any more. */
static void finish_locked(struct hfi_closing *closing)
{
    hf_client *client = closing->lock->client;
    (void)pthread_mutex_lock(&client->closing_mutex);
    bool listed = !hfi_list_is_empty(&closing->link);
    hfi_list_remove(&closing->link);
    (void)pthread_mutex_unlock(&client->closing_mutex);
    if (listed)
        (void)atomic_fetch_sub(&closing->references, 1); /* never the last: the caller has one */
    /* Off the list a close would not find it, and the alarm's reference would outlive the watchdog. */
    if (hfi_watchdog_arm(client->watchdog, &closing->alarm.timer, HFI_NEVER))
        (void)atomic_fetch_sub(&closing->references, 1);
}

/* A message about a token that has just been given back is late and no more, and there are many: the next one's wish and
 * the holder's release often cross. Those that may come alive again are not among these, and a mark ages (doubt.h). */
static _Atomic(uint64_t) *settled(hf_client *client, uint64_t hash)
{
    return &client->settled[hash % (sizeof client->settled / sizeof client->settled[0])];
}

static void settle(hf_client *client, const char *token, size_t size, int64_t now)
{
    uint64_t hash = hfi_name_hash(HFI_MUTEX, token, size);
    atomic_store(settled(client, hash), hfi_doubt_over_mark(hash, now));
}

static bool is_settled(hf_client *client, const char *token, size_t size)
{
    uint64_t hash = hfi_name_hash(HFI_MUTEX, token, size);
    return hfi_doubt_has_crossed(atomic_load(settled(client, hash)), hash, hfi_now(client->clock));
}

static void released(struct hfi_command *command)
{
    struct hfi_closing *closing = command->self;
    struct hfi_lock *lock = closing->lock;
    hf_client *client = lock->client;
    struct hfi_script_reply said = {"", 0, 0};
    if (command->outcome == HFI_ANSWERED) {
        said = hfi_wire_script_reply(command->reply);
        hfi_server_time_saw(client, hfi_lane_index(lock->lane), said.now_us, command->stamp_ns, command->answered_ns);
    }
    HFI_PERTURB("release-answered");
    int64_t now = hfi_lock_enter(lock);
    closing->asking = false;
    bool known = said.word[0] != 0;
    bool was_ours = strcmp(said.word, "FREE") == 0 || strcmp(said.word, "HANDED") == 0;
    if (strcmp(said.word, "HANDED") == 0)
        hfi_count(client, hand_offs_given);
    tell_locked(closing, !known ? HF_UNKNOWN : was_ours ? HF_OK : HF_LOST);
    closing->over = known && hfi_doubt_is_over(&closing->doubt, said.now_us, now);
    if (closing->over && !closing->doubt.unclear)
        settle(client, closing->token, closing->size, now);
    if (!closing->over)
        arm_locked(closing, hfi_doubt_again_ns(&closing->doubt, said.now_us, now));
    if (closing->over || atomic_load(&client->closing))
        finish_locked(closing);
    (void)pthread_mutex_unlock(&lock->mutex);
    unref(closing);
}

/* Without memory for the command the alarm tries again. */
static void send_locked(struct hfi_closing *closing, int64_t now)
{
    struct hfi_lock *lock = closing->lock;
    if (closing->asking || now < closing->not_before_ns)
        return;
    struct hfi_command *command = hfi_wire_release(&lock->keys, closing->token);
    if (command == NULL) {
        tell_locked(closing, HF_UNKNOWN);
        arm_locked(closing, now + HFI_DOUBT_RETRY_NS);
        return;
    }
    closing->asking = true;
    atomic_fetch_add(&closing->references, 1);
    command->done = released;
    command->self = closing;
    command->stamp_ns = now;
    command->until_ns = now + lock->client->command_ms * HFI_MS;
    hfi_lane_list(lock->lane, command);
    hfi_command_unref(command);
}

static void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hfi_closing *closing = hfi_of(alarm, struct hfi_closing, alarm);
    struct hfi_lock *lock = closing->lock;
    (void)pthread_mutex_lock(&lock->mutex);
    if (!closing->over)
        send_locked(closing, tick->now);
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    unref(closing);
}

static struct hfi_closing *begin(struct hfi_lock *lock, const char *token, size_t size, struct hfi_giving *giving)
{
    hf_client *client = lock->client;
    struct hfi_closing *closing = size < HFI_TOKEN_ROOM ? calloc(1, sizeof *closing) : NULL;
    if (closing == NULL) { /* the key ends by itself */
        if (giving != NULL) {
            giving->status = HF_UNKNOWN;
            giving->done = true;
        }
        return NULL;
    }
    hfi_table_ref(lock);
    closing->lock = lock;
    closing->giving = giving;
    closing->alarm.ring = ring;
    atomic_init(&closing->references, 1);
    closing->size = size;
    memcpy(closing->token, token, size);
    hfi_list_init(&closing->link);
    (void)pthread_mutex_lock(&client->closing_mutex);
    hfi_list_append(&client->closings, &closing->link);
    (void)pthread_mutex_unlock(&client->closing_mutex);
    return closing;
}

void hfi_closing_begin(struct hfi_lock *lock, int64_t now, struct hfi_giving *giving)
{
    char token[HFI_TOKEN_ROOM];
    struct hfi_closing *closing = begin(lock, token, hfi_lock_token(lock, token), giving);
    if (closing == NULL)
        return;
    closing->grant = lock->grant;
    closing->doubt = (struct hfi_doubt){lock->unclear, lock->last_chance_us, lock->last_chance_ns};
    send_locked(closing, now);
}

void hfi_closing_release_later(struct hfi_lock *lock, const char *token, size_t size, int64_t now)
{
    struct hfi_closing *closing = begin(lock, token, size, NULL);
    if (closing == NULL)
        return;
    closing->not_before_ns = hfi_after_ms(now, lock->entry.rules->guard_ms);
    arm_locked(closing, closing->not_before_ns);
}

static struct hfi_closing *find_locked(struct hfi_lock *lock, uint64_t grant)
{
    hf_client *client = lock->client;
    struct hfi_closing *found = NULL;
    (void)pthread_mutex_lock(&client->closing_mutex);
    for (struct hfi_list *at = client->closings.next; at != &client->closings && found == NULL; at = at->next) {
        struct hfi_closing *closing = hfi_of(at, struct hfi_closing, link);
        if (closing->lock == lock && closing->grant == grant)
            found = closing; /* it stays: whoever ends it takes the lock's mutex first, which the caller has */
    }
    (void)pthread_mutex_unlock(&client->closing_mutex);
    return found;
}

void hfi_closing_doubt(struct hfi_lock *lock, uint64_t grant)
{
    struct hfi_closing *closing = find_locked(lock, grant);
    if (closing != NULL)
        closing->doubt.unclear = true;
}

void hfi_closing_again(struct hfi_lock *lock, const struct hfi_command *command, int64_t now)
{
    if (find_locked(lock, (uint64_t)command->note[0]) != NULL)
        return; /* its release comes behind this acquire */
    const char *token = memmem(command->bytes, command->size, "hf1:", 4);
    const char *end = token == NULL ? NULL : memchr(token, '\r', command->size - (size_t)(token - command->bytes));
    struct hfi_closing *closing = end == NULL ? NULL : begin(lock, token, (size_t)(end - token), NULL);
    if (closing != NULL)
        send_locked(closing, now);
}

/* With a reference; NULL: this token is not being given back. */
static struct hfi_closing *find_token(hf_client *client, const char *token, size_t size)
{
    struct hfi_closing *found = NULL;
    (void)pthread_mutex_lock(&client->closing_mutex);
    for (struct hfi_list *at = client->closings.next; at != &client->closings && found == NULL; at = at->next) {
        struct hfi_closing *closing = hfi_of(at, struct hfi_closing, link);
        if (closing->size == size && memcmp(closing->token, token, size) == 0) {
            atomic_fetch_add(&closing->references, 1);
            found = closing;
        }
    }
    (void)pthread_mutex_unlock(&client->closing_mutex);
    return found;
}

/* Long after we stopped to count with it, an acquire of ours was executed (a native one has no not_after), or its release
 * was lost with a server that failed over. Whoever sent the message may have made up token and key: the release deletes
 * nothing but this very token, which nobody uses. */
static void release_forgotten(hf_client *client, const struct hfi_message *message)
{
    enum hfi_use use;
    const char *name;
    size_t name_size;
    struct hfi_lock *lock;
    if (is_settled(client, message->token, message->token_size) ||
        !hfi_key_name(client->key_template, message->rest, message->rest_size, &use, &name, &name_size) ||
        hfi_table_get(client, use, name, name_size, &lock, NULL) != HF_OK)
        return;
    if (lock->keys.lock_size == message->rest_size && memcmp(lock->keys.lock, message->rest, message->rest_size) == 0) {
        (void)pthread_mutex_lock(&lock->mutex);
        struct hfi_closing *closing = begin(lock, message->token, message->token_size, NULL);
        if (closing != NULL) {
            closing->doubt.unclear = true; /* and stays so: it is not settled by an answer about this key */
            send_locked(closing, hfi_now(client->clock));
        }
        (void)pthread_mutex_unlock(&lock->mutex);
        hfi_lane_flush(lock->lane);
    }
    hfi_table_unref(lock);
}

void hfi_closing_heal(hf_client *client, const struct hfi_message *message)
{
    struct hfi_closing *found = find_token(client, message->token, message->token_size);
    if (found == NULL && (message->letter == 'G' || message->letter == 'R'))
        release_forgotten(client, message);
    if (found == NULL)
        return;
    struct hfi_lock *lock = found->lock;
    HFI_PERTURB("closing-found");
    (void)pthread_mutex_lock(&lock->mutex);
    send_locked(found, hfi_now(client->clock));
    (void)pthread_mutex_unlock(&lock->mutex);
    hfi_lane_flush(lock->lane);
    unref(found);
}

void hfi_closing_stop(hf_client *client)
{
    for (;;) {
        struct hfi_closing *closing = NULL;
        (void)pthread_mutex_lock(&client->closing_mutex);
        if (!hfi_list_is_empty(&client->closings)) {
            closing = hfi_of(client->closings.next, struct hfi_closing, link);
            hfi_list_remove(&closing->link);
        }
        (void)pthread_mutex_unlock(&client->closing_mutex);
        if (closing == NULL)
            return;
        struct hfi_lock *lock = closing->lock;
        HFI_PERTURB("closing-stopped");
        (void)pthread_mutex_lock(&lock->mutex);
        closing->over = true;
        tell_locked(closing, HF_UNKNOWN);
        bool was_armed = hfi_watchdog_arm(client->watchdog, &closing->alarm.timer, HFI_NEVER);
        (void)pthread_mutex_unlock(&lock->mutex);
        if (was_armed)
            unref(closing);
        unref(closing);
    }
}
