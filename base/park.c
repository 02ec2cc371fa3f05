/* SPDX-License-Identifier: MIT */
/* park.c - park and wake on ck_ec, with futexes below it. */
#include "base/park.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/list.h"
#include "base/perturb.h"
#include "base/tsan.h"

#include <ck_ec.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(struct ck_ec32) == sizeof(uint32_t), "a park stores a ck_ec32");

static int boottime(const struct ck_ec_ops *ops, struct timespec *out)
{
    (void)ops;
    return clock_gettime(CLOCK_BOOTTIME, out);
}

/* A sleeper does not sleep on its own word but in a bucket, under one bit of the bucket's futex, so that one system
 * call wakes many. Parks get their bucket and bit in the order in which threads first sleep, which is about the order
 * in which replies wake them, so a batch is one or two buckets. Two sleepers under one bit wake together; each tests
 * its own count. */
#define BUCKETS   512
#define BITS      32 /* of a futex's bitset */
#define HELD_MOST 64
#define FOREVER   (HFI_NEVER / HFI_SECOND)

static _Atomic(uint32_t) buckets[BUCKETS], next_bucket_bit;

static _Thread_local struct {
    int depth, count;
    struct {
        uint32_t bucket, bits;
    } wakes[HELD_MOST];
} held;

static struct hfi_park *park_of(const uint32_t *word)
{
    return hfi_container_of((uint32_t *)(uintptr_t)word, struct hfi_park, count);
}

/* The bucket's generation is read before the count is tested: a waker moves the count first and the generation later,
 * so a wake after the test ends the futex wait. Futexes do not know CLOCK_BOOTTIME, so the deadline is converted to
 * CLOCK_MONOTONIC. A wait without a deadline needs neither clock nor timer. */
static void wait32(const struct ck_ec_wait_state *state, const uint32_t *word, uint32_t expected,
                   const struct timespec *deadline)
{
    const struct timespec *end = state->data;
    struct timespec until;
    uint32_t bucket_bit = atomic_load(&park_of(word)->bucket_bit) - 1;
    _Atomic(uint32_t) *bucket = &buckets[bucket_bit / BITS];
    uint32_t generation = atomic_load(bucket);
    if (ck_pr_load_32(word) != expected)
        return;
    if (end->tv_sec == FOREVER)
        deadline = NULL;
    if (deadline != NULL) {
        int64_t left = hfi_timespec_ns(deadline) - hfi_now(&hfi_boottime);
        if (left <= 0)
            return;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until = hfi_timespec(hfi_timespec_ns(&until) + left);
    }
    HFI_PERTURB("park-to-futex");
    (void)syscall(SYS_futex, bucket, FUTEX_WAIT_BITSET_PRIVATE, generation, deadline != NULL ? &until : NULL, NULL,
                  UINT32_C(1) << bucket_bit % BITS);
}

static void futex_wake(uint32_t bucket, uint32_t bits)
{
    int before = errno;
    (void)atomic_fetch_add(&buckets[bucket], 1);
    (void)syscall(SYS_futex, &buckets[bucket], FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
    errno = before;
}

void hfi_park_hold(void)
{
    held.depth++;
}

void hfi_park_let_go(void)
{
    if (--held.depth > 0 || held.count == 0)
        return;
    for (int i = 0; i < held.count; i++)
        futex_wake(held.wakes[i].bucket, held.wakes[i].bits);
    held.count = 0;
}

static void wake32(const struct ck_ec_ops *ops, const uint32_t *word)
{
    (void)ops;
    uint32_t bucket_bit = atomic_load(&park_of(word)->bucket_bit) - 1;
    uint32_t bucket = bucket_bit / BITS, bit = UINT32_C(1) << bucket_bit % BITS;
    int i = 0;
    while (i < held.count && held.wakes[i].bucket != bucket)
        i++;
    if (held.depth == 0 || i == HELD_MOST) {
        futex_wake(bucket, bit);
    } else if (i < held.count) {
        held.wakes[i].bits |= bit;
    } else {
        held.wakes[i].bucket = bucket;
        held.wakes[i].bits = bit;
        held.count++;
    }
}

/* No busy loop and no back-off before the futex: a wait here is for another thread or machine. */
static const struct ck_ec_ops ops = {
    .gettime = boottime, .wait32 = wait32, .wake32 = wake32, .busy_loop_iter = 1, .initial_wait_ns = INT32_MAX};
static const struct ck_ec_mode mode = {.ops = &ops, .single_producer = false};

static struct ck_ec32 *counter(struct hfi_park *park)
{
    return (struct ck_ec32 *)(void *)&park->count;
}

void hfi_park_init(struct hfi_park *park)
{
    ck_ec32_init(counter(park), 0);
    atomic_init(&park->bucket_bit, 0);
    atomic_init(&park->kick_fd, -1);
}

uint32_t hfi_park_epoch(struct hfi_park *park)
{
    uint32_t epoch = ck_ec32_value(counter(park));
    hfi_tsan_acquire(park);
    return epoch;
}

uint32_t hfi_park_next(uint32_t epoch)
{
    return (epoch + 1) & (uint32_t)INT32_MAX; /* ck_ec counts in 31 bits */
}

bool hfi_park_is_woken(struct hfi_park *park, uint32_t epoch)
{
    return hfi_park_epoch(park) != epoch;
}

/* ck_ec checks the deadline only between the steps of its back-off; this cuts each step short at the deadline. */
static int not_beyond(const struct ck_ec_wait_state *state, struct timespec *step)
{
    const struct timespec *until = state->data;
    if (until->tv_sec < step->tv_sec || (until->tv_sec == step->tv_sec && until->tv_nsec < step->tv_nsec))
        *step = *until;
    return 0;
}

/* Called before the count says that there is a sleeper, for then a waker reads bucket_bit. */
static void take_bucket_bit(struct hfi_park *park)
{
    uint32_t none = 0;
    if (atomic_load(&park->bucket_bit) == 0)
        (void)atomic_compare_exchange_strong(&park->bucket_bit, &none,
                                             atomic_fetch_add(&next_bucket_bit, 1) % (BUCKETS * BITS) + 1);
}

bool hfi_park_wait(struct hfi_park *park, uint32_t epoch, int64_t until_ns)
{
    take_bucket_bit(park);
    struct timespec until = hfi_timespec(until_ns);
    bool woken = ck_ec32_wait_pred(counter(park), &mode, epoch, not_beyond, &until,
                                   until_ns == HFI_NEVER ? NULL : &until) == 0;
    hfi_tsan_acquire(park);
    return woken;
}

void hfi_park_wake(struct hfi_park *park)
{
    hfi_tsan_release(park);
    ck_ec32_inc(counter(park), &mode);
    HFI_PERTURB("count-to-kick");
    /* Store-load pairing with hfi_park_kick(): we move the count, then read kick_fd; a waiter that sets kick_fd after
     * that read observes the new count and does not poll. */
    ck_pr_fence_atomic_load();
    int fd = atomic_load(&park->kick_fd);
    if (fd >= 0)
        hfi_event_set(fd);
}

void hfi_park_kick(struct hfi_park *park, int fd)
{
    (void)atomic_exchange(&park->kick_fd, fd);
    ck_pr_fence_atomic_load(); /* before the caller reads the count */
}
