/* SPDX-License-Identifier: MIT */
/* listener.c - look at everything, sleep until something is ready or due, and again. */
#include "pool/listener.h"
#include "base/descriptor.h"
#include "base/perturb.h"
#include "base/thread.h"
#include "pool/poll_set.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

struct hfi_listener {
    struct hfi_listener_ops ops;
    const struct hfi_clock *clock;
    pthread_t thread;
    struct hfi_polled kick; /* an eventfd */
    _Atomic(bool) kicked;       /* it has been written since the last look */
    _Atomic(int64_t) kicked_ns; /* when; 0: not since the listener woke up */
    _Atomic(bool) owner_kicked; /* ops->kicked is to be called */
    _Atomic(int64_t) wakes_ns;  /* the sleep of the listener ends by then; HFI_NEVER also while it looks around */
    bool slept;                 /* in its last poll() */
    int64_t looked_ns;          /* when it looked around before that */
    bool rescan;                /* the listener kicked itself while it looked around */
    struct hfi_poll_set set;
};

/* In the listener's own thread a kick needs no system call. */
static _Thread_local struct hfi_listener *own;

void hfi_listener_kick(struct hfi_listener *listener)
{
    if (own == listener) {
        listener->rescan = true;
    } else if (!atomic_exchange(&listener->kicked, true)) {
        atomic_store(&listener->kicked_ns, hfi_now(listener->clock));
        hfi_event_set(listener->kick.fd);
    }
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
    hfi_event_set(listener->kick.fd);
    errno = before;
}

/* ---- the loop ---- */

static void take_kick(void *self, short events, int64_t now_ns)
{
    struct hfi_listener *listener = self;
    (void)events;
    hfi_event_clear(listener->kick.fd);
    int64_t kicked_ns = atomic_exchange(&listener->kicked_ns, 0);
    if (listener->slept && kicked_ns > listener->looked_ns && kicked_ns < now_ns) /* else it ended no sleep */
        listener->ops.woke(listener->ops.self, now_ns - kicked_ns);
    if (atomic_exchange(&listener->owner_kicked, false)) /* behind the read: a later kick is readable again */
        listener->ops.kicked(listener->ops.self);
}

static bool look_around(struct hfi_listener *listener, int64_t now_ns)
{
    struct hfi_poll_set *set = &listener->set;
    /* Store-load pairing with hfi_listener_kick_before(): a thread that publishes a deadline after we looked for it
     * reads HFI_NEVER here, and kicks. */
    atomic_store(&listener->wakes_ns, HFI_NEVER);
    (void)atomic_exchange(&listener->kicked, false);
    HFI_PERTURB("unkicked-to-look");
    listener->rescan = false;
    hfi_poll_set_begin(set, now_ns);
    hfi_poll_set_add(set, listener->kick, take_kick, listener);
    bool goes_on = listener->ops.look(listener->ops.self, now_ns, set);
    hfi_poll_set_end(set);
    if (listener->rescan)
        set->again_ns = now_ns;
    atomic_store(&listener->wakes_ns, set->again_ns);
    return goes_on;
}

static void *listen_to_all(void *arg)
{
    struct hfi_listener *listener = arg;
    own = listener;
    for (;;) {
        listener->looked_ns = hfi_now(listener->clock);
        if (!look_around(listener, listener->looked_ns))
            break;
        HFI_PERTURB("looked-to-poll");
        long sleeps = hfi_thread_sleeps();
        bool is_ready = hfi_poll_set_wait(&listener->set, listener->clock);
        int64_t now_ns = hfi_now(listener->clock);
        listener->slept = atomic_load(&listener->kicked_ns) != 0 && hfi_thread_sleeps() != sleeps;
        if (is_ready)
            hfi_poll_set_dispatch(&listener->set, now_ns);
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
    listener->kick = (struct hfi_polled){hfi_descriptor_event(), hfi_descriptor_number(), POLLIN};
    if (hfi_poll_set_init(&listener->set, 1 + descriptors) && listener->kick.fd >= 0) /* and the kick's */
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
    if (listener->kick.fd >= 0)
        (void)close(listener->kick.fd);
    hfi_poll_set_done(&listener->set);
    free(listener);
}

void hfi_listener_forked(struct hfi_listener *listener)
{
    (void)close(listener->kick.fd);
    (void)close(listener->set.epoll_fd);
}
