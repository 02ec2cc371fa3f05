/* SPDX-License-Identifier: MIT */
/* multilock.c - hf_multilock_acquire: one script that takes all names or none; where that cannot be, one name after the
 * other in the order of their keys. */
#include "base/thread.h"
#include "core/lock/acquire.h"
#include "core/lock/acquirer.h"
#include "core/lock/event_sink.h"
#include "core/lock/lane_choice.h"
#include "core/lock/lock_order.h"
#include "core/lock/parts.h"
#include "core/lock/perform.h"
#include "core/lock/table.h"
#include "core/lock/together.h"
#include "core/lock/trouble.h"
#include "core/protocol/options.h"

#include <holdfast/multilock.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct wanted { /* one of the names */
    struct hfi_name name;
    struct hfi_lock *lock; /* a reference */
    hf_lease *lease;       /* NULL: not taken */
};

struct set { /* of one hf_multilock_acquire */
    hf_client *client;
    const hf_lock_options *options; /* the caller's */
    hf_lock_options of_part;        /* for each name: without callback, signal and descriptor, which the whole has */
    int64_t until_ns;
    int count;
    struct wanted names[HF_NAMES_MAX]; /* in the order of their keys */
};

static int by_key(const void *a, const void *b)
{
    const struct hfi_keys *one = &((const struct wanted *)a)->lock->keys, *other = &((const struct wanted *)b)->lock->keys;
    size_t common = one->lock_size < other->lock_size ? one->lock_size : other->lock_size;
    int order = memcmp(one->lock, other->lock, common);
    return order != 0 ? order : (one->lock_size > other->lock_size) - (one->lock_size < other->lock_size);
}

static void unref_all(struct set *set)
{
    for (int i = 0; i < set->count; i++)
        hfi_table_unref(set->names[i].lock);
    set->count = 0;
}

/* HF_OK: a reference to the lock of each name, in the order of their keys; else none is left. */
static hf_status find_all(struct set *set, const char *const *texts, size_t count, hf_error *error)
{
    hf_status status = HF_OK;
    for (size_t i = 0; i < count && status == HF_OK; i++) {
        struct wanted *wanted = &set->names[set->count];
        wanted->lease = NULL;
        status = hfi_name_take(HFI_MUTEX, texts[i], 0, &wanted->name, error);
        if (status == HF_OK)
            status = hfi_acquire_speak(set->client, set->options, NULL, &wanted->name, error);
        if (status == HF_OK)
            status = hfi_table_get(set->client, &wanted->name, &wanted->lock, error);
        set->count += status == HF_OK;
    }
    if (status == HF_OK)
        qsort(set->names, (size_t)set->count, sizeof set->names[0], by_key);
    for (int i = 1; i < set->count && status == HF_OK; i++) {
        char name[160];
        if (set->names[i].lock == set->names[i - 1].lock)
            status = hfi_fail(error, HF_INVALID, "name each lock once", "the name %s is there twice",
                              hfi_quote(name, sizeof name, set->names[i].name.text, set->names[i].name.size));
    }
    if (status != HF_OK)
        unref_all(set);
    return status;
}

static void forget_leases(struct set *set) /* the leases belong to the whole, or were released with it */
{
    for (int i = 0; i < set->count; i++)
        set->names[i].lease = NULL;
}

static void give_back_all(struct set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->names[i].lease != NULL)
            (void)hf_lease_post_release(set->names[i].lease, NULL);
    forget_leases(set);
}

/* Takes all names or none by one script. HF_BUSY: *busy is the first name that was not free; or -1, if a name is in use in
 * this process, so that no command was sent. */
static hf_status take_together(struct set *set, int *busy, hf_error *error)
{
    struct hfi_lock *locks[HF_NAMES_MAX];
    hf_lease *leases[HF_NAMES_MAX];
    for (int i = 0; i < set->count; i++)
        locks[i] = set->names[i].lock;
    hfi_lane_choose_only(locks[0]); /* it goes by that of the first */
    hf_status status = hfi_together_take(locks, set->count, &set->of_part, set->until_ns, leases, busy, error);
    for (int i = 0; i < set->count && status == HF_OK; i++)
        set->names[i].lease = leases[i];
    return status;
}

/* wait_ms for the next name: 0 for a try; else what is left of the caller's time, at least 1, because 0 would be a try. */
static int64_t wait_left_ms(const struct set *set)
{
    if (set->options->wait_ms <= 0)
        return set->options->wait_ms;
    int64_t left = (set->until_ns - hfi_now(set->client->clock) + HFI_MS - 1) / HFI_MS;
    return left > 1 ? left : 1;
}

static hf_status out_of_time(const struct set *set, struct hfi_lock *lock, hf_error *error)
{
    hfi_mutex_lock(lock->mutex);
    hf_status status = hfi_lock_explain(lock, set->options->wait_ms == 0 ? HF_UNAVAILABLE : HF_TIMEOUT, error);
    hfi_mutex_unlock(lock->mutex);
    return status;
}

