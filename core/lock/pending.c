/* SPDX-License-Identifier: MIT */
/* pending.c - async.h: an acquirer without a thread. Three others do a waiting thread's work: the thread that decides it
 * (decide), the watchdog at the end of wait_ms (ring), and the caller's take. */
#include "core/context/callback.h"
#include "core/lock/acquire.h"
#include "core/lock/acquirer.h"
#include "core/lock/event_sink.h"
#include "core/lock/lane_choice.h"
#include "core/lock/lock_order.h"
#include "core/lock/perform.h"
#include "core/lock/semaphore.h"
#include "core/lock/table.h"
#include "core/lock/trouble.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/thread.h"

#include <holdfast/semaphore.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hf_pending {
    struct hfi_acquirer acquirer; /* the lock's mutex guards it, and the fields marked (mutex) */
    struct hfi_lock *lock;        /* a reference; of a semaphore the home of the grants */
    hf_client *client;            /* a reference */
    hf_lock_options options;      /* its owner_label and order_class are stored behind this struct */
    hf_done_fn *done;             /* NULL: none */
    void       *done_arg;
    int64_t began_ns;
    _Atomic(int)  references;     /* the caller's, an armed alarm's, a posted job's */
    _Atomic(int)  fd;             /* -1: not made */
    _Atomic(bool) decided;
    bool     waits;               /* (mutex) counted in the lock's pendings, and as a waiting call */
    bool     taken;               /* (mutex) take has begun */
    bool     posted;              /* (mutex) the job is queued or runs */
    uint64_t runner;              /* (mutex) number of the thread that runs `done` now; 0: none */
    struct hfi_park  quiet;       /* woken when the job is no longer posted */
    struct hfi_alarm alarm;       /* at the end of wait_ms */
    struct hfi_job   job;         /* runs `done` */
    hf_error *why;                /* (mutex) of a refusal, as things stood then; NULL: none, or no memory */
};

static void unref(hf_pending *pending)
{
    if (atomic_fetch_sub(&pending->references, 1) != 1)
        return;
    struct hfi_lock *lock = pending->lock;
    hf_client *client = pending->client;
    int fd = atomic_load(&pending->fd);
    if (fd >= 0)
        hfi_descriptor_close(fd);
    free(pending->why);
    free(pending);
    hfi_table_unref(lock);
    hfi_client_unref(client);
}

/* The pending is decided: its timer and its place among the waiting calls go. Mutex held. The caller has a reference, so
 * the timer's is never the last. */
static void settle(hf_pending *pending)
{
    if (!pending->waits)
        return;
    pending->waits = false;
    pending->lock->pendings--;
    hfi_uncount(pending->client, waiting);
    if (hfi_watchdog_arm(pending->client->watchdog, &pending->alarm.timer, HFI_NEVER))
        unref(pending);
}

/* Keeps the words for a refusal now: by the time of take the lock may have other troubles. */
static void note_why(hf_pending *pending)
{
    pending->why = malloc(sizeof *pending->why);
    (void)hfi_acquirer_explain(&pending->acquirer, pending->why);
}

static void announce(hf_pending *pending)
{
    atomic_store(&pending->decided, true);
    HFI_PERTURB("decided-to-descriptor");
    int fd = atomic_load(&pending->fd);
    if (fd >= 0)
        hfi_event_set(fd);
    if (pending->done == NULL)
        return;
    (void)atomic_fetch_add(&pending->references, 1);
    pending->posted = true;
    hfi_dispatcher_post(pending->client->dispatcher, &pending->job);
}

/* The entry has decided (acquirer.wake), or wait_ms has passed. Mutex held. */
static void decide(struct hfi_acquirer *acquirer)
{
    hf_pending *pending = hfi_container_of(acquirer, hf_pending, acquirer);
    if (acquirer->waiter.verdict == HFI_GOT_LEASE) {
        hfi_table_ref(pending->lock); /* the handle's */
        /* It is held from now on, though nobody has taken it yet. */
        if (pending->client->order != NULL && pending->lock->keys.use != HFI_SEMAPHORE)
            hfi_lock_order_held(acquirer->lease, pending->options.order_class);
        if (pending->acquirer.waiter.passed)
            hfi_count(pending->client, acquired_locally);
        else
            hfi_count(pending->client, acquired_remotely);
        if (acquirer->lease->since_ns > pending->began_ns)
            hfi_histogram_add(&pending->client->waits, acquirer->lease->since_ns - pending->began_ns);
    } else {
        note_why(pending);
    }
    settle(pending);
    announce(pending);
}

