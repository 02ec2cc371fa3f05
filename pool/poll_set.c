/* SPDX-License-Identifier: MIT */
/* poll_set.c - see poll_set.h.
 *
 * A descriptor that was closed leaves the epoll by itself, unless a fork child still has it: then the epoll goes on
 * reporting it, and nobody can take it out any more. So each carries its number, and an event with a number that is not
 * in the set has the epoll made anew. What is not closed and not wanted any more ends in the same way: by its descriptor
 * it could not be taken out, for that may be another's by now. */
#include "pool/poll_set.h"
#include "base/descriptor.h"
#include "base/poll.h"
#include "pool/times.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 32 /* reported at a time; the others are reported by the next wait */
_Static_assert(POLLIN == EPOLLIN && POLLOUT == EPOLLOUT && POLLERR == EPOLLERR && POLLHUP == EPOLLHUP &&
                   POLLRDHUP == EPOLLRDHUP, "epoll's events are those of poll()");

struct watched {
    struct hfi_polled polled; /* number 0: the epoll does not know it */
    hfi_ready_fn *ready;
    void *self;
    uint32_t turn;
};

bool hfi_poll_set_init(struct hfi_poll_set *set, size_t most)
{
    *set = (struct hfi_poll_set){.capacity = 2 * most, .again_ns = HFI_NEVER}; /* those of two turns */
    set->all = calloc(set->capacity, sizeof *set->all);
    set->epoll_fd = hfi_descriptor(epoll_create1(EPOLL_CLOEXEC));
    return set->all != NULL && set->epoll_fd >= 0;
}

void hfi_poll_set_done(struct hfi_poll_set *set)
{
    if (set->epoll_fd >= 0)
        (void)close(set->epoll_fd);
    free(set->all);
}

static struct watched *find(struct hfi_poll_set *set, int fd)
{
    for (size_t i = 0; i < set->count; i++) {
        size_t at = (set->next + i) % set->count;
        if (set->all[at].polled.fd == fd) {
            set->next = at + 1;
            return &set->all[at];
        }
    }
    return NULL;
}

static bool tell(const struct hfi_poll_set *set, const struct hfi_polled *polled, bool is_new)
{
    struct epoll_event event = {.events = (unsigned short)polled->events,
                                .data.u64 = (uint64_t)polled->number << 32 | (uint32_t)polled->fd};
    if (epoll_ctl(set->epoll_fd, is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, polled->fd, &event) == 0)
        return true;
    /* The same descriptor by another number: a dial's socket that has become a connection's. */
    return is_new && errno == EEXIST && epoll_ctl(set->epoll_fd, EPOLL_CTL_MOD, polled->fd, &event) == 0;
}

void hfi_poll_set_add(struct hfi_poll_set *set, struct hfi_polled polled, hfi_ready_fn *ready, void *self)
{
    struct watched *one = polled.fd >= 0 ? find(set, polled.fd) : NULL;
    if (polled.fd < 0 || (one == NULL && set->count == set->capacity)) /* not reached: there is room for two turns' */
        return;
    if (one == NULL) {
        one = &set->all[set->count++];
        *one = (struct watched){.polled = {.fd = polled.fd}};
    }
    bool is_new = one->polled.number != polled.number;
    if ((is_new || one->polled.events != polled.events) && !tell(set, &polled, is_new)) {
        polled.number = 0;
        hfi_poll_set_again(set, set->now_ns + HFI_UNWATCHED_NS);
    }
    *one = (struct watched){polled, ready, self, set->turn};
}

void hfi_poll_set_again(struct hfi_poll_set *set, int64_t at_ns)
{
    if (at_ns < set->again_ns)
        set->again_ns = at_ns;
}

void hfi_poll_set_begin(struct hfi_poll_set *set, int64_t now_ns)
{
    set->turn++;
    set->now_ns = now_ns;
    set->again_ns = HFI_NEVER;
    set->next = 0;
}

void hfi_poll_set_end(struct hfi_poll_set *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (set->all[i].turn == set->turn)
            set->all[kept++] = set->all[i];
    }
    set->count = kept;
}

static bool has_unwatched(const struct hfi_poll_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->all[i].polled.number == 0)
            return true;
    return false;
}

bool hfi_poll_set_wait(struct hfi_poll_set *set, const struct hfi_clock *clock)
{
    /* epoll_wait counts milliseconds, and some of our sleeps are half of one. */
    struct pollfd any = {set->epoll_fd, POLLIN, 0};
    bool is_ready = hfi_poll_until(&any, 1, clock, set->again_ns) > 0;
    return is_ready || has_unwatched(set);
}

/* `stray` is reported though it is not in the set; -1: what is, has a number of the set's. */
static void make_anew(struct hfi_poll_set *set, int stray)
{
    int fd = hfi_descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (fd < 0) { /* it would be reported on and on; if the descriptor is another's by now, the epoll does not know it */
        (void)epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, stray, NULL);
        return;
    }
    int before = set->epoll_fd;
    set->epoll_fd = fd; /* before close(): a child forked in between must not close a descriptor that was reused */
    (void)close(before);
    for (size_t i = 0; i < set->count; i++)
        set->all[i].polled.number = 0;
}

static void look_at_unwatched(const struct hfi_poll_set *set, int64_t now_ns)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct watched *one = &set->all[i];
        struct pollfd fd = {one->polled.fd, one->polled.events, 0};
        if (one->polled.number == 0 && one->ready != NULL && poll(&fd, 1, 0) == 1)
            one->ready(one->self, fd.revents, now_ns);
    }
}

void hfi_poll_set_dispatch(struct hfi_poll_set *set, int64_t now_ns)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(set->epoll_fd, events, EVENTS, 0);
    bool is_stale = false;
    int stray = -1;
    for (int i = 0; i < count; i++) {
        int fd = (int)(uint32_t)events[i].data.u64;
        const struct watched *one = find(set, fd);
        stray = one == NULL ? fd : stray;
        if (one == NULL || one->polled.number != (uint32_t)(events[i].data.u64 >> 32))
            is_stale = true;
        else if (one->ready != NULL)
            one->ready(one->self, (short)events[i].events, now_ns);
    }
    look_at_unwatched(set, now_ns);
    if (is_stale)
        make_anew(set, stray);
}
