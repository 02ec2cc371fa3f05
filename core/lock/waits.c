/* SPDX-License-Identifier: MIT */
/* waits.c - see waits.h. */
#include "core/lock/waits.h"
#include "core/lock/handle.h"
#include "core/lock/server_time.h"
#include "core/lock/table.h"
#include "core/policy/look_pace.h"
#include "base/random.h"

#include <stdlib.h>

#define TURN 499 /* waits; odd and prime: in the end each of them was the first */

struct look {
    struct hfi_waits *all;
    uint64_t *owners; /* of what is held */
    struct hfi_listed_wait *waits;
    int owner_count, owner_room, wait_count, wait_room;
};

/* False: no memory; what does not fit is looked at next time. */
static bool room_for(void **all, int count, int *room, size_t size)
{
    if (count < *room)
        return true;
    int more = *room > 0 ? 2 * *room : 64;
    void *larger = realloc(*all, (size_t)more * size);
    if (larger == NULL)
        return false;
    *all = larger;
    *room = more;
    return true;
}

static void note_holder(struct look *look, const struct hfi_lock *lock)
{
    uint64_t owner = lock->holder != NULL && hf_lease_is_valid(lock->holder) ? atomic_load(&lock->holder->owner) : 0;
    if (owner != 0 && room_for((void **)&look->owners, look->owner_count, &look->owner_room, sizeof *look->owners))
        look->owners[look->owner_count++] = owner;
}

/* False: this waiter, and so all behind it, have not waited long enough. */
static bool note_waiter(struct look *look, struct hfi_lock *lock, struct hfi_acquirer *acquirer, int64_t now)
{
    int64_t waited = now - acquirer->waiter.since;
    if (waited < look->all->every_ns)
        return false;
    if (acquirer->owner == 0 || acquirer->waiter.once || acquirer->waiter.threadless || /* its owner may go on meanwhile */
        !room_for((void **)&look->waits, look->wait_count, &look->wait_room, sizeof *look->waits))
        return true;
    if (acquirer->wait_number == 0) {
        acquirer->wait_number = ++look->all->numbers;
        acquirer->start_us = hfi_server_time_at_least(lock->client, now) - waited / 1000;
        acquirer->wait_nonce = 0;
        (void)hfi_random_word(lock->client->random, &acquirer->wait_nonce); /* without any it can be guessed */
        acquirer->wait_nonce >>= 1;
    }
    hfi_table_ref(lock);
    look->waits[look->wait_count++] = (struct hfi_listed_wait){.lock = lock, .owner = acquirer->owner,
                                                      .number = acquirer->wait_number, .nonce = acquirer->wait_nonce,
                                                      .start_us = acquirer->start_us};
    return true;
}

static void look_at(struct hfi_lock *lock, void *arg)
{
    struct look *look = arg;
    if (lock->keys.use != HFI_MUTEX)
        return;
    int64_t now = hfi_lock_enter(lock);
    note_holder(look, lock);
    for (struct hfi_list *at = lock->entry.waiters.next; at != &lock->entry.waiters; at = at->next)
        if (!note_waiter(look, lock, hfi_container_of(at, struct hfi_acquirer, waiter.link), now))
            break;
    hfi_mutex_unlock(lock->mutex);
}

static int by_size(const void *a, const void *b)
{
    const uint64_t *one = a, *other = b;
    return *one < *other ? -1 : *one > *other;
}

/* Drops the waits of owners that hold nothing here. */
static void keep_holders(struct look *look)
{
    int kept = 0;
    if (look->owner_count > 0)
        qsort(look->owners, (size_t)look->owner_count, sizeof *look->owners, by_size);
    for (int i = 0; i < look->wait_count; i++) {
        if (look->owner_count > 0 &&
            bsearch(&look->waits[i].owner, look->owners, (size_t)look->owner_count, sizeof *look->owners, by_size) != NULL)
            look->waits[kept++] = look->waits[i];
        else
            hfi_table_unref(look->waits[i].lock);
    }
    look->wait_count = kept;
}

static void drop(struct hfi_listed_wait *waits, int count)
{
    for (int i = 0; i < count; i++)
        hfi_table_unref(waits[i].lock);
    free(waits);
}

static void replace(struct hfi_waits *waits, struct look *look)
{
    hfi_mutex_lock(&waits->mutex);
    struct hfi_listed_wait *before = waits->over ? look->waits : waits->waits;
    int count = waits->over ? look->wait_count : waits->count;
    waits->waits = waits->over ? NULL : look->waits;
    waits->count = waits->over ? 0 : look->wait_count;
    waits->turn = waits->count > 0 ? (waits->turn + TURN) % waits->count : 0;
    hfi_mutex_unlock(&waits->mutex);
    drop(before, count);
}

