/* SPDX-License-Identifier: MIT */
/* acquire.c - hf_lock_acquire. */
#include "core/lock/acquire.h"
#include "core/context/dialects.h"
#include "core/lock/acquirer.h"
#include "core/lock/event_sink.h"
#include "core/lock/key_events.h"
#include "core/lock/lane_choice.h"
#include "core/lock/lock_order.h"
#include "core/lock/perform.h"
#include "core/protocol/options.h"
#include "core/lock/table.h"
#include "core/lock/waits.h"
#include "base/perturb.h"
#include "base/rare.h"

#include <errno.h>

/* A thread that has downgraded rides on what readers of its process have, though the door is shut. */
static HFI_RARE void come_in_beside(struct hfi_lock *lock, struct hfi_acquirer *acquirer)
{
    struct hfi_step step;
    acquirer->waiter.again = true;
    hfi_step_init(&step, hfi_now(lock->client->clock), 0);
    hfi_entry_let_in(&lock->entry, &step);
    hfi_lock_perform(lock, &step, NULL);
}

HFI_RARE hf_status hfi_acquire_without_event_fd(hf_lease *lease, hf_error *error)
{
    int os_errno = errno;
    (void)hf_lease_post_release(lease, NULL);
    hfi_fail(error, HF_NOMEM, "raise the limit of open files (ulimit -n)", "no descriptor for the lease's event");
    hfi_fail_errno(error, os_errno);
    return HF_NOMEM;
}

/* For a caller that is not granted the lease at once. */
static void wait_for_it(struct hfi_lock *lock, struct hfi_acquirer *acquirer, int64_t until_ns)
{
    hf_client *client = lock->client;
    hfi_count(client, waiting);
    hfi_waits_begin(client->lock_waits, acquirer->waiter.since);
    hfi_acquirer_wait(acquirer, until_ns, acquirer->options->cancel);
    hfi_uncount(client, waiting);
}

struct search { /* of one hf_lock_acquire */
    int32_t permits, limit; /* of a semaphore; permits 0: of a lock */
    int64_t began_ns; /* 0: not begun */
    int64_t until_ns;
    bool waited;
    bool late; /* the lease was over before the caller had it */
};

/* Of an acquire that took one in advance and got no lease. */
static HFI_RARE void give_handle_back(struct hfi_acquirer *acquirer)
{
    if (acquirer->lease != NULL)
        hfi_handle_drop(acquirer->lease, 2);
}

/* One attempt. HF_OK: *lease, which takes over the caller's reference to the lock; if search->late is set, the caller
 * has one more reference. */
static hf_status acquire_once(struct hfi_lock *lock, const hf_lock_options *options, struct search *search, hf_lease **lease,
                           hf_error *error)
{
    hf_client *client = lock->client;
    struct hfi_acquirer acquirer;
    hfi_acquirer_init(&acquirer, lock, options);
    if (search->permits > 0) {
        acquirer.waiter.permits = search->permits;
        acquirer.waiter.limit = search->limit;
    }
    acquirer.lease = hfi_handle_left(client, options, acquirer.owner); /* now, not under the lock's mutex */
    search->late = false; /* a lease that is re-entered is not given back because of the one before */
    hfi_mutex_lock(lock->mutex);
    hf_status status = hfi_acquirer_reenter(lock, &acquirer, lease, error);
    if (status != HF_BUSY) {
        hfi_mutex_unlock(lock->mutex);
        give_handle_back(&acquirer);
        if (status == HF_OK && options->event_fd && hf_lease_event_fd(*lease) < 0) {
            status = hfi_acquire_without_event_fd(*lease, error);
            *lease = NULL; /* that is the owner's handle, of which this call has no part */
        }
        if (status == HF_OK)
            hfi_table_unref(lock); /* the lease has a reference from its first acquire */
        return status;
    }
    int64_t now = hfi_now(client->clock);
    if (search->began_ns == 0) {
        search->began_ns = now;
        /* A try has no time of its own, only that of its commands, one or two. */
        search->until_ns = hfi_after_ms(now, options->wait_ms == 0 ? client->command_ms : options->wait_ms);
    }
    hfi_lane_choose(lock, 1);
    hfi_acquirer_arrive(&acquirer, now);
    bool waits = acquirer.waiter.verdict == HFI_WAITING;
    if (waits)
        hfi_acquirer_has_to_wait(lock, &acquirer);
    if (waits && atomic_load_explicit(&client->shares, memory_order_relaxed) && acquirer.owner != 0 && search->permits == 0) {
        hfi_mutex_unlock(lock->mutex);
        HFI_PERTURB("arrived-to-look-beside");
        bool beside_itself, in_vain = hfi_owner_waits_for_itself(lock, acquirer.owner, &beside_itself);
        hfi_mutex_lock(lock->mutex);
        acquirer.waiter.beside_itself = beside_itself;
        if (beside_itself)
            come_in_beside(lock, &acquirer);
        if (in_vain && acquirer.waiter.verdict == HFI_WAITING && (!beside_itself || lock->entry.remote == HFI_QUEUED))
            hfi_acquirer_give_up(&acquirer, HF_DEADLOCK, hfi_now(client->clock));
    }
    if (acquirer.waiter.verdict == HFI_WAITING)
        wait_for_it(lock, &acquirer, search->until_ns);
    status = acquirer.waiter.verdict == HFI_GOT_LEASE ? HF_OK : hfi_acquirer_explain(&acquirer, error);
    hfi_lock_leave(lock);
    if (status != HF_OK) {
        give_handle_back(&acquirer);
        return status;
    }
    if (acquirer.waiter.passed)
        hfi_count(client, acquired_locally);
    else
        hfi_count(client, acquired_remotely);
    HFI_PERTURB("given-to-look");
    bool has_no_fd = options->event_fd && hf_lease_event_fd(acquirer.lease) < 0;
    search->waited = search->waited || waits;
    search->late = waits && !hf_lease_is_valid(acquirer.lease);
    if (has_no_fd || search->late)
        hfi_table_ref(lock);
    if (has_no_fd)
        return hfi_acquire_without_event_fd(acquirer.lease, error);
    *lease = acquirer.lease;
    return HF_OK;
}

