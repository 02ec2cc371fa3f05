/* SPDX-License-Identifier: MIT */
/* observer.c - hf_election_observe, hf_observer_close; see observer.h. */
#include "core/lock/observer.h"
#include "base/perturb.h"
#include "base/thread.h"
#include "core/context/call.h"
#include "core/context/callback.h"
#include "core/lock/alarm.h"
#include "core/policy/observation.h"
#include "core/protocol/key.h"
#include "core/protocol/wire.h"

#include <hiredis/hiredis.h>
#include <holdfast/election.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen { /* a value of the key, and what its holder says */
    char    value[HFI_TOKEN_CAPACITY]; /* its first bytes: all of a token's */
    size_t  size;                      /* 0: there is no key */
    bool    leads;                     /* somebody is in by this value */
    bool    answered;
    struct hfi_token_parts parts;      /* pid 0: another library's */
    int64_t fence, held_ms, remaining_ms;
    char    label[132];
};

struct hf_observer {
    /* Never changes. */
    hf_client *client;    /* a reference, for the lifetime of this memory */
    struct hfi_keys keys; /* stored behind this struct, in the same memory */
    char  *channel;
    size_t channel_size;
    hf_leader_fn *changed;
    void *arg;

    /* client->observer_mutex guards the rest. */
    struct hfi_list link; /* in client->observers, unless it is over */
    struct hfi_alarm alarm;
    int64_t alarm_at;     /* HFI_NEVER: not armed */
    struct hfi_job job;
    struct hfi_park quiet; /* woken when the job is no longer posted */
    uint64_t runner;      /* number of the thread that runs `changed` now; 0: none */
    int  references;      /* the owner's, of commands in flight, of the armed alarm, of the posted job */
    bool over;            /* closed, or its client is: looks no more */
    bool closed, posted;
    bool has_seen;        /* `seen` is what the last answer said */
    bool owes, has_told;  /* `owed` is to be told; `told` is what was told last */
    struct hfi_observation observation;
    struct seen seen, owed, told;
};

static struct hfi_lane *lane_of(hf_client *client)
{
    return hfi_pool_lane(client->pool, HFI_USER_LANE, 0);
}

static void unref_locked(struct hf_observer *observer)
{
    observer->references--;
}

/* Unlocks, sends what was listed, and frees the observer if that was its last reference. */
static void leave(struct hf_observer *observer)
{
    hf_client *client = observer->client;
    bool last = observer->references == 0, over = observer->over;
    hfi_mutex_unlock(&client->observer_mutex);
    HFI_PERTURB("observer-left-to-flush");
    if (!over)
        hfi_lane_flush(lane_of(client));
    if (!last)
        return;
    free(observer->channel);
    free(observer);
    hfi_client_unref(client);
}

/* ---- telling ---- */

static bool is_same_news(const struct seen *one, const struct seen *other)
{
    if (!one->leads || !other->leads)
        return one->leads == other->leads;
    return one->answered == other->answered && one->size == other->size &&
           memcmp(one->value, other->value, sizeof one->value) == 0;
}

static void tell(struct hf_observer *observer, const struct seen *seen)
{
    struct hfi_callback callback;
    hf_leader leader = {.size = sizeof leader, .name = hfi_keys_name(&observer->keys), .host = seen->parts.host, .label = seen->label,
                        .pid = seen->parts.pid, .fence = seen->fence, .held_ms = seen->held_ms,
                        .remaining_ms = seen->remaining_ms};
    hfi_callback_begin(&callback, observer->client, NULL);
    observer->changed(observer, seen->leads ? &leader : NULL, observer->arg);
    hfi_callback_end(&callback);
}

/* Tells once. What has become due meanwhile is told by another run, behind the other jobs of the dispatcher. */
static void run(struct hfi_job *job)
{
    struct hf_observer *observer = hfi_container_of(job, struct hf_observer, job);
    struct hfi_mutex *mutex = &observer->client->observer_mutex;
    hfi_mutex_lock(mutex);
    bool tells = observer->owes && !observer->closed;
    struct seen news = observer->owed;
    bool is_new = tells && (!observer->has_told || !is_same_news(&news, &observer->told));
    observer->owes = false;
    if (is_new) {
        observer->told = news;
        observer->has_told = true;
        observer->runner = hfi_thread_number();
        hfi_mutex_unlock(mutex);
        HFI_PERTURB("observer-to-tell");
        tell(observer, &news);
        hfi_mutex_lock(mutex);
        observer->runner = 0;
    }
    if (observer->owes && !observer->closed) { /* still posted, with the job's reference */
        hfi_dispatcher_post(observer->client->dispatcher, &observer->job);
    } else {
        observer->posted = false;
        hfi_park_wake(&observer->quiet);
        unref_locked(observer);
    }
    leave(observer);
}