static void run_done(struct hfi_job *job)
{
    hf_pending *pending = hfi_container_of(job, hf_pending, job);
    struct hfi_lock *lock = pending->lock;
    struct hfi_callback callback;
    HFI_PERTURB("job-to-done");
    hfi_mutex_lock(lock->mutex);
    bool taken = pending->taken;
    pending->runner = hfi_thread_number();
    hfi_mutex_unlock(lock->mutex);
    if (!taken) {
        hfi_callback_begin(&callback, pending->client, NULL);
        pending->done(pending, pending->done_arg);
        hfi_callback_end(&callback);
    }
    HFI_PERTURB("done-to-quiet");
    hfi_mutex_lock(lock->mutex);
    pending->runner = 0;
    pending->posted = false;
    hfi_park_wake(&pending->quiet);
    hfi_mutex_unlock(lock->mutex);
    unref(pending);
}

static void ring(struct hfi_alarm *alarm, struct hfi_tick *tick)
{
    hf_pending *pending = hfi_container_of(alarm, hf_pending, alarm);
    struct hfi_lock *lock = pending->lock;
    (void)tick;
    HFI_PERTURB("alarm-to-pending");
    int64_t now = hfi_lock_enter(lock);
    if (pending->waits) {
        hfi_acquirer_give_up(&pending->acquirer, HF_TIMEOUT, now);
        decide(&pending->acquirer);
    }
    hfi_lock_leave(lock);
    unref(pending);
}

/* With the caller's reference, and references to the lock and the client. NULL: no memory. */
static hf_pending *make(struct hfi_lock *lock, const hf_lock_options *options, hf_done_fn *done, void *done_arg)
{
    size_t label = options->owner_label != NULL ? strlen(options->owner_label) + 1 : 0;
    size_t class = options->order_class != NULL ? strlen(options->order_class) + 1 : 0;
    hf_pending *pending = calloc(1, sizeof *pending + label + class);
    if (pending == NULL)
        return NULL;
    pending->lock = lock;
    pending->client = lock->client;
    pending->options = *options;
    if (label > 0)
        pending->options.owner_label = memcpy(pending + 1, options->owner_label, label);
    if (class > 0)
        pending->options.order_class = memcpy((char *)(pending + 1) + label, options->order_class, class);
    pending->done = done;
    pending->done_arg = done_arg;
    atomic_init(&pending->references, 1);
    atomic_init(&pending->fd, -1);
    hfi_park_init(&pending->quiet);
    hfi_list_init(&pending->job.link);
    pending->job.run = run_done;
    pending->alarm.ring = ring;
    hfi_acquirer_init(&pending->acquirer, lock, &pending->options);
    pending->acquirer.owner = options->owner;
    pending->acquirer.thread = 0;
    pending->acquirer.tid = 0;
    pending->acquirer.wake = decide;
    pending->acquirer.waiter.threadless = true;
    hfi_table_ref(lock);
    hfi_client_ref(lock->client);
    return pending;
}

/* Mutex held. */
static void arrive(hf_pending *pending, int64_t now)
{
    struct hfi_lock *lock = pending->lock;
    hf_client *client = pending->client;
    pending->began_ns = now;
    pending->waits = true;
    lock->pendings++;
    hfi_count(client, waiting);
    hfi_acquirer_arrive(&pending->acquirer, now);
    if (!pending->waits)
        return;
    hfi_acquirer_has_to_wait(lock, &pending->acquirer);
    if (pending->acquirer.waiter.beside_itself && lock->entry.remote == HFI_QUEUED) {
        hfi_acquirer_give_up(&pending->acquirer, HF_DEADLOCK, now);
        decide(&pending->acquirer);
        return;
    }
    /* wait_ms 0 sets no limit but command_ms of the one or two commands that a try sends. */
    int64_t wait_ms = pending->options.wait_ms == 0 ? client->command_ms : pending->options.wait_ms;
    int64_t until_ns = hfi_after_ms(now, wait_ms);
    if (until_ns == HFI_NEVER)
        return;
    (void)atomic_fetch_add(&pending->references, 1);
    (void)hfi_watchdog_arm(client->watchdog, &pending->alarm.timer, until_ns);
}