void hfi_acquire_count_refusal(hf_client *client, hf_status status)
{
    if (status == HF_BUSY)
        hfi_count(client, busy);
    else if (status == HF_TIMEOUT)
        hfi_count(client, timeouts);
    else if (status == HF_CANCELED)
        hfi_count(client, canceled);
}

static hf_status take(hf_client *client, const struct hfi_name *name, struct search search, const hf_lock_options *options,
                      hf_lease **lease, hf_error *error)
{
    struct hfi_lock *lock;
    hf_status status = hfi_table_get(client, name, &lock, error);
    if (status != HF_OK)
        return status;
    for (;;) {
        status = acquire_once(lock, options, &search, lease, error);
        /* The thread may have been woken so late that the lease is over: give it back and try again. */
        if (status != HF_OK)
            break;
        if (!search.late) {
            if (search.waited)
                hfi_histogram_add(&client->waits, (*lease)->since_ns - search.began_ns);
            return HF_OK;
        }
        (void)hf_lease_post_release(*lease, NULL);
        *lease = NULL;
        if (hfi_now(client->clock) >= search.until_ns || options->wait_ms == 0) {
            status = hfi_fail(error, HF_TIMEOUT, "is this process starved of CPU?", "the lease was over before it was used");
            break;
        }
    }
    hfi_table_unref(lock);
    return status;
}

hf_status hfi_lock_take(hf_client *client, const struct hfi_name *name, const hf_lock_options *options, hf_lease **lease,
                        hf_error *error)
{
    return take(client, name, (struct search){0}, options, lease, error);
}

hf_status hfi_permits_take(hf_client *client, const struct hfi_name *name, int32_t permits, int32_t limit,
                           const hf_lock_options *options, hf_lease **lease, hf_error *error)
{
    return take(client, name, (struct search){.permits = permits, .limit = limit}, options, lease, error);
}

hf_status hfi_acquire_options(hf_client *client, const hf_lock_options *given, hf_lock_options *options, hf_error *error)
{
    hf_status status = hfi_options_take(options, sizeof *options, given, "HF_LOCK", error);
    if (status == HF_OK)
        status = hfi_lock_options_check(options, client->lease_ms, error);
    if (status == HF_OK)
        status = hfi_lease_check(options->lease_ms, client->max_lease_ms, error);
    if (status == HF_OK && hfi_counted(client, waiting) >= client->max_waiters)
        status = hfi_fail(error, HF_LIMIT, "raise max_waiters, or wait with fewer threads and pendings",
                          "max_waiters (%zu) calls wait already", client->max_waiters);
    return status;
}

hf_status hfi_acquire_speak(hf_client *client, const hf_lock_options *options, const char *what, struct hfi_name *name,
                            hf_error *error)
{
    const struct hfi_dialect *dialect;
    bool is_new;
    hf_status status = hfi_dialects_find(client, options->dialect, &dialect, &is_new, error);
    if (status != HF_OK)
        return status;
    if (is_new && *dialect->key_events != 0)
        hfi_key_events_look_again(client);
    if (dialect != NULL && what != NULL)
        return hfi_fail(error, HF_INVALID, "leave the dialect out: .dialect = \"holdfast\"", "the dialect %s has no %s",
                        dialect->text, what);
    *name = hfi_name_in(dialect, *name);
    return HF_OK;
}

hf_status hfi_acquire_prepare(hf_client *client, const char *text, const hf_lock_options *given, hf_lock_options *options,
                              struct hfi_name *name, hf_error *error)
{
    hf_status status = hfi_acquire_options(client, given, options, error);
    if (status != HF_OK)
        return status;
    if (options->shared && !atomic_load_explicit(&client->shares, memory_order_relaxed))
        atomic_store(&client->shares, true);
    status = hfi_name_take(options->shared ? HFI_SHARED : HFI_MUTEX, text, options->name_size, name, error);
    return status == HF_OK ? hfi_acquire_speak(client, options, options->shared ? ".shared" : NULL, name, error) : status;
}

static void want_in_order(hf_client *client, const struct hfi_name *name, const hf_lock_options *options)
{
    struct hfi_lock *lock;
    if (hfi_table_get(client, name, &lock, NULL) != HF_OK)
        return;
    hfi_lock_order_wanted(lock, hfi_owner_of(options), options->order_class);
    hfi_table_unref(lock);
}

hf_status hf_lock_acquire(hf_client *client, const char *text, const hf_lock_options *given, hf_lease **lease,
                          hf_error *error)
{
    hf_lock_options options;
    struct hfi_name name;
    if (lease == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the lease is NULL");
    *lease = NULL;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_acquire_prepare(client, text, given, &options, &name, error);
    if (status == HF_OK && client->order != NULL)
        want_in_order(client, &name, &options);
    if (status == HF_OK) {
        status = hfi_lock_take(client, &name, &options, lease, error);
        hfi_acquire_count_refusal(client, status);
    }
    if (status == HF_OK && client->order != NULL)
        hfi_lock_order_held(*lease, options.order_class);
    if (status == HF_OK)
        hfi_handle_hand_out(*lease);
    hfi_client_leave(client);
    return status;
}