static void tell_locked(struct hf_observer *observer)
{
    observer->owed = observer->seen;
    observer->owes = true;
    if (observer->posted)
        return;
    observer->posted = true;
    observer->references++;
    hfi_dispatcher_post(observer->client->dispatcher, &observer->job);
}

/* ---- looking ---- */

static void act_locked(struct hf_observer *observer, int64_t now);

/* The key's value has changed. By a revoked token its old owner leads no longer, and nobody leads yet. */
static enum hfi_sight note_locked(struct hf_observer *observer, const char *value, size_t size)
{
    struct seen *seen = &observer->seen;
    *seen = (struct seen){.size = size, .leads = size > 0, .held_ms = -1};
    memcpy(seen->value, value, size < sizeof seen->value ? size : sizeof seen->value);
    if (size == strlen(HFI_READERS) && memcmp(value, HFI_READERS, size) == 0) /* several hold it: nobody leads */
        seen->leads = false;
    if (size == 0 || !hfi_token_parse(value, size, &seen->parts)) {
        memset(&seen->parts, 0, sizeof seen->parts);
        return HFI_SAW_NOBODY;
    }
    seen->leads = !hfi_token_is_revoked(seen->parts.token);
    return seen->leads ? HFI_SAW_HOLDER : HFI_SAW_NOBODY;
}

static bool is_seen(const struct seen *seen, const char *value, size_t size)
{
    return seen->size == size && memcmp(seen->value, value, size < sizeof seen->value ? size : sizeof seen->value) == 0;
}

/* The reply is that of GET and PTTL in a transaction. */
static enum hfi_sight read_locked(struct hf_observer *observer, const redisReply *reply, int64_t *left_ms)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
        return HFI_SAW_NOTHING;
    const redisReply *value = reply->element[0];
    bool is_missing = value->type == REDIS_REPLY_NIL;
    if (!is_missing && value->type != REDIS_REPLY_STRING && value->type != REDIS_REPLY_ERROR)
        return HFI_SAW_NOTHING;
    /* An error is WRONGTYPE: another program's key, like an empty value. */
    const char *text = is_missing ? "" : value->len > 0 ? value->str : "?";
    size_t size = is_missing ? 0 : value->len > 0 ? value->len : 1;
    *left_ms = hfi_wire_number(reply, 1, -1);
    enum hfi_sight sight = HFI_SAW_SAME;
    if (!observer->has_seen || !is_seen(&observer->seen, text, size))
        sight = note_locked(observer, text, size);
    observer->has_seen = true;
    observer->seen.remaining_ms = *left_ms;
    return sight;
}

static void looked(struct hfi_command *command)
{
    struct hf_observer *observer = command->self;
    int64_t left_ms = -1;
    HFI_PERTURB("look-answered");
    hfi_mutex_lock(&observer->client->observer_mutex);
    int64_t now = hfi_now(observer->client->clock);
    enum hfi_sight sight = HFI_SAW_NOTHING;
    if (command->outcome == HFI_ANSWERED)
        sight = read_locked(observer, command->reply, &left_ms);
    hfi_observation_looked(&observer->observation, sight, left_ms, now);
    act_locked(observer, now);
    unref_locked(observer);
    leave(observer);
}

static void look_locked(struct hf_observer *observer, int64_t now)
{
    struct hfi_name key = hfi_name_of(HFI_MUTEX, observer->keys.lock, observer->keys.lock_size);
    struct hfi_command *command = hfi_wire_get_pttl(&key);
    if (command == NULL) {
        hfi_observation_looked(&observer->observation, HFI_SAW_NOTHING, -1, now);
        return;
    }
    command->optional = true;
    command->awaited = HFI_AWAITED_BY_NOBODY;
    observer->references++;
    hfi_call_list(observer->client, lane_of(observer->client), command, looked, observer, now);
}

static void ask_locked(struct hf_observer *observer, int64_t now)
{
    hf_client *client = observer->client;
    char channel[HFI_CHANNEL_SIZE + 1], text[HFI_MESSAGE_CAPACITY];
    (void)snprintf(channel, sizeof channel, "hf:c:%s", observer->seen.parts.id);
    hfi_message_print_inquiry(observer->seen.value, observer->seen.size, client->identity.channel, text);
    hfi_call_publish(client, lane_of(client), channel, text, now);
}

