/* SPDX-License-Identifier: MIT */
/* event_sink.c - see event_sink.h; also the functions of lease.h for the event descriptor, the owner and the reason
 * texts. */
#include "core/lock/event_sink.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "base/thread.h"
#include "core/context/callback.h"
#include "core/lock/lock_order.h"
#include "core/context/loss_log.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void run_events(struct hfi_job *job);

void hfi_event_sink_free(struct hfi_event_sink *sink)
{
    hfi_mutex_destroy(&sink->mutex);
    free(sink->label);
    free(sink);
}

bool hfi_event_sink_attach(hf_lease *lease, const hf_lock_options *options, uint64_t thread, int tid)
{
    if (options->on_event == NULL && options->signal == 0 && options->owner_label == NULL)
        return true;
    struct hfi_event_sink *sink = calloc(1, sizeof *sink);
    if (sink == NULL)
        return false;
    hfi_mutex_init(&sink->mutex, HFI_RANK_INNER);
    hfi_park_init(&sink->quiet);
    hfi_list_init(&sink->job.link);
    sink->job.run = run_events;
    sink->lease = lease;
    sink->on_event = options->on_event;
    sink->arg = options->arg;
    sink->signal = options->signal;
    sink->thread = thread;
    atomic_init(&sink->tid, tid);
    sink->signal_at = options->signal_at != 0 ? options->signal_at : HF_EVENT_LOST;
    sink->label = options->owner_label != NULL ? strndup(options->owner_label, 128) : NULL;
    lease->sink = sink;
    return options->owner_label == NULL || sink->label != NULL;
}

void hfi_handle_forked(hf_lease *lease)
{
    int fd = atomic_load(&lease->event_fd);
    if (fd >= 0)
        hfi_descriptor_close(fd);
    if (lease->sink != NULL)
        free(lease->sink->label);
    for (int i = 0; lease->parts != NULL && i < lease->parts->count; i++)
        hfi_handle_forked(lease->parts->at[i].lease);
    free(lease->parts);
    free(lease->sink);
    free(lease->listed);
    free(lease);
}

/* The sink's mutex is held while signalling: once unbind has returned, its thread gets no signal and may end. */
static void signal_holder_locked(struct hfi_event_sink *sink)
{
    int tid = atomic_load(&sink->tid);
    sink->signal_waits = !sink->handed_out;
    if (sink->signal_waits)
        return;
    sink->warned = tid != 0 ? sink->thread : 0; /* a thread that was not signalled now is signalled at LOST */
    (void)syscall(SYS_tgkill, getpid(), tid, sink->signal);
}

/* True: the caller must call post_events() after unlocking. */
static bool may_post_locked(struct hfi_event_sink *sink)
{
    bool post = sink->handed_out && !sink->posted && sink->pending_count > 0;
    sink->posted = sink->posted || post;
    return post;
}

static void post_events(struct hfi_event_sink *sink)
{
    hfi_handle_ref(sink->lease);
    HFI_PERTURB("event-to-post");
    hfi_dispatcher_post(sink->lease->client->dispatcher, &sink->job);
}

static void announce(struct hfi_event_sink *sink, hf_event_kind kind, hf_reason reason)
{
    /* A holder that asked for its signal at AT_RISK gets it at LOST if the loss comes without that warning. */
    bool stop_now = kind == HF_EVENT_AT_RISK && reason != HF_REASON_UNCONFIRMED && sink->signal_at == HF_EVENT_AT_RISK;
    hfi_mutex_lock(&sink->mutex);
    if (sink->on_event != NULL && !sink->released) {
        /* When the callback is slower than the events, the newest overwrites the one before it: a passing event may be
         * missed, LOST never. */
        int at = sink->pending_count < HFI_EVENTS_MOST ? sink->pending_count++ : HFI_EVENTS_MOST - 1;
        sink->pending[at].kind = kind;
        sink->pending[at].reason = reason;
    }
    if (kind == HF_EVENT_SAFE_AGAIN) {
        sink->warned = 0;
        sink->signal_waits = false;
    }
    if (sink->signal != 0 && (stop_now || (kind == HF_EVENT_LOST && (sink->warned == 0 || sink->warned != sink->thread))))
        signal_holder_locked(sink);
    bool post = may_post_locked(sink);
    hfi_mutex_unlock(&sink->mutex);
    if (post)
        post_events(sink);
}

void hfi_handle_hand_out(hf_lease *lease)
{
    struct hfi_event_sink *sink = lease->sink;
    if (sink == NULL)
        return;
    hfi_handle_ref(lease); /* from here on a callback may release it */
    hfi_mutex_lock(&sink->mutex);
    sink->handed_out = true;
    if (sink->signal_waits)
        signal_holder_locked(sink);
    bool post = may_post_locked(sink);
    hfi_mutex_unlock(&sink->mutex);
    if (post)
        post_events(sink);
    hfi_handle_unref(lease);
}

