/* SPDX-License-Identifier: MIT */
/* acquirer.c - see acquirer.h. */
#include "core/lock/acquirer.h"
#include "core/lock/grants.h"
#include "core/lock/handle.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "core/lock/trouble.h"
#include "core/context/wait.h"
#include "base/perturb.h"
#include "base/rare.h"
#include "base/thread.h"

#include <ck_pr.h>
#include <stdlib.h>

#define LOOKS 500
#define ROAD_MS       50
#define HELD_LEAST_MS 1000

uint64_t hfi_owner_of(const hf_lock_options *options)
{
    return options->owner != 0 ? options->owner : hfi_thread_number();
}

/* The lease need not be longer than max_hold_ms plus the way to the server and back, but is at least a second, so that
 * a hand-off outlives a re-check. */
static int64_t lease_ms(const struct hfi_lock *lock, const hf_lock_options *options)
{
    if (options->max_hold_ms == 0)
        return options->lease_ms;
    int64_t rtt_ns = hfi_lane_rtt_ns(lock->lane);
    int64_t road_ms = rtt_ns != 0 ? 4 * rtt_ns / HFI_MS + ROAD_MS : lock->client->command_ms;
    int64_t enough_ms = options->max_hold_ms + road_ms;
    enough_ms = enough_ms < HELD_LEAST_MS ? HELD_LEAST_MS : enough_ms;
    return enough_ms > options->lease_ms ? options->lease_ms : enough_ms;
}

void hfi_acquirer_init(struct hfi_acquirer *acquirer, struct hfi_lock *lock, const hf_lock_options *options)
{
    hfi_park_init(&acquirer->park);
    acquirer->lock = lock;
    acquirer->options = options;
    acquirer->thread = hfi_thread_number();
    acquirer->owner = options->owner != 0 ? options->owner : acquirer->thread; /* hfi_owner_of would look it up again */
    acquirer->tid = options->signal != 0 ? hfi_thread_id() : 0;
    acquirer->wake = NULL;
    acquirer->for_others = acquirer->waiter.threadless = acquirer->waiter.again = false;
    acquirer->lease = NULL;
    acquirer->wait_number = 0;
    acquirer->ring = NULL;
    acquirer->waiter.beside_itself = false;
    acquirer->waiter.permits = 1;
    acquirer->waiter.limit = 0;
    acquirer->waiter.once = options->wait_ms == 0; /* hfi_entry_arrive and the verdict set the rest */
    bool stops_at_once = options->max_hold_ms != 0 && options->stop_ms >= options->max_hold_ms;
    acquirer->waiter.lease_ms = lease_ms(lock, options);
    acquirer->waiter.stop_ms = stops_at_once ? options->max_hold_ms / 2 : options->stop_ms;
    acquirer->waiter.max_hold_ms = options->max_hold_ms;
    acquirer->waiter.linger_ms = options->linger_ms;
}

/* This thread was woken as the successor, and runs now. */
static void come(struct hfi_lock *lock, struct hfi_acquirer *acquirer, int64_t now)
{
    struct hfi_step step;
    hfi_step_init(&step, now, 0);
    hfi_entry_successor_runs(&lock->entry, &acquirer->waiter, &step);
    hfi_lock_perform(lock, &step, NULL);
}

/* The next local pass goes to this thread, and critical sections are short: spin before sleeping. */
static void wait_shortly(struct hfi_acquirer *acquirer, uint32_t ticket)
{
    for (int i = 0; i < LOOKS && !hfi_park_is_woken(&acquirer->park, ticket); i++)
        ck_pr_stall();
}

static void wake_thread(struct hfi_acquirer *acquirer)
{
    hfi_park_wake(&acquirer->park);
}