/* HF_DEADLOCK: this owner holds one of them already. Looked at before anything is taken or waited for. */
static hf_status look_for_own(const struct set *set, hf_error *error)
{
    hf_status status = HF_BUSY;
    for (int i = 0; i < set->count && status == HF_BUSY; i++) {
        struct hfi_lock *lock = set->names[i].lock;
        struct hfi_acquirer acquirer;
        hf_lease *none;
        hfi_acquirer_init(&acquirer, lock, &set->of_part);
        hfi_mutex_lock(lock->mutex);
        status = hfi_acquirer_reenter(lock, &acquirer, &none, error);
        hfi_mutex_unlock(lock->mutex);
        bool beside_itself = false, shares = atomic_load_explicit(&set->client->shares, memory_order_relaxed);
        if (status == HF_BUSY && shares && hfi_owner_waits_for_itself(lock, acquirer.owner, &beside_itself))
            status = hfi_acquirer_explain_itself(&acquirer, error);
    }
    return status == HF_BUSY ? HF_OK : status;
}

/* One name after the other. The order of the keys is that of all processes, so no two of them wait for each other. A
 * try, which waits for none, begins with the name that was busy: mostly it ends there, with nothing taken. */
static hf_status take_in_order(struct set *set, int first, hf_error *error)
{
    hf_status status = HF_OK;
    for (int n = 0; n < set->count && status == HF_OK; n++) {
        int i = n == 0 ? first : n <= first ? n - 1 : n;
        struct wanted *wanted = &set->names[i];
        if (n > 0 && hfi_now(set->client->clock) >= set->until_ns) {
            status = out_of_time(set, wanted->lock, error);
            break;
        }
        set->of_part.wait_ms = wait_left_ms(set);
        hfi_lane_choose_only(wanted->lock);
        status = hfi_lock_take(set->client, &wanted->name, &set->of_part, &wanted->lease, error);
    }
    if (status != HF_OK)
        give_back_all(set);
    return status;
}

/* The part belongs to the whole from now on, and the time of max_hold_ms begins. False: it is lost already. */
static bool begin_part(hf_lease *part, hf_lease *whole, int64_t max_hold_ms)
{
    struct hfi_lock *lock = part->lock;
    struct hfi_step step;
    int64_t now = hfi_lock_enter(lock), end = atomic_load(part->end);
    bool held = part->holds && end > now;
    if (held) {
        part->whole = whole;
        if (max_hold_ms > 0) {
            hfi_step_init(&step, now, 0);
            hfi_entry_limit_hold(&lock->entry, max_hold_ms, &step);
            part->hold_end = lock->entry.held.times.hold_end;
            atomic_store(part->end, hfi_lease_end(&lock->entry.held.times));
            hfi_lock_perform(lock, &step, NULL);
        }
        whole->hold_end = part->hold_end < whole->hold_end ? part->hold_end : whole->hold_end;
        if (hf_lease_state(part) == HF_LEASE_AT_RISK)
            hfi_parts_told(part, HF_EVENT_AT_RISK, hf_lease_reason(part));
    }
    hfi_mutex_unlock(lock->mutex);
    return held;
}

/* Makes one lease of those that were taken. HF_LOST: one of them is over already; all have gone back. */
static hf_status join(struct set *set, hf_lease **lease, hf_error *error)
{
    const hf_lock_options *options = set->options;
    hf_lease *parts[HF_NAMES_MAX];
    for (int i = 0; i < set->count; i++)
        parts[i] = set->names[i].lease;
    int tid = options->signal != 0 ? hfi_thread_id() : 0;
    hf_lease *whole = hfi_parts_join(parts, set->count, options, hfi_owner_of(options), hfi_thread_number(), tid);
    if (whole == NULL) {
        give_back_all(set);
        return hfi_fail(error, HF_NOMEM, "", "no memory for the lease of a multilock");
    }
    forget_leases(set);
    bool held = true;
    for (int i = 0; i < set->count && held; i++)
        held = begin_part(parts[i], whole, options->max_hold_ms);
    if (held && options->event_fd && hf_lease_event_fd(whole) < 0) {
        int os_errno = errno;
        (void)hf_lease_post_release(whole, NULL);
        hfi_fail(error, HF_NOMEM, "raise the limit of open files (ulimit -n)", "no descriptor for the lease's event");
        hfi_fail_errno(error, os_errno);
        return HF_NOMEM;
    }
    if (!held || !hf_lease_is_valid(whole)) {
        (void)hf_lease_post_release(whole, NULL);
        return hfi_fail(error, HF_LOST, "", "a lease of the multilock was over before the last one was held");
    }
    *lease = whole;
    return HF_OK;
}

