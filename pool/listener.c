/* SPDX-License-Identifier: MIT */
/* listener.c - look at everything, sleep in poll() until something is ready or due, and again. */
#include "pool/listener.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/poll.h"
#include "base/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
    struct hfi_listener_ops ops;
    const struct hfi_clock *clock;
    pthread_t thread;
    int kick_fd;
    _Atomic(bool) kicked;       /* kick_fd has been written since the last look */
    _Atomic(bool) owner_kicked; /* ops->kicked is to be called */
    _Atomic(int64_t) wakes_ns;  /* the sleep of the listener ends by then; HFI_NEVER also while it looks around */
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

static bool look_around(struct hfi_listener *listener, int64_t now_ns)
{
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
    bool goes_on = listener->ops.look(listener->ops.self, now_ns, set);
    if (listener->rescan)
        set->again_ns = now_ns;
    atomic_store(&listener->wakes_ns, set->again_ns);
    return goes_on;
}

static void sleep_on(struct hfi_listener *listener)
{
    struct hfi_poll_set *set = &listener->set;
    HFI_PERTURB("looked-to-poll");
    if (hfi_poll_until(set->fds, (nfds_t)set->count, listener->clock, set->again_ns) < 0)
        for (size_t i = 0; i < set->count; i++)
            set->fds[i].revents = 0;
}

static void dispatch_ready(struct hfi_listener *listener)
{
    struct hfi_poll_set *set = &listener->set;
    if (set->fds[0].revents != 0) {
        eventfd_t kicks;
        (void)eventfd_read(listener->kick_fd, &kicks);
    }
    if (atomic_exchange(&listener->owner_kicked, false))
        listener->ops.kicked(listener->ops.self);
    int64_t now_ns = hfi_now(listener->clock);
    for (size_t i = 1; i < set->count; i++)
        if (set->fds[i].revents != 0 && set->owners[i].ready != NULL)
            set->owners[i].ready(set->owners[i].self, set->fds[i].revents, now_ns);
}

static void *listen_to_all(void *arg)
{
    struct hfi_listener *listener = arg;
    own = listener;
    while (look_around(listener, hfi_now(listener->clock))) {
        sleep_on(listener);
        dispatch_ready(listener);
    }
    listener->ops.end(listener->ops.self);
    return NULL;
}

struct hfi_listener *hfi_listener_new(const struct hfi_listener_ops *ops, const struct hfi_clock *clock,
                                      size_t descriptors)
{
    struct hfi_listener *listener = calloc(1, sizeof *listener);
    if (listener == NULL)
        return NULL;
    listener->ops = *ops;
    listener->clock = clock;
    atomic_init(&listener->wakes_ns, HFI_NEVER);
    listener->set.capacity = 1 + descriptors; /* and kick_fd */
    listener->set.fds = calloc(listener->set.capacity, sizeof *listener->set.fds);
    listener->set.owners = calloc(listener->set.capacity, sizeof *listener->set.owners);
    listener->kick_fd = hfi_descriptor_event();
    if (listener->set.fds != NULL && listener->set.owners != NULL && listener->kick_fd >= 0)
        return listener;
    hfi_listener_free(listener);
    return NULL;
}

hf_status hfi_listener_start(struct hfi_listener *listener, hf_error *error)
{
    int failed = hfi_thread_start(&listener->thread, "hf-listener", listen_to_all, listener);
    if (failed == 0)
        return HF_OK;
    (void)hfi_fail(error, HF_NOMEM, "raise the limit of threads", "no thread for a listener: %s",
                   failed == EAGAIN ? "too many threads" : "not allowed");
    hfi_fail_errno(error, failed);
    return HF_NOMEM;
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
    (void)close(listener->kick_fd);
}