/* The owner has the lease already: the verdict needs no entry. Mutex held. */
static void reenter(hf_pending *pending, hf_status status, const hf_error *why)
{
    pending->acquirer.waiter.verdict = status == HF_OK ? HFI_GOT_LEASE : HFI_REFUSED;
    pending->acquirer.waiter.status = status;
    pending->why = status != HF_OK ? malloc(sizeof *why) : NULL;
    if (pending->why != NULL)
        *pending->why = *why;
    announce(pending);
}

/* permits 0: of a lock. */
static hf_status start(hf_client *client, const struct hfi_name *name, int permits, int limit, const hf_lock_options *options,
                       hf_done_fn *done, void *done_arg, hf_pending **out, hf_error *error)
{
    struct hfi_lock *lock;
    hf_error why;
    hf_status status = hfi_table_get(client, name, &lock, error);
    if (status != HF_OK)
        return status;
    hf_pending *pending = make(lock, options, done, done_arg);
    if (pending == NULL) {
        hfi_table_unref(lock);
        return hfi_fail(error, HF_NOMEM, "", "no memory for a pending");
    }
    if (permits > 0) {
        pending->acquirer.waiter.permits = permits;
        pending->acquirer.waiter.limit = limit;
    }
    if (client->order != NULL && options->owner != 0 && permits == 0)
        hfi_lock_order_wanted(lock, options->owner, options->order_class);
    *out = pending; /* before `done` may run; once the mutex is unlocked it may be taken */
    bool *beside_itself = &pending->acquirer.waiter.beside_itself;
    bool in_vain = options->owner != 0 && permits == 0 && atomic_load_explicit(&client->shares, memory_order_relaxed) &&
                   hfi_owner_waits_for_itself(lock, options->owner, beside_itself) && !*beside_itself;
    HFI_PERTURB("pending-to-arrive");
    int64_t now = hfi_lock_enter(lock);
    status = in_vain ? hfi_acquirer_explain_itself(&pending->acquirer, &why)
                     : hfi_acquirer_reenter(lock, &pending->acquirer, &pending->acquirer.lease, &why);
    if (status == HF_BUSY) {
        hfi_lane_choose(lock, 2); /* this call's, and the pending's */
        arrive(pending, now);
    } else {
        reenter(pending, status, &why);
    }
    hfi_lock_leave(lock);
    hfi_table_unref(lock);
    return HF_OK;
}

static hf_status refuse_cancel(const hf_lock_options *options, hf_error *error)
{
    if (options->cancel == NULL)
        return HF_OK;
    return hfi_fail(error, HF_INVALID, "cancel a pending with hf_pending_take", "a start takes no .cancel");
}