/* ---- time ---- */

/* An armed alarm has a reference. */
static void set_timer_locked(struct hf_observer *observer, int64_t at)
{
    bool was_armed = hfi_watchdog_arm(observer->client->watchdog, &observer->alarm.timer, at), is_armed = at != HFI_NEVER;
    observer->alarm_at = at;
    observer->references += is_armed - was_armed;
}

static void act_locked(struct hf_observer *observer, int64_t now)
{
    HFI_ASSERT_HELD(&observer->client->observer_mutex);
    if (observer->over)
        return;
    unsigned due = hfi_observation_due(&observer->observation, now);
    if ((due & HFI_OBSERVE_LOOK) != 0)
        look_locked(observer, now);
    if ((due & HFI_OBSERVE_ASK) != 0)
        ask_locked(observer, now);
    if ((due & HFI_OBSERVE_TELL) != 0)
        tell_locked(observer);
    int64_t next = hfi_observation_next(&observer->observation);
    if (next != observer->alarm_at)
        set_timer_locked(observer, next);
}

static void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    struct hf_observer *observer = hfi_container_of(alarm, struct hf_observer, alarm);
    (void)tick;
    HFI_PERTURB("observer-rings");
    hfi_mutex_lock(&observer->client->observer_mutex);
    observer->alarm_at = HFI_NEVER;
    act_locked(observer, hfi_now(observer->client->clock));
    unref_locked(observer);
    leave(observer);
}

/* ---- messages ---- */

bool hfi_observers_notice(hf_client *client, const char *channel, size_t channel_size, const char *text, size_t size)
{
    if (channel_size < strlen("hf:e:") || memcmp(channel, "hf:e:", strlen("hf:e:")) != 0)
        return false;
    if (text != NULL && !hfi_message_is_notice(text, size))
        return true;
    hfi_mutex_lock(&client->observer_mutex);
    int64_t now = hfi_now(client->clock);
    for (struct hfi_list *at = client->observers.next; at != &client->observers; at = at->next) {
        struct hf_observer *observer = hfi_container_of(at, struct hf_observer, link);
        if (observer->channel_size != channel_size || memcmp(observer->channel, channel, channel_size) != 0)
            continue;
        hfi_observation_notice(&observer->observation, now);
        act_locked(observer, now);
    }
    hfi_mutex_unlock(&client->observer_mutex);
    hfi_lane_flush(lane_of(client));
    return true;
}

/* True: it was this observer's. */
static bool take_answer_locked(struct hf_observer *observer, const struct hfi_message *message, int64_t now)
{
    struct seen *seen = &observer->seen;
    if (!seen->leads || seen->parts.pid == 0 || !is_seen(seen, message->token, message->token_size) ||
        !hfi_observation_answered(&observer->observation, now))
        return false;
    size_t size = message->rest_size < sizeof seen->label ? message->rest_size : sizeof seen->label - 1;
    memcpy(seen->label, message->rest, size);
    seen->label[size] = 0;
    seen->answered = true;
    seen->fence = message->fence;
    seen->held_ms = message->held_ms;
    act_locked(observer, now);
    return true;
}

void hfi_observers_answer(hf_client *client, const struct hfi_message *message)
{
    hfi_mutex_lock(&client->observer_mutex);
    int64_t now = hfi_now(client->clock);
    bool taken = false;
    for (struct hfi_list *at = client->observers.next; at != &client->observers; at = at->next)
        taken = take_answer_locked(hfi_container_of(at, struct hf_observer, link), message, now) || taken;
    hfi_mutex_unlock(&client->observer_mutex);
    if (taken)
        hfi_lane_flush(lane_of(client)); /* a look may have been due as well */
}

/* ---- begin and end ---- */

/* The caller has a reference. */
static void end_locked(struct hf_observer *observer)
{
    if (observer->over)
        return;
    observer->over = true;
    hfi_list_remove(&observer->link);
    hfi_pool_unsubscribe(observer->client->pool, observer->channel, observer->channel_size);
    set_timer_locked(observer, HFI_NEVER);
}

void hfi_observers_stop(hf_client *client)
{
    hfi_mutex_lock(&client->observer_mutex);
    while (!hfi_list_is_empty(&client->observers))
        end_locked(hfi_list_first(&client->observers, struct hf_observer, link));
    hfi_mutex_unlock(&client->observer_mutex);
}

