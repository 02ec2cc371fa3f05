/* SPDX-License-Identifier: MIT */
/* grants.c - see grants.h. */
#include "core/lock/grants.h"
#include "core/lock/perform.h"
#include "base/rare.h"

/* The grant at which threads wait; NULL: none waits. All threads of a semaphore wait at one. */
static struct hfi_lock *asking_one(const struct hfi_lock *home)
{
    struct hfi_lock *lock = home->grant->asking;
    return lock != NULL && !hfi_list_is_empty(&lock->entry.waiters) ? lock : NULL;
}

struct found { /* by one walk: a process may have thousands of grants */
    struct hfi_lock *room; /* where the waiter can have permits at once; NULL: nowhere. Then also: */
    struct hfi_lock *idle; /* a grant that nobody has or waits for; NULL: none */
    bool lingers;          /* there are permits that no thread has */
};

static struct found look_for_room(struct hfi_lock *home, const struct hfi_waiter *waiter, int64_t now)
{
    struct found found = {NULL, NULL, false};
    for (struct hfi_lock *lock = home; lock != NULL && found.room == NULL; lock = hfi_lock_next(lock)) {
        if (waiter != NULL && hfi_entry_has_room(&lock->entry, waiter, now))
            found.room = lock;
        else if (found.idle == NULL && hfi_entry_is_idle(&lock->entry))
            found.idle = lock;
        found.lingers = found.lingers || hfi_entry_has_idle(&lock->entry);
    }
    return found;
}

/* NULL: there is no memory for another one. */
static struct hfi_lock *idle_one(struct hfi_lock *home)
{
    struct found found = look_for_room(home, NULL, 0);
    return found.idle != NULL ? found.idle : hfi_lock_beside(home);
}

/* Before the server is asked for more: what lingers here may be what it lacks. */
static void yield_all(struct hfi_lock *home, int64_t now)
{
    for (struct hfi_lock *lock = home; lock != NULL; lock = hfi_lock_next(lock)) {
        struct hfi_step step;
        hfi_step_init(&step, now, 0);
        hfi_entry_yield(&lock->entry, &step);
        if (step.count > 0)
            hfi_lock_perform(lock, &step, NULL);
    }
}

/* A question is in flight that nobody waits for any more. True: the waiter may wait for its answer; else it is given up. */
static bool finds_question(struct hfi_lock *asking, const struct hfi_waiter *waiter, int64_t now)
{
    struct hfi_step step;
    if (asking == NULL || !hfi_entry_is_unclaimed(&asking->entry))
        return false;
    if (hfi_entry_has_asked_for(&asking->entry, waiter))
        return true;
    hfi_step_init(&step, now, 0);
    hfi_entry_give_up_question(&asking->entry, &step);
    hfi_lock_perform(asking, &step, NULL);
    return false;
}

/* The grant at which a thread shall wait that has to ask. */
static struct hfi_lock *one_to_ask(struct hfi_lock *home, const struct found *found, const struct hfi_waiter *waiter, int64_t now)
{
    if (found->lingers) /* one that lingered is idle from now on */
        yield_all(home, now);
    if (finds_question(home->grant->asking, waiter, now))
        return home->grant->asking;
    return found->idle != NULL ? found->idle : idle_one(home);
}

void hfi_grants_arrive(struct hfi_acquirer *acquirer, int64_t now)
{
    struct hfi_lock *home = hfi_lock_home(acquirer->lock), *lock = asking_one(home);
    struct hfi_step step;
    HFI_ASSERT_HELD(home->mutex);
    if (lock == NULL) {
        struct found found = look_for_room(home, &acquirer->waiter, now);
        lock = found.room;
        if (lock == NULL)
            lock = home->grant->asking = one_to_ask(home, &found, &acquirer->waiter, now);
    }
    if (lock == NULL) {
        acquirer->waiter.verdict = HFI_REFUSED;
        acquirer->waiter.status = HF_NOMEM;
        if (acquirer->wake != NULL)
            acquirer->wake(acquirer);
        return;
    }
    acquirer->lock = lock;
    hfi_step_init(&step, now, 0);
    hfi_entry_arrive(&lock->entry, &acquirer->waiter, &step);
    hfi_lock_perform(lock, &step, NULL);
}

void hfi_grants_wanted(struct hfi_lock *lock, int64_t now)
{
    for (struct hfi_lock *other = hfi_lock_home(lock); other != NULL; other = hfi_lock_next(other)) {
        struct hfi_step step;
        if (other->entry.remote == HFI_NOTHING)
            continue;
        hfi_step_init(&step, now, 0);
        hfi_entry_remote_waiter_beside(&other->entry, &step);
        hfi_lock_perform(other, &step, NULL);
    }
}

bool hfi_grants_release(struct hfi_lock *lock, int32_t permits, bool quietly, struct hfi_step *step)
{
    struct hfi_lock *asking = quietly ? NULL : asking_one(hfi_lock_home(lock));
    struct hfi_step of_asking;
    HFI_ASSERT_HELD(lock->mutex);
    if (!hfi_entry_free_permits(&lock->entry, permits, step))
        return false;
    for (bool served = asking != NULL; served;) {
        hfi_step_init(&of_asking, step->now, 0);
        served = hfi_entry_serve(&lock->entry, &asking->entry, step, &of_asking);
        if (served)
            hfi_lock_perform(asking, &of_asking, NULL);
    }
    bool waited_for = asking_one(hfi_lock_home(lock)) != NULL; /* by threads here that want more: the server may have it for them */
    hfi_entry_settle(&lock->entry, quietly || waited_for, step);
    return true;
}

/* The threads that wait beside a grant whose permits are given out wait at another one, which asks. */
static HFI_RARE void move_waiters(struct hfi_lock *lock, struct hfi_lock *other, int64_t now)
{
    struct hfi_step step;
    hfi_step_init(&step, now, 0);
    if (other == NULL) {
        hfi_entry_refuse_all(&lock->entry, HF_NOMEM, &step);
        hfi_lock_perform(lock, &step, NULL);
        return;
    }
    hfi_lock_home(lock)->grant->asking = other;
    for (struct hfi_list *at = lock->entry.waiters.next; at != &lock->entry.waiters; at = at->next)
        hfi_container_of(at, struct hfi_acquirer, waiter.link)->lock = other;
    hfi_entry_move_waiters(&lock->entry, &other->entry, &step);
    hfi_lock_perform(other, &step, NULL);
}

void hfi_grants_look(struct hfi_lock *home, int64_t now)
{
    HFI_ASSERT_HELD(home->mutex);
    struct hfi_lock *asking = asking_one(home);
    if (home->grant->looking || asking == NULL || !hfi_entry_is_overrun(&asking->entry))
        return;
    if (atomic_load(&home->client->closing)) /* its visit of this grant is to come; that of an idle one may be over */
        return;
    home->grant->looking = true;
    move_waiters(asking, idle_one(home), now);
    home->grant->looking = false;
}
