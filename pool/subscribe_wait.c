/* SPDX-License-Identifier: MIT */
/* subscribe_wait.c - for any thread: it wants channels; while it waits for a message it polls the subscribers' sockets
 * itself. */
#include "base/perturb.h"
#include "base/descriptor.h"
#include "base/poll.h"
#include "pool/channels.h"
#include "pool/listener.h"
#include "pool/subscribe.h"
#include "pool/subscribe_private.h"

#include <stdatomic.h>

#define SOCKETS_MOST 8 /* subscribers that a waiting thread polls */
#define IN_VAIN_MOST 4 /* receives without being woken, after which that thread sleeps like the others */

/* ---- the role ---- */

bool hfi_subscribers_take_role(struct hfi_subscribers *all)
{
    return !atomic_exchange(&all->reading, true);
}

void hfi_subscribers_give_role(struct hfi_subscribers *all)
{
    atomic_store(&all->reading, false);
    HFI_PERTURB("ear-back-to-missed");
    if (atomic_exchange(&all->missed, false))
        hfi_listener_kick(all->listener);
}

/* ---- waiting ---- */

static nfds_t list_sockets(struct hfi_subscribers *all, struct pollfd *on)
{
    nfds_t count = 0;
    if (!hfi_subscribers_take_role(all))
        return 0;
    for (int i = 0; i < all->count && count < SOCKETS_MOST; i++)
        if (all->list[i].connection.fd >= 0 && all->list[i].wrong == NULL)
            on[count++] = (struct pollfd){all->list[i].connection.fd, POLLIN, 0};
    hfi_subscribers_give_role(all);
    return count;
}

/* Receives on every connection. False: the listener has the role. */
static bool poll_inline(struct hfi_subscribers *all)
{
    if (!hfi_subscribers_take_role(all))
        return false;
    int64_t now_ns = hfi_now(all->deployment->clock);
    for (int i = 0; i < all->count; i++) {
        struct hfi_subscriber *one = &all->list[i];
        if (one->connection.fd < 0 || one->wrong != NULL)
            continue;
        one->wrong = hfi_subscriber_receive(one, now_ns);
        if (one->wrong != NULL)
            atomic_store(&all->missed, true);
    }
    hfi_subscribers_give_role(all);
    return true;
}

static void sleep_on(const struct hfi_subscribers *all, struct pollfd *on, nfds_t count, struct hfi_park *park,
                     uint32_t epoch, int64_t until_ns)
{
    hfi_park_kick(park, all->wake_fd);
    HFI_PERTURB("ear-named-to-poll");
    if (!hfi_park_is_woken(park, epoch))
        (void)hfi_poll_until(on, count, all->deployment->clock, until_ns);
    hfi_park_kick(park, -1);
}

bool hfi_subscribers_wait(struct hfi_subscribers *all, struct hfi_park *park, uint32_t epoch, int64_t until_ns,
                          const _Atomic(int) *in_flight, int *in_vain)
{
    bool has_asked = false;
    struct pollfd on[1 + SOCKETS_MOST] = {{all->wake_fd, POLLIN, 0}};
    if (atomic_exchange(&all->polled_inline, true))
        return hfi_park_wait(park, epoch, until_ns);
    nfds_t sockets = list_sockets(all, on + 1);
    while (sockets > 0 && *in_vain < IN_VAIN_MOST && !has_asked && !hfi_park_is_woken(park, epoch)) {
        bool readable = false;
        if (until_ns != HFI_NEVER && hfi_now(all->deployment->clock) >= until_ns)
            break;
        sleep_on(all, on, 1 + sockets, park, epoch, until_ns);
        for (nfds_t i = 1; i <= sockets; i++)
            readable = readable || on[i].revents != 0;
        if (on[0].revents != 0) {
            hfi_event_clear(all->wake_fd);
        } else if (readable && !poll_inline(all)) {
            break;
        }
        *in_vain += readable;
        has_asked = readable && atomic_load(in_flight) > 0;
        for (nfds_t i = 0; i <= sockets; i++)
            on[i].revents = 0;
    }
    atomic_store(&all->polled_inline, false);
    return hfi_park_is_woken(park, epoch) || (!has_asked && hfi_park_wait(park, epoch, until_ns));
}

bool hfi_subscribers_want(struct hfi_subscribers *subscribers, const char *name, size_t size)
{
    bool changed, ok = hfi_channels_want(subscribers->channels, name, size, &changed);
    HFI_PERTURB("wanted-to-kick");
    if (changed)
        hfi_listener_kick(subscribers->listener);
    return ok;
}

void hfi_subscribers_unwant(struct hfi_subscribers *subscribers, const char *name, size_t size)
{
    bool changed;
    hfi_channels_unwant(subscribers->channels, name, size, &changed);
    if (changed)
        hfi_listener_kick(subscribers->listener);
}

void hfi_subscribers_prove(struct hfi_subscribers *subscribers)
{
    if (!atomic_exchange(&subscribers->prove, true))
        hfi_listener_kick(subscribers->listener);
}

int64_t hfi_subscribers_tracker_id(const struct hfi_subscribers *subscribers)
{
    return atomic_load(&subscribers->list[subscribers->count - 1].client_id);
}
