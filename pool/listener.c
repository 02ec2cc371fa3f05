/* SPDX-License-Identifier: MIT */
/* listener.c - look at everything, sleep in poll() until something is ready or due, and again. */
#include "pool/listener.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/poll.h"
#include "base/thread.h"
#include "pool/borrowers.h"
#include "pool/lane_private.h"
#include "pool/subscribe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CLOSING_TICK_NS (2 * HFI_MS) /* user threads that drain a lane do not kick us: look this often */

struct owner {
    hfi_ready_fn *ready;
    void *self;
};

struct hfi_poll_set {
    struct pollfd *fds;
    struct owner *owners;
    size_t count, capacity;
    int64_t again_ns;
};

struct hfi_listener {
    struct hfi_pool *pool;
    pthread_t thread;
    int kick_fd;
    _Atomic(bool) kicked;       /* kick_fd has been written since the last look */
    _Atomic(bool) owner_kicked; /* ops->kicked is to be called */
    _Atomic(int64_t) wakes_ns;  /* its sleep ends by then; HFI_NEVER also while it looks around */
    bool rescan;                /* the listener kicked itself while it looked around */
    struct hfi_poll_set set;
};

/* In the listener's own thread a kick needs no system call. */
static _Thread_local struct hfi_listener *own;

void hfi_poll_set_add(struct hfi_poll_set *set, int fd, short events, hfi_ready_fn *ready, void *self)
{
    if (fd < 0 || set->count == set->capacity) /* not reached: the capacity is enough for all that can be added */
        return;
    set->fds[set->count] = (struct pollfd){fd, events, 0};
    set->owners[set->count++] = (struct owner){ready, self};
}

void hfi_poll_set_again(struct hfi_poll_set *set, int64_t at_ns)
{
    if (at_ns < set->again_ns)
        set->again_ns = at_ns;
}

void hfi_listener_kick(struct hfi_listener *listener)
{
    if (own == listener)
        listener->rescan = true;
    else if (!atomic_exchange(&listener->kicked, true))
        (void)eventfd_write(listener->kick_fd, 1);
}

void hfi_listener_kick_before(struct hfi_listener *listener, int64_t at_ns)
{
    if (at_ns < atomic_load(&listener->wakes_ns))
        hfi_listener_kick(listener);
}

void hfi_listener_kick_owner(struct hfi_listener *listener)
{
    int before = errno;
    atomic_store(&listener->owner_kicked, true);
    HFI_PERTURB("owner-to-kick");
    (void)eventfd_write(listener->kick_fd, 1);
    errno = before;
}

/* ---- the loop ---- */

static void look_around(struct hfi_listener *listener, int64_t now_ns)
{
    struct hfi_pool *pool = listener->pool;
    struct hfi_poll_set *set = &listener->set;
    /* Store-load pairing with hfi_listener_kick_before(): a thread that publishes a deadline after we looked for it
     * reads HFI_NEVER here, and kicks. */
    atomic_store(&listener->wakes_ns, HFI_NEVER);
    (void)atomic_exchange(&listener->kicked, false);
    HFI_PERTURB("unkicked-to-look");
    listener->rescan = false;
    set->count = 0;
    set->again_ns = HFI_NEVER;
    hfi_poll_set_add(set, listener->kick_fd, POLLIN, NULL, NULL);
    for (int i = pool->lane_count; i-- > 0;) /* the reserved lane (renewals) first: it has the last index */
        hfi_lane_maintain(pool->lanes[i], now_ns, set);
    hfi_subscribers_maintain(pool->subscribers, now_ns, set);
    int fd = -1;
    short events = 0;
    hfi_poll_set_again(set, hfi_borrowers_maintain(pool->borrowers, now_ns, &fd, &events));
    hfi_poll_set_add(set, fd, events, NULL, NULL);
    if (atomic_load(&pool->closing_until_ns) != 0)
        hfi_poll_set_again(set, now_ns + CLOSING_TICK_NS);
    if (listener->rescan)
        set->again_ns = now_ns;
    atomic_store(&listener->wakes_ns, set->again_ns);
}