static void log_loss(const hf_lease *lease, hf_reason reason)
{
    const struct hfi_keys *keys = &lease->lock->keys;
    hfi_loss_log_note(lease->client, hfi_keys_name(keys), keys->name_size, lease->fence, reason);
}

HFI_RARE void hfi_handle_found_lost(const hf_lease *lease, hf_reason reason)
{
    hfi_count(lease->client, lost);
    log_loss(lease, reason);
}

static uint8_t condition_after(hf_event_kind kind)
{
    return kind == HF_EVENT_LOST ? HF_LEASE_LOST : kind == HF_EVENT_AT_RISK ? HF_LEASE_AT_RISK : HF_LEASE_HELD;
}

void hfi_handle_become(hf_lease *lease, hf_event_kind kind, hf_reason reason)
{
    atomic_store(&lease->reason, (uint8_t)reason);
    atomic_store(&lease->condition, condition_after(kind));
    if (kind == HF_EVENT_LOST) {
        HFI_PERTURB("lost-to-withdrawn");
        hfi_handle_withdraw(lease);
        int fd = atomic_load(&lease->event_fd);
        if (fd >= 0)
            hfi_event_set(fd);
    }
    if (lease->sink != NULL)
        announce(lease->sink, kind, reason);
}

void hfi_handle_tell(hf_lease *lease, hf_event_kind kind, hf_reason reason)
{
    uint8_t before = atomic_load(&lease->condition), condition = condition_after(kind);
    if (before == HF_LEASE_AT_RISK && condition != HF_LEASE_AT_RISK)
        hfi_uncount(lease->client, at_risk);
    if (before == HF_LEASE_HELD && condition == HF_LEASE_AT_RISK)
        hfi_count(lease->client, at_risk);
    if (kind == HF_EVENT_LOST)
        hfi_count(lease->client, lost);
    hfi_handle_become(lease, kind, reason);
    if (lease->whole != NULL)
        lease->client->lock_ops->part_told(lease, kind, reason);
    if (kind == HF_EVENT_LOST)
        log_loss(lease, reason); /* the line is written behind the callback */
}

static void run_events(struct hfi_job *job)
{
    struct hfi_event_sink *sink = hfi_container_of(job, struct hfi_event_sink, job);
    hf_lease *lease = sink->lease;
    struct hfi_callback callback;
    for (;;) {
        hf_event event = {.size = sizeof event, .fence = lease->fence};
        hfi_mutex_lock(&sink->mutex);
        bool over = sink->released || sink->pending_count == 0;
        sink->runner = over ? 0 : hfi_thread_number();
        if (over) {
            sink->posted = false;
            hfi_park_wake(&sink->quiet);
        } else {
            event.kind = sink->pending[0].kind;
            event.reason = sink->pending[0].reason;
            event.sequence = ++sink->sequence;
            memmove(&sink->pending[0], &sink->pending[1], sizeof sink->pending - sizeof sink->pending[0]);
            sink->pending_count--;
        }
        hfi_mutex_unlock(&sink->mutex);
        HFI_PERTURB("event-taken");
        if (over)
            break;
        event.remaining_ms = event.kind == HF_EVENT_LOST ? 0 : hf_lease_remaining_ms(lease);
        hfi_callback_begin(&callback, lease->client, NULL);
        sink->on_event(lease, &event, sink->arg);
        hfi_callback_end(&callback);
    }
    hfi_handle_unref(lease);
}

void hfi_handle_stop_events(hf_lease *lease)
{
    struct hfi_event_sink *sink = lease->sink;
    if (sink == NULL || sink->on_event == NULL)
        return;
    hfi_mutex_lock(&sink->mutex);
    sink->released = true;
    while (sink->posted && sink->runner != hfi_thread_number()) {
        uint32_t epoch = hfi_park_epoch(&sink->quiet);
        hfi_mutex_unlock(&sink->mutex);
        HFI_PERTURB("hush-to-withdraw");
        if (hfi_dispatcher_withdraw(lease->client->dispatcher, &sink->job)) {
            hfi_handle_unref(lease);
            return;
        }
        (void)hfi_park_wait(&sink->quiet, epoch, HFI_NEVER);
        hfi_mutex_lock(&sink->mutex);
    }
    hfi_mutex_unlock(&sink->mutex);
}

const char *hf_reason_text(hf_reason reason)
{
    static const char *const texts[] = {
        [HF_REASON_NONE] = "nothing is wrong",
        [HF_REASON_UNCONFIRMED] = "a renewal is overdue",
        [HF_REASON_ENDING] = "little time is left",
        [HF_REASON_EXPIRED] = "the lease ended before a renewal came through",
        [HF_REASON_GONE] = "the key is gone: deleted, evicted, flushed or failed over",
        [HF_REASON_TAKEN] = "the key holds somebody else's token",
        [HF_REASON_REVOKED] = "an operator broke it",
        [HF_REASON_MAX_HOLD] = "max_hold_ms was reached",
        [HF_REASON_CLOCK] = "the clock cannot be trusted",
        [HF_REASON_FORKED] = "it belongs to the parent process",
        [HF_REASON_CLOSED] = "the client was closed",
    };
    return (unsigned)reason < sizeof texts / sizeof texts[0] ? texts[reason] : "a reason this library does not know";
}