hf_status hf_lock_acquire_start(hf_client *client, const char *text, const hf_lock_options *given, hf_done_fn *done,
                                void *done_arg, hf_pending **pending, hf_error *error)
{
    hf_lock_options options;
    struct hfi_name name;
    if (pending == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the pending is NULL");
    *pending = NULL;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_acquire_prepare(client, text, given, &options, &name, error);
    if (status == HF_OK)
        status = refuse_cancel(&options, error);
    if (status == HF_OK && options.reentrant && options.owner == 0)
        status = hfi_fail(error, HF_INVALID, "set .owner too", "a start has no thread that could be the owner of a .reentrant lease");
    if (status == HF_OK)
        status = start(client, &name, 0, 0, &options, done, done_arg, pending, error);
    hfi_client_leave(client);
    return status;
}

hf_status hf_semaphore_acquire_start(hf_client *client, const char *text, int limit, int permits, const hf_lock_options *given,
                                     hf_done_fn *done, void *done_arg, hf_pending **pending, hf_error *error)
{
    hf_lock_options options;
    struct hfi_name name;
    if (pending == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the pending is NULL");
    *pending = NULL;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_semaphore_prepare(client, text, limit, permits, given, &options, &name, error);
    if (status == HF_OK)
        status = refuse_cancel(&options, error);
    if (status == HF_OK)
        status = start(client, &name, permits, limit, &options, done, done_arg, pending, error);
    hfi_client_leave(client);
    return status;
}

bool hf_pending_is_done(const hf_pending *pending)
{
    return pending != NULL && atomic_load(&pending->decided);
}

int hf_pending_fd(hf_pending *pending)
{
    if (pending == NULL) {
        errno = EINVAL;
        return -1;
    }
    int fd = atomic_load(&pending->fd);
    if (fd >= 0)
        return fd;
    int made = hfi_descriptor_event();
    if (made < 0)
        return -1;
    if (!atomic_compare_exchange_strong(&pending->fd, &fd, made)) {
        hfi_descriptor_close(made);
        return fd;
    }
    HFI_PERTURB("descriptor-to-decided");
    /* It may have been decided before the descriptor existed. Writing twice does no harm. */
    if (atomic_load(&pending->decided))
        hfi_event_set(made);
    return made;
}

/* On return `done` does not run and will not; if this thread called take inside `done`, that one call goes on. The mutex
 * is held on entry and on return, and released meanwhile. */
static void stop_done(hf_pending *pending)
{
    struct hfi_mutex *mutex = pending->lock->mutex;
    pending->taken = true;
    while (pending->posted && pending->runner != hfi_thread_number()) {
        uint32_t epoch = hfi_park_epoch(&pending->quiet);
        hfi_mutex_unlock(mutex);
        HFI_PERTURB("taken-to-withdraw");
        bool withdrawn = hfi_dispatcher_withdraw(pending->client->dispatcher, &pending->job);
        if (!withdrawn)
            (void)hfi_park_wait(&pending->quiet, epoch, HFI_NEVER);
        hfi_mutex_lock(mutex);
        if (!withdrawn)
            continue;
        pending->posted = false;
        unref(pending); /* never the last: the caller's is left */
    }
}

/* Hands the pending's lease to the caller of take. */
static hf_status give(const hf_pending *pending, hf_lease **out, hf_error *error)
{
    hf_lease *lease = pending->acquirer.lease;
    if (pending->options.event_fd && hf_lease_event_fd(lease) < 0)
        return hfi_acquire_without_event_fd(lease, error);
    if (!hf_lease_is_valid(lease)) {
        hf_status status = hfi_handle_lost(lease, error);
        (void)hf_lease_post_release(lease, NULL);
        return status;
    }
    *out = lease;
    hfi_handle_hand_out(lease);
    return HF_OK;
}

static hf_status explain(const hf_pending *pending, hf_error *error)
{
    hf_status status = pending->acquirer.waiter.status;
    hfi_acquire_count_refusal(pending->client, status);
    if (pending->why == NULL)
        return hfi_lock_explain(pending->lock, status, error);
    if (error != NULL)
        *error = *pending->why;
    return status;
}

static hf_status take(hf_pending *pending, hf_lease **lease, hf_error *error)
{
    struct hfi_lock *lock = pending->lock;
    hf_status status = HF_OK;
    int64_t now = hfi_lock_enter(lock);
    if (pending->waits) {
        hfi_acquirer_give_up(&pending->acquirer, HF_CANCELED, now);
        settle(pending);
    }
    stop_done(pending);
    bool got = pending->acquirer.waiter.verdict == HFI_GOT_LEASE;
    if (!got)
        status = explain(pending, error);
    hfi_lock_leave(lock);
    HFI_PERTURB("verdict-to-give");
    return got ? give(pending, lease, error) : status;
}

/* A fork child has copies of the pending and of what it got, and may touch no mutex. */
static hf_status take_forked(hf_pending *pending, hf_error *error)
{
    int fd = atomic_load(&pending->fd);
    if (fd >= 0)
        hfi_descriptor_close(fd);
    if (atomic_load(&pending->decided) && pending->acquirer.waiter.verdict == HFI_GOT_LEASE)
        (void)hf_lease_release(pending->acquirer.lease, NULL);
    free(pending->why);
    free(pending);
    return hfi_fail(error, HF_FORKED, "the parent still has it", "the pending belongs to the parent process");
}

hf_status hf_pending_take(hf_pending *pending, hf_lease **lease, hf_error *error)
{
    if (pending == NULL || lease == NULL)
        return hfi_fail(error, HF_INVALID, "pass the pending of a start, and a place for its lease", "%s is NULL",
                        pending == NULL ? "the pending" : "the place for the lease");
    *lease = NULL;
    hf_client *client = pending->client;
    if (hfi_client_is_forked(client))
        return take_forked(pending, error);
    bool entered = hfi_client_enter(client, NULL) == HF_OK;
    if (!entered)
        hfi_client_ref(client); /* the pending's reference may be the last */
    hf_status status = take(pending, lease, error);
    unref(pending);
    if (entered)
        hfi_client_leave(client);
    else
        hfi_client_unref(client);
    return status;
}