static void sleep_on(struct hfi_listener *listener)
{
    struct hfi_poll_set *set = &listener->set;
    HFI_PERTURB("looked-to-poll");
    if (hfi_poll_until(set->fds, (nfds_t)set->count, listener->pool->clock, set->again_ns) < 0)
        for (size_t i = 0; i < set->count; i++)
            set->fds[i].revents = 0;
}

static void dispatch_ready(struct hfi_listener *listener)
{
    struct hfi_pool *pool = listener->pool;
    struct hfi_poll_set *set = &listener->set;
    if (set->fds[0].revents != 0) {
        eventfd_t kicks;
        (void)eventfd_read(listener->kick_fd, &kicks);
    }
    if (atomic_exchange(&listener->owner_kicked, false) && pool->ops.kicked != NULL)
        pool->ops.kicked(pool->self);
    int64_t now_ns = hfi_now(pool->clock);
    for (size_t i = 1; i < set->count; i++)
        if (set->fds[i].revents != 0 && set->owners[i].ready != NULL)
            set->owners[i].ready(set->owners[i].self, set->fds[i].revents, now_ns);
}

static bool is_over(struct hfi_pool *pool, int64_t now_ns)
{
    int64_t until_ns = atomic_load(&pool->closing_until_ns);
    if (until_ns == 0 || now_ns >= until_ns)
        return until_ns != 0;
    for (int i = 0; i < pool->lane_count; i++)
        if (!hfi_lane_is_drained(pool->lanes[i]))
            return false;
    return true;
}

static void *listen_to_all(void *arg)
{
    struct hfi_listener *listener = arg;
    struct hfi_pool *pool = listener->pool;
    own = listener;
    for (;;) {
        int64_t now_ns = hfi_now(pool->clock);
        look_around(listener, now_ns);
        if (is_over(pool, now_ns))
            break;
        sleep_on(listener);
        dispatch_ready(listener);
    }
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_half_close(pool->lanes[i]);
    hfi_subscribers_end(pool->subscribers);
    for (int i = 0; i < pool->lane_count; i++)
        hfi_lane_drain(pool->lanes[i], atomic_load(&pool->closing_until_ns));
    return NULL;
}

hf_status hfi_listener_start(struct hfi_pool *pool, struct hfi_listener **listener, hf_error *error)
{
    struct hfi_listener *new = calloc(1, sizeof *new);
    *listener = NULL;
    if (new == NULL)
        return hfi_fail(error, HF_NOMEM, NULL, "no memory for a listener");
    new->pool = pool;
    atomic_init(&new->wakes_ns, HFI_NEVER);
    /* kick_fd, one descriptor of the borrowers, and one of each lane and subscriber. */
    new->set.capacity = 2 + (size_t)pool->lane_count + (size_t)hfi_subscribers_count(pool->subscribers);
    new->set.fds = calloc(new->set.capacity, sizeof *new->set.fds);
    new->set.owners = calloc(new->set.capacity, sizeof *new->set.owners);
    new->kick_fd = hfi_descriptor_event();
    hf_status status = HF_OK;
    if (new->set.fds == NULL || new->set.owners == NULL || new->kick_fd < 0)
        status = hfi_fail(error, HF_NOMEM, "raise the limit of open files",
                          "no memory or descriptor for a listener");
    *listener = new; /* before the thread runs: the thread kicks *listener */
    int failed = status == HF_OK ? hfi_thread_start(&new->thread, "hf-listener", listen_to_all, new) : 0;
    if (failed != 0) {
        status = hfi_fail(error, HF_NOMEM, "raise the limit of threads", "no thread for a listener: %s",
                          failed == EAGAIN ? "too many threads" : "not allowed");
        hfi_fail_errno(error, failed);
    }
    if (status != HF_OK) {
        *listener = NULL;
        hfi_listener_free(new);
    }
    return status;
}

void hfi_listener_join(struct hfi_listener *listener)
{
    (void)pthread_join(listener->thread, NULL);
}

void hfi_listener_free(struct hfi_listener *listener)
{
    if (listener == NULL)
        return;
    if (listener->kick_fd >= 0)
        (void)close(listener->kick_fd);
    free(listener->set.fds);
    free(listener->set.owners);
    free(listener);
}

void hfi_listener_forked(struct hfi_listener *listener)
{
    if (listener->kick_fd >= 0)
        (void)close(listener->kick_fd);
}