void hfi_acquirer_arrive(struct hfi_acquirer *acquirer, int64_t now)
{
    struct hfi_lock *lock = acquirer->lock;
    struct hfi_step step;
    if (lock->keys.use == HFI_SEMAPHORE) {
        hfi_grants_arrive(acquirer, now);
        return;
    }
    hfi_step_init(&step, now, 0);
    hfi_entry_arrive(&lock->entry, &acquirer->waiter, &step);
    hfi_lock_perform(lock, &step, NULL);
}

HFI_RARE void hfi_acquirer_give_up(struct hfi_acquirer *acquirer, hf_status over, int64_t now)
{
    struct hfi_lock *lock = acquirer->lock;
    struct hfi_step step;
    if (over == HF_TIMEOUT && acquirer->waiter.once && lock->entry.trouble == HF_OK)
        hfi_lock_note_silence(lock);
    hf_status status = over == HF_TIMEOUT ? hfi_entry_why_in_vain(&lock->entry, &acquirer->waiter) : over;
    hfi_step_init(&step, now, 0);
    hfi_entry_leave(&lock->entry, &acquirer->waiter, &step);
    hfi_lock_perform(lock, &step, NULL);
    acquirer->waiter.verdict = HFI_REFUSED;
    acquirer->waiter.status = status;
}

HFI_RARE hf_status hfi_acquirer_explain_itself(const struct hfi_acquirer *acquirer, hf_error *error)
{
    const struct hfi_lock *lock = acquirer->lock;
    char name[160];
    bool reads = lock->keys.use == HFI_SHARED, has_alone = reads && !acquirer->waiter.beside_itself;
    return hfi_fail(error, HF_DEADLOCK,
                    has_alone ? "who has it alone may read as well"
                    : reads   ? "read on with that lease: another process waits for it"
                              : "release it first, then take it alone",
                    "this %s already %s lock %s", acquirer->options->owner != 0 ? "owner" : "thread",
                    has_alone ? "has alone" : "shares", hfi_quote(name, sizeof name, hfi_keys_name(&lock->keys), lock->keys.name_size));
}

HFI_RARE hf_status hfi_acquirer_explain(struct hfi_acquirer *acquirer, hf_error *error)
{
    hf_error *ring = acquirer->ring;
    if (ring == NULL && acquirer->waiter.status == HF_DEADLOCK)
        return hfi_acquirer_explain_itself(acquirer, error);
    if (ring == NULL)
        return hfi_lock_explain(acquirer->lock, acquirer->waiter.status, error);
    if (error != NULL)
        *error = *ring;
    free(ring);
    acquirer->ring = NULL;
    return HF_DEADLOCK;
}

void hfi_acquirer_wait(struct hfi_acquirer *acquirer, int64_t until_ns, hf_cancel *cancel)
{
    hf_client *client = acquirer->lock->client;
    struct hfi_mutex *mutex = acquirer->lock->mutex;
    struct hfi_wait wait;
    acquirer->wake = wake_thread;
    hfi_wait_begin(&wait, client, cancel, &acquirer->park, until_ns);
    while (acquirer->waiter.verdict == HFI_WAITING) {
        struct hfi_lock *lock = acquirer->lock;
        uint32_t ticket = hfi_park_epoch(&acquirer->park);
        /* a reply has to be read */
        bool asking = hfi_entry_awaits_answer(&lock->entry) || lock->entry.holding == HFI_AWAITING_FENCES;
        int64_t now = hfi_now(client->clock);
        if (hfi_waiter_is_successor(&acquirer->waiter) && !acquirer->waiter.overtaken) {
            come(lock, acquirer, now);
            continue;
        }
        if (acquirer->for_others && lock->entry.remote != HFI_ASKING) {
            acquirer->for_others = false;
            wait.until_ns = hfi_after_ms(now, acquirer->others_ms);
        }
        hf_status over = hfi_wait_is_over(&wait, now);
        if (over != HF_OK) {
            hfi_acquirer_give_up(acquirer, over, now);
            break;
        }
        hfi_mutex_unlock(mutex);
        HFI_PERTURB("seek-to-wait");
        if (asking)
            hfi_lane_flush_to_wait(lock->lane);
        else
            hfi_lane_flush(lock->lane);
        if (acquirer->waiter.overtaken)
            wait_shortly(acquirer, ticket);
        hfi_wait_sleep(&wait, ticket, asking ? lock->lane : NULL);
        HFI_PERTURB("seek-woken");
        hfi_mutex_lock(mutex);
    }
    /* Leave the cancel's list before the park goes out of scope. Without the lock's mutex: cancel_mutex may be held for
     * long, by hfi_cancel_kicked() over all waiting calls. */
    hfi_mutex_unlock(mutex);
    HFI_PERTURB("seek-over");
    hfi_wait_end(&wait);
    hfi_mutex_lock(mutex);
}