static hf_status take(struct set *set, hf_lease **lease, hf_error *error)
{
    bool tries = set->options->wait_ms == 0;
    for (;;) {
        int busy = -1; /* in a dialect what marks a lock is one script a name */
        hf_status status = set->names[0].name.dialect != NULL ? HF_BUSY : take_together(set, &busy, error);
        bool passes = status == HF_UNAVAILABLE || status == HF_NOMEM; /* as for a single lock, which waits for better times */
        if (status == HF_BUSY || (passes && !tries))
            status = take_in_order(set, tries && busy > 0 ? busy : 0, error);
        if (status == HF_OK)
            status = join(set, lease, error);
        if (status != HF_LOST)
            return status;
        if (tries || hfi_now(set->client->clock) >= set->until_ns)
            return hfi_fail(error, HF_TIMEOUT, "is this process starved of CPU, or lease_ms short for so many names?",
                            "a lease of the multilock was over before the last one was held");
    }
}

/* For .check_order: the owner takes each name of the set after the locks that it holds already. Within the set the order
 * is that of the keys. It is not recorded for classes that several names share by their numbers: by the keys "1:x" comes
 * before "2:y", but "1:y" before "2:x". */
static void want_all(const struct set *set)
{
    for (int i = 0; i < set->count; i++)
        hfi_lock_order_wanted(set->names[i].lock, hfi_owner_of(set->options), set->options->order_class);
}

static void hold_all(const struct set *set, const hf_lease *whole)
{
    const char *class = set->options->order_class;
    for (int i = 0; i < set->count && class == NULL; i++)
        if (hfi_lock_order_is_alone(set->names[i].lock)) {
            hfi_lock_order_wanted(set->names[i].lock, hfi_owner_of(set->options), NULL);
            hfi_lock_order_held(whole->parts->at[i].lease, NULL);
        }
    for (int i = 0; i < set->count; i++) /* the others; listed ones are not listed twice */
        hfi_lock_order_held(whole->parts->at[i].lease, class);
}

static hf_status check(const char *const *names, size_t count, const hf_lock_options *options, hf_error *error)
{
    if (names == NULL || count < 1 || count > HF_NAMES_MAX)
        return hfi_fail(error, HF_INVALID, "pass 1 to 64 names", "a multilock of %zu names", names == NULL ? 0 : count);
    if (options->name_size != 0)
        return hfi_fail(error, HF_INVALID, "its names end with a NUL byte", "name_size is set for a multilock");
    if (options->shared)
        return hfi_fail(error, HF_INVALID, "share each of them by hf_lock_acquire", "several locks cannot be .shared together");
    if (options->reentrant)
        return hfi_fail(error, HF_INVALID, "acquire it once, and pass its lease on", "a multilock is not reentrant");
    return HF_OK;
}

static hf_status acquire(hf_client *client, const char *const *names, size_t count, const hf_lock_options *options,
                         hf_lease **lease, hf_error *error)
{
    hf_error why = {.status = HF_OK}; /* a set that was not free at once may be had later */
    struct set *set = malloc(sizeof *set);
    if (set == NULL)
        return hfi_fail(error, HF_NOMEM, "", "no memory for the names of a multilock");
    set->client = client;
    set->options = options;
    set->of_part = *options;
    set->of_part.on_event = NULL;
    set->of_part.signal = 0;
    set->of_part.event_fd = false;
    set->of_part.max_hold_ms = 0; /* it begins when all are held */
    if (options->max_hold_ms != 0 && options->stop_ms >= options->max_hold_ms)
        set->of_part.stop_ms = options->max_hold_ms / 2;
    set->count = 0;
    int64_t now = hfi_now(client->clock);
    set->until_ns = hfi_after_ms(now, options->wait_ms == 0 ? client->command_ms : options->wait_ms);
    hf_status status = find_all(set, names, count, &why);
    if (status == HF_OK)
        status = look_for_own(set, &why);
    if (status == HF_OK && client->order != NULL)
        want_all(set);
    if (status == HF_OK)
        status = take(set, lease, &why);
    if (status == HF_OK && client->order != NULL)
        hold_all(set, *lease);
    if (status == HF_OK)
        hfi_handle_hand_out(*lease);
    unref_all(set);
    free(set);
    return hfi_fail_by(error, status, &why);
}

hf_status hf_multilock_acquire(hf_client *client, const char *const *names, size_t count,
                               const hf_lock_options *given, hf_lease **lease, hf_error *error)
{
    hf_lock_options options;
    if (lease == NULL)
        return hfi_fail(error, HF_INVALID, "", "the place for the lease is NULL");
    *lease = NULL;
    hf_status status = hfi_client_enter(client, error);
    if (status != HF_OK)
        return status;
    status = hfi_acquire_options(client, given, &options, error);
    if (status == HF_OK)
        status = check(names, count, &options, error);
    if (status == HF_OK)
        status = acquire(client, names, count, &options, lease, error);
    hfi_acquire_count_refusal(client, status);
    hfi_client_leave(client);
    return status;
}

int64_t hf_lease_fence_of(const hf_lease *lease, const char *name)
{
    if (lease == NULL || name == NULL)
        return 0;
    if (lease->parts == NULL)
        return strcmp(hf_lease_name(lease), name) == 0 ? lease->fence : 0;
    for (int i = 0; i < lease->parts->count; i++)
        if (strcmp(hf_lease_name(lease->parts->at[i].lease), name) == 0)
            return lease->parts->at[i].lease->fence;
    return 0;
}