int hf_lease_event_fd(hf_lease *lease)
{
    if (lease == NULL) {
        errno = EINVAL;
        return -1;
    }
    int fd = atomic_load(&lease->event_fd);
    if (fd >= 0)
        return fd;
    int made = hfi_descriptor_event();
    if (made < 0)
        return -1;
    if (!atomic_compare_exchange_strong(&lease->event_fd, &fd, made)) {
        hfi_descriptor_close(made);
        return fd;
    }
    HFI_PERTURB("descriptor-to-condition");
    /* The loss may have been announced before the descriptor existed. Writing twice does no harm. */
    if (atomic_load(&lease->condition) == HF_LEASE_LOST)
        hfi_event_set(made);
    return made;
}

/* HF_OK if this process still holds the lease; otherwise *error is filled. */
static hf_status check_held(const hf_lease *lease, hf_error *error)
{
    if (lease == NULL)
        return hfi_fail(error, HF_INVALID, "pass the lease that hf_lock_acquire gave", "lease is NULL");
    if (hfi_client_is_forked(lease->client))
        return hfi_fail(error, HF_FORKED, "open a client of its own in the child", "the lease belongs to the parent");
    if (hf_lease_reason(lease) == HF_REASON_CLOSED)
        return hfi_fail(error, HF_CLOSED, "", "the lease ended when the client was closed");
    if (!hf_lease_is_valid(lease))
        return hfi_fail(error, HF_LOST, "release it, and do not do its work", "the lease was lost: %s",
                        hf_reason_text(hf_lease_reason(lease)));
    return HF_OK;
}

/* The mutex that orders what is told of this lease. */
static struct hfi_mutex *mutex_of(hf_lease *lease)
{
    return lease->parts != NULL ? &lease->parts->mutex : lease->lock->mutex;
}

/* mutex_of() is held, which orders the change of owner with hfi_handle_become(). */
static void move_locked(hf_lease *lease, uint64_t owner, uint64_t thread, int tid)
{
    struct hfi_event_sink *sink = lease->sink;
    atomic_store(&lease->owner, owner);
    if (lease->client->order != NULL)
        hfi_lock_order_moved(lease);
    if (sink == NULL)
        return;
    hfi_mutex_lock(&sink->mutex);
    sink->thread = thread;
    atomic_store(&sink->tid, tid);
    hfi_mutex_unlock(&sink->mutex);
}

/* A multilock's parts have no sinks that signal, but each has the owner that re-entry compares. */
static void move_parts(hf_lease *lease)
{
    for (int i = 0; lease->parts != NULL && i < lease->parts->count; i++) {
        hf_lease *part = lease->parts->at[i].lease;
        hfi_mutex_lock(mutex_of(part));
        move_locked(part, atomic_load(&lease->owner), 0, 0);
        hfi_mutex_unlock(mutex_of(part));
    }
}

hf_status hf_lease_bind(hf_lease *lease, hf_error *error)
{
    hf_status status = check_held(lease, error);
    if (status != HF_OK)
        return status;
    HFI_PERTURB("held-to-bound");
    hfi_mutex_lock(mutex_of(lease));
    uint64_t owner = atomic_load(&lease->owner);
    status = check_held(lease, error); /* a loss that was announced before is not repeated for the new owner */
    if (status == HF_OK)
        move_locked(lease, owner == 0 || owner >= HFI_THREADS ? hfi_thread_number() : owner, hfi_thread_number(),
                    hfi_thread_id());
    hfi_mutex_unlock(mutex_of(lease));
    move_parts(lease);
    return status;
}

hf_status hf_lease_unbind(hf_lease *lease, hf_error *error)
{
    hf_status status = check_held(lease, error);
    if (status == HF_INVALID || status == HF_FORKED)
        return status;
    hfi_mutex_lock(mutex_of(lease));
    move_locked(lease, 0, 0, 0); /* owned by no thread; a loss returned here is signalled to no thread either */
    hfi_mutex_unlock(mutex_of(lease));
    move_parts(lease);
    return status;
}

hf_status hfi_handle_lost(const hf_lease *lease, hf_error *error)
{
    char what[HFI_TITLE];
    hfi_keys_title(&lease->lock->keys, what);
    if (hf_lease_reason(lease) == HF_REASON_CLOSED)
        return hfi_fail(error, HF_CLOSED, "", "the lease on %s ended when the client was closed", what);
    return hfi_fail(error, HF_LOST, "somebody else may have been in: roll back, or let the fence decide",
                    "the lease on %s was lost: %s", what, hf_reason_text(hf_lease_reason(lease)));
}