static void arm(struct hfi_waits *waits, int64_t at)
{
    hfi_mutex_lock(&waits->mutex); /* orders this with the end */
    if (!waits->over)
        (void)hfi_watchdog_arm(waits->client->watchdog, &waits->alarm.timer, at);
    hfi_mutex_unlock(&waits->mutex);
}

void hfi_waits_begin(struct hfi_waits *waits, int64_t now)
{
    if (waits == NULL)
        return;
    atomic_thread_fence(memory_order_seq_cst); /* see hfi_waits_look */
    if (!atomic_load(&waits->armed) && !atomic_exchange(&waits->armed, true))
        arm(waits, now + waits->every_ns);
}

void hfi_waits_look(struct hfi_waits *waits)
{
    struct look look = {.all = waits};
    hf_client *client = waits->client;
    atomic_store(&waits->armed, false);
    atomic_thread_fence(memory_order_seq_cst); /* either a call that begins to wait sees this, or it is counted here */
    int64_t used = hfi_cpu_ns(); /* not the time: a busy machine may leave this thread without CPU for as long as it likes */
    bool any = hfi_counted(client, waiting) > 0;
    if (any)
        hfi_table_each(client, look_at, &look);
    keep_holders(&look);
    free(look.owners);
    replace(waits, &look);
    if (!any)
        return;
    int64_t pause = hfi_look_pause_ns(hfi_cpu_ns() - used, waits->every_ns);
    atomic_store(&waits->armed, true);
    arm(waits, hfi_now(client->clock) + pause);
}

struct hfi_waits *hfi_waits_new(hf_client *client, int64_t every_ns, void (*ring)(struct hfi_alarm *alarm, struct hfi_tick *tick))
{
    struct hfi_waits *waits = calloc(1, sizeof *waits);
    if (waits == NULL)
        return NULL;
    waits->client = client;
    waits->every_ns = every_ns;
    waits->alarm.ring = ring;
    hfi_mutex_init(&waits->mutex, HFI_RANK_INNER);
    return waits;
}

void hfi_waits_end(struct hfi_waits *waits)
{
    if (waits == NULL)
        return;
    hfi_mutex_lock(&waits->mutex);
    struct hfi_listed_wait *before = waits->waits;
    int count = waits->count;
    waits->over = true;
    waits->waits = NULL;
    waits->count = 0;
    if (waits->client->watchdog != NULL)
        (void)hfi_watchdog_arm(waits->client->watchdog, &waits->alarm.timer, HFI_NEVER);
    hfi_mutex_unlock(&waits->mutex);
    drop(before, count);
}

void hfi_waits_free(struct hfi_waits *waits)
{
    if (waits != NULL)
        hfi_mutex_destroy(&waits->mutex);
    free(waits);
}

struct hfi_acquirer *hfi_waits_find(struct hfi_lock *lock, uint64_t number)
{
    HFI_ASSERT_HELD(lock->mutex);
    for (struct hfi_list *at = lock->entry.waiters.next; at != &lock->entry.waiters; at = at->next) {
        struct hfi_acquirer *acquirer = hfi_container_of(at, struct hfi_acquirer, waiter.link);
        if (acquirer->wait_number == number)
            return acquirer;
    }
    return NULL;
}

bool hfi_waits_at(struct hfi_waits *waits, int i, struct hfi_listed_wait *wait)
{
    hfi_mutex_lock(&waits->mutex);
    bool found = i < waits->count;
    if (found) {
        *wait = waits->waits[(i + waits->turn) % waits->count];
        hfi_table_ref(wait->lock);
    }
    hfi_mutex_unlock(&waits->mutex);
    return found;
}

bool hfi_waits_of(struct hfi_waits *waits, uint64_t owner, int i, struct hfi_listed_wait *wait)
{
    bool found = false;
    hfi_mutex_lock(&waits->mutex);
    for (int at = 0; at < waits->count && !found; at++) {
        if (waits->waits[at].owner != owner || i-- > 0)
            continue;
        found = true;
        *wait = waits->waits[at];
        hfi_table_ref(wait->lock);
    }
    hfi_mutex_unlock(&waits->mutex);
    return found;
}

bool hfi_waits_pass(struct hfi_waits *waits, uint64_t number, int most)
{
    bool may = false;
    hfi_mutex_lock(&waits->mutex);
    for (int at = 0; at < waits->count && !may; at++)
        may = waits->waits[at].number == number && waits->waits[at].passed++ < most;
    hfi_mutex_unlock(&waits->mutex);
    return may;
}