/* NULL: INVALID or NOMEM. */
static struct hf_observer *make(hf_client *client, const struct hfi_name *name, hf_error *error)
{
    struct hfi_keys keys;
    char channel[HFI_ELECTION_CHANNEL_MOST];
    void *memory;
    if (hfi_keys_make_behind(sizeof(struct hf_observer), &memory, client->key_template, name, &keys, error) != HF_OK)
        return NULL;
    struct hf_observer *observer = memory;
    *observer = (struct hf_observer){.client = client, .keys = keys, .references = 1, .alarm = {.ring = ring},
                                     .alarm_at = HFI_NEVER, .job = {.run = run}};
    observer->channel_size = hfi_election_channel(&keys, channel);
    observer->channel = strdup(channel);
    hfi_list_init(&observer->job.link);
    hfi_park_init(&observer->quiet);
    if (observer->channel != NULL && hfi_pool_subscribe(client->pool, observer->channel, observer->channel_size))
        return observer;
    (void)hfi_fail(error, HF_NOMEM, "", "no memory for an observer");
    free(observer->channel);
    free(observer);
    return NULL;
}

static hf_status observe(hf_client *client, const char *text, hf_leader_fn *changed, void *arg, hf_observer **made,
                         hf_error *error)
{
    struct hfi_name name;
    hf_error why;
    hf_error *told = error != NULL ? error : &why;
    if (client->dialect != NULL)
        return hfi_fail(told, HF_INVALID, "observe with a client that has none", "a dialect has no elections");
    hf_status status = hfi_name_take(HFI_MUTEX, text, 0, &name, told);
    if (status != HF_OK)
        return status;
    struct hf_observer *observer = make(client, &name, told);
    if (observer == NULL)
        return told->status;
    observer->changed = changed;
    observer->arg = arg;
    hfi_client_ref(client);
    *made = observer;
    hfi_mutex_lock(&client->observer_mutex);
    int64_t now = hfi_now(client->clock);
    hfi_list_append(&client->observers, &observer->link);
    hfi_observation_begin(&observer->observation, name.hash ^ (uint64_t)now, now);
    act_locked(observer, now);
    leave(observer);
    return HF_OK;
}

hf_status hf_election_observe(hf_client *client, const char *name, hf_leader_fn *changed, void *arg, hf_observer **observer,
                              hf_error *error)
{
    if (observer != NULL)
        *observer = NULL;
    if (changed == NULL || observer == NULL)
        return hfi_fail(error, HF_INVALID, "", "%s is NULL", changed == NULL ? "changed" : "the place for the observer");
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = observe(client, name, changed, arg, observer, error);
    hfi_client_leave(client);
    return status;
}

/* A posted job is withdrawn: it may be queued behind the very callback that closes. */
static void wait_until_quiet_locked(struct hf_observer *observer)
{
    HFI_ASSERT_HELD(&observer->client->observer_mutex);
    struct hfi_mutex *mutex = &observer->client->observer_mutex;
    while (observer->posted && observer->runner != hfi_thread_number()) {
        uint32_t epoch = hfi_park_epoch(&observer->quiet);
        hfi_mutex_unlock(mutex);
        HFI_PERTURB("observer-to-withdraw");
        bool withdrawn = hfi_dispatcher_withdraw(observer->client->dispatcher, &observer->job);
        if (!withdrawn)
            (void)hfi_park_wait(&observer->quiet, epoch, HFI_NEVER);
        hfi_mutex_lock(mutex);
        if (withdrawn) {
            observer->posted = false;
            unref_locked(observer);
        }
    }
}

void hf_observer_close(hf_observer *observer)
{
    if (observer == NULL)
        return;
    hf_client *client = observer->client;
    if (hfi_client_is_forked(client)) { /* its mutex may have been held at the fork */
        free(observer->channel);
        free(observer);
        return;
    }
    bool entered = hfi_client_enter(client, NULL) == HF_OK;
    if (!entered)
        hfi_client_ref(client); /* the observer's may be the last one; close waits for calls that were let in */
    hfi_mutex_lock(&client->observer_mutex);
    observer->closed = true;
    end_locked(observer);
    wait_until_quiet_locked(observer);
    unref_locked(observer);
    leave(observer);
    if (entered)
        hfi_client_leave(client);
    else
        hfi_client_unref(client);
}
