/* SPDX-License-Identifier: MIT */
/*
 * mutex.h - a mutex with a rank. A thread that holds a mutex takes only mutexes of a higher rank, and so never two of the
 * same rank: no cycle of waiting threads can form. Builds for development (HOLDFAST_CHECKED) stop at the first lock that
 * breaks the order; in every other build this is pthread_mutex_t and nothing else. docs/architecture.md lists the mutexes.
 */
#ifndef HFI_MUTEX_H
#define HFI_MUTEX_H

#include "base/check.h"

#include <pthread.h>
#include <stdbool.h>

enum hfi_rank {
    HFI_RANK_OUTER,  /* a lock's, a call's: taken with nothing of ours held                    */
    HFI_RANK_MIDDLE, /* a multilock's: what happens to its parts is told under it, in one order; a table shard's */
    HFI_RANK_INNER,  /* a lease's event sink's, a client's small ones: may be taken under those */
    HFI_RANK_LEAF    /* of base, pool and watchdog: none is taken under it                     */
};

struct hfi_mutex {
    pthread_mutex_t mutex;
#ifdef HFI_CHECKED
    enum hfi_rank rank;
#endif
};

#ifdef HFI_CHECKED
struct hfi_held { /* the mutexes that a thread holds: thread.c */
    const struct hfi_mutex *mutexes[HFI_RANK_LEAF + 1];
};
/* Called before the thread locks the mutex; after it has unlocked it. */
void hfi_mutex_note_taken(const struct hfi_mutex *mutex);
void hfi_mutex_note_given(const struct hfi_mutex *mutex);
bool hfi_mutex_is_held(const struct hfi_mutex *mutex);
bool hfi_mutex_none_is_held(void); /* by this thread */
#else
#define hfi_mutex_note_taken(mutex) ((void)0)
#define hfi_mutex_note_given(mutex) ((void)0)
#endif

/* The function that says this is called with the mutex held. */
#define HFI_ASSERT_HELD(mutex) HFI_CHECK(hfi_mutex_is_held(mutex))

static inline void hfi_mutex_init(struct hfi_mutex *mutex, enum hfi_rank rank)
{
    (void)pthread_mutex_init(&mutex->mutex, NULL);
#ifdef HFI_CHECKED
    mutex->rank = rank;
#else
    (void)rank;
#endif
}

static inline void hfi_mutex_destroy(struct hfi_mutex *mutex)
{
    (void)pthread_mutex_destroy(&mutex->mutex);
}

static inline void hfi_mutex_lock(struct hfi_mutex *mutex)
{
    hfi_mutex_note_taken(mutex);
    (void)pthread_mutex_lock(&mutex->mutex);
}

static inline void hfi_mutex_unlock(struct hfi_mutex *mutex)
{
    (void)pthread_mutex_unlock(&mutex->mutex);
    hfi_mutex_note_given(mutex);
}

/* pthread_cond_wait: without it meanwhile, and with it again. */
static inline void hfi_mutex_wait(struct hfi_mutex *mutex, pthread_cond_t *condition)
{
    (void)pthread_cond_wait(condition, &mutex->mutex);
}

#endif