/* Mutex held. */
static bool is_owner(const struct hfi_lock *lock, uint64_t owner)
{
    for (const hf_lease *holder = lock->holder; holder != NULL && owner != 0; holder = hfi_handle_next(lock, holder))
        if (atomic_load(&holder->owner) == owner && hf_lease_is_valid(holder))
            return true;
    return false;
}

hf_status hfi_acquirer_reenter(struct hfi_lock *lock, struct hfi_acquirer *acquirer, hf_lease **lease, hf_error *error)
{
    const hf_lock_options *options = acquirer->options;
    hf_lease *holder = lock->holder;
    if (lock->keys.use == HFI_SEMAPHORE)
        return HF_BUSY;
    if (lock->keys.use == HFI_SHARED) { /* it would wait behind one who waits for it */
        acquirer->waiter.again =
            acquirer->waiter.beside_itself || (lock->entry.remote_waiters && is_owner(lock, acquirer->owner));
        return HF_BUSY;
    }
    if (holder == NULL || acquirer->owner == 0 || atomic_load(&holder->owner) != acquirer->owner || !hf_lease_is_valid(holder))
        return HF_BUSY;
    bool shares = lock->entry.held.downgraded; /* who re-enters would believe itself alone */
    if (!options->reentrant || !holder->reentrant || shares) {
        char name[160];
        return hfi_fail(error, HF_DEADLOCK,
                        shares ? "release it first, then take it alone"
                               : "release it first, hand it over with hf_lease_unbind, or acquire both times with .reentrant",
                        shares ? "this %s already shares lock %s" : "this %s already holds lock %s",
                        options->owner != 0 ? "owner" : "thread",
                        hfi_quote(name, sizeof name, hfi_keys_name(&lock->keys), lock->keys.name_size));
    }
    if (holder->depth == UINT16_MAX)
        return hfi_fail(error, HF_INVALID, "release it as often as acquired", "the lease is acquired 65,536 times");
    holder->depth++;
    *lease = holder;
    return HF_OK;
}

void hfi_acquirer_has_to_wait(const struct hfi_lock *lock, struct hfi_acquirer *acquirer)
{
    if (lock->keys.use == HFI_SHARED)
        acquirer->waiter.again = acquirer->waiter.beside_itself || is_owner(lock, acquirer->owner);
}

HFI_RARE bool hfi_owner_waits_for_itself(const struct hfi_lock *lock, uint64_t owner, bool *beside_itself)
{
    *beside_itself = false;
    if (lock->keys.use == HFI_DIALECT)
        return false;
    hf_client *client = lock->client;
    struct hfi_lock *other;
    struct hfi_name name = hfi_keys_name_as(&lock->keys, lock->keys.use == HFI_SHARED ? HFI_MUTEX : HFI_SHARED);
    if (hfi_table_get(client, &name, &other, NULL) != HF_OK)
        return false;
    hfi_mutex_lock(other->mutex);
    bool has = is_owner(other, owner);
    *beside_itself = has && other->keys.use == HFI_MUTEX && other->entry.held.downgraded;
    hfi_mutex_unlock(other->mutex);
    hfi_table_unref(other);
    return has;
}
