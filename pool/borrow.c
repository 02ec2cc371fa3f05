/* SPDX-License-Identifier: MIT */
/* borrow.c - lends a connection, waits for one, takes it back. */
#include "pool/borrow.h"
#include "base/park.h"
#include "base/perturb.h"
#include "base/random.h"
#include "pool/borrow_private.h"
#include "pool/borrowers.h"
#include "pool/dial.h"
#include "pool/listener.h"
#include "pool/pool_private.h"
#include "pool/reset.h"
#include "pool/times.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <unistd.h>

#define LIFETIME_JITTER 0.1

struct waiter { /* on the stack of the waiting thread */
    struct hfi_list link;
    struct hfi_park park;
    int64_t since_ns;
    struct hfi_borrowed *granted;
    bool may_dial, closed;
};

struct hfi_borrowers *hfi_borrowers_new(struct hfi_peer *peer)
{
    struct hfi_deployment *deployment = peer->deployment;
    int slots = deployment->settings.max_connections > 0 ? deployment->settings.max_connections : 1;
    struct hfi_borrowers *all = calloc(1, sizeof *all + (size_t)slots * sizeof all->fds[0]);
    if (all == NULL)
        return NULL;
    all->peer = peer;
    all->deployment = deployment;
    all->slots = slots;
    all->references = 1;
    for (int i = 0; i < slots; i++)
        atomic_init(&all->fds[i], -1);
    hfi_mutex_init(&all->mutex, HFI_RANK_LEAF);
    hfi_list_init(&all->idle);
    hfi_list_init(&all->out);
    hfi_list_init(&all->waiters);
    all->rng = (uint64_t)(uintptr_t)all ^ (uint64_t)hfi_now(&hfi_boottime);
    hfi_backoff_init(&all->backoff, hfi_rng_next(&all->rng));
    return all;
}

static void unref_locked(struct hfi_borrowers *all)
{
    bool last = --all->references == 0;
    hfi_borrowers_unlock(all);
    if (!last)
        return;
    hfi_mutex_destroy(&all->mutex);
    free(all);
}

void hfi_borrow_destroy(struct hfi_borrowed *borrowed)
{
    if (borrowed == NULL)
        return;
    /* Cleared before the close(): a child forked in between must not close a reused descriptor. */
    bool is_ours = atomic_exchange(&borrowed->borrowers->fds[borrowed->slot], -1) >= 0, is_sealed = borrowed->connection.tls != NULL;
    if (!is_ours || !is_sealed) /* then hiredis has it */
        borrowed->connection.fd = -1;
    if (!is_ours || is_sealed)
        borrowed->context->fd = -1;
    borrowed->connection.transport->close(&borrowed->connection);
    redisFree(borrowed->context);
    free(borrowed);
}

void hfi_borrow_pass_on_right_locked(struct hfi_borrowers *all)
{
    if (hfi_list_is_empty(&all->waiters)) {
        all->total--;
        return;
    }
    struct waiter *waiter = hfi_list_first(&all->waiters, struct waiter, link);
    hfi_list_remove(&waiter->link);
    waiter->may_dial = true;
    hfi_park_wake(&waiter->park);
}

void hfi_borrow_pass_on_locked(struct hfi_borrowers *all, struct hfi_borrowed *borrowed, int64_t now_ns)
{
    borrowed->idle_since_ns = now_ns;
    if (hfi_list_is_empty(&all->waiters)) {
        hfi_list_append(&all->idle, &borrowed->link);
        all->idle_count++;
        return;
    }
    struct waiter *waiter = hfi_list_first(&all->waiters, struct waiter, link);
    hfi_list_remove(&waiter->link);
    waiter->granted = borrowed;
    hfi_park_wake(&waiter->park);
}

struct hfi_borrowed *hfi_borrow_take_idle_locked(struct hfi_borrowers *all, struct hfi_list *link)
{
    struct hfi_borrowed *borrowed = hfi_container_of(link, struct hfi_borrowed, link);
    hfi_list_remove(link);
    all->idle_count--;
    return borrowed;
}

bool hfi_borrow_is_current(const struct hfi_borrowers *all, unsigned redirections)
{
    return atomic_load(&all->peer->redirections) == redirections;
}

struct hfi_borrowed *hfi_borrow_wrap(struct hfi_borrowers *all, struct hfi_connection connection, unsigned redirections,
                                     int64_t now_ns)
{
    const struct hfi_pool_settings *settings = &all->deployment->settings;
    struct hfi_borrowed *borrowed = calloc(1, sizeof *borrowed);
    struct redisContext *context = borrowed != NULL ? redisConnectFd(connection.fd) : NULL;
    bool is_sealed = connection.tls != NULL;
    int fd = connection.fd, flags = is_sealed ? 0 : fcntl(fd, F_GETFL);
    if (context == NULL || flags < 0 || (!is_sealed && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0)) {
        if (context != NULL)
            context->fd = -1;
        redisFree(context);
        connection.transport->close(&connection);
        free(borrowed);
        return NULL;
    }
    *borrowed = (struct hfi_borrowed){
        .borrowers = all, .context = context, .connection = connection, .redirections = redirections, .dies_ns = HFI_NEVER};
    if (is_sealed)
        hfi_borrow_seal(borrowed);
    hfi_list_init(&borrowed->link);
    int none = -1;
    while (!atomic_compare_exchange_strong(&all->fds[borrowed->slot], &none, fd)) {
        none = -1;
        borrowed->slot = (borrowed->slot + 1) % all->slots;
    }
    if (settings->lifetime_ms > 0) {
        hfi_borrowers_lock(all);
        borrowed->dies_ns =
            hfi_after_ms(now_ns, hfi_jitter(&all->rng, settings->lifetime_ms, LIFETIME_JITTER));
        hfi_borrowers_unlock(all);
    }
    return borrowed;
}

static bool set_timeout(const struct hfi_borrowed *borrowed)
{
    int64_t ms = borrowed->borrowers->deployment->settings.command_ms;
    struct timeval length = {(time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000)};
    return redisSetTimeout(borrowed->context, length) == REDIS_OK;
}

static hf_status closed(const struct hfi_peer *peer, hf_error *error)
{
    (void)hfi_fail(error, HF_CLOSED, NULL, "the client of %s is closed", peer->name);
    return HF_CLOSED;
}

/* The caller has the right to dial. */
static hf_status dial(struct hfi_borrowers *all, struct hfi_borrowed **borrowed, hf_error *error)
{
    struct hfi_deployment *deployment = all->deployment;
    hf_error why;
    struct hfi_connection connection;
    int64_t now_ns = hfi_now(deployment->clock);
    hfi_borrowers_lock(all);
    if (now_ns < all->down_until_ns) {
        if (error != NULL)
            *error = all->why;
        hf_status status = all->why.status;
        hfi_borrowers_unlock(all);
        return status;
    }
    all->dialing++;
    hfi_borrowers_unlock(all);
    HFI_PERTURB("borrow-to-dial");
    unsigned redirections = atomic_load(&all->peer->redirections);
    hf_status status = hfi_dial_now(all->peer, hfi_after_ms(now_ns, deployment->settings.connect_ms), &connection, &why);
    now_ns = hfi_now(deployment->clock);
    if (status == HF_OK) {
        *borrowed = hfi_borrow_wrap(all, connection, redirections, now_ns);
        if (*borrowed == NULL)
            status = hfi_fail(&why, HF_NOMEM, NULL, "no memory for a connection to %s", all->peer->name);
    }
    hfi_borrowers_lock(all);
    all->dialing--;
    if (status == HF_OK) {
        all->down_until_ns = 0;
        hfi_backoff_up(&all->backoff, now_ns);
    } else if (all->closed) {
        status = closed(all->peer, &why);
    } else {
        all->down_until_ns = hfi_backoff_next_ns(&all->backoff, now_ns);
        all->why = why;
    }
    hfi_borrowers_unlock(all);
    return hfi_fail_by(error, status, &why);
}

/* May this connection, idle until now, be lent? */
static bool is_fit(struct hfi_borrowers *all, struct hfi_borrowed *borrowed)
{
    int64_t now_ns = hfi_now(all->deployment->clock);
    if (now_ns >= borrowed->dies_ns || !hfi_borrow_is_current(all, borrowed->redirections) ||
        !hfi_reset_is_quiet(&borrowed->connection))
        return false;
    if (now_ns - borrowed->idle_since_ns < HFI_CHECK_AFTER_NS)
        return true;
    hfi_borrowers_lock(all);
    all->testing++;
    hfi_borrowers_unlock(all);
    int64_t until_ns = hfi_after_ms(now_ns, all->deployment->settings.command_ms);
    bool fit = hfi_reset_ping(all->peer, &borrowed->connection, until_ns);
    hfi_borrowers_lock(all);
    all->testing--;
    hfi_borrowers_unlock(all);
    return fit;
}

/* Queues the caller until it is handed a connection (*granted) or the right to dial (*granted is NULL). */
static hf_status wait_locked(struct hfi_borrowers *all, int64_t until_ns, struct hfi_borrowed **granted,
                             hf_error *error)
{
    struct hfi_deployment *deployment = all->deployment;
    int64_t now_ns = hfi_now(deployment->clock);
    if (until_ns <= now_ns)
        return hfi_fail(error, HF_BUSY, "raise max_connections, or wait (wait_ms)",
                        "all %d connections are borrowed", all->slots);
    struct waiter me = {.since_ns = now_ns};
    hfi_park_init(&me.park);
    hfi_list_append(&all->waiters, &me.link);
    all->waiting++;
    bool in_time = true;
    while (in_time && me.granted == NULL && !me.may_dial && !me.closed) {
        uint32_t epoch = hfi_park_epoch(&me.park);
        hfi_borrowers_unlock(all);
        in_time = hfi_park_wait(&me.park, epoch, until_ns);
        HFI_PERTURB("borrow-woken");
        hfi_borrowers_lock(all);
    }
    all->waiting--;
    hfi_list_remove(&me.link);
    *granted = me.granted;
    if (me.granted != NULL || me.may_dial)
        return HF_OK;
    if (me.closed)
        return closed(all->peer, error);
    return hfi_fail(error, HF_TIMEOUT, "raise max_connections, or return connections sooner",
                    "all %d connections stayed borrowed for %lld ms", all->slots,
                    (long long)((hfi_now(deployment->clock) - me.since_ns) / HFI_MS));
}

static void lend_locked(struct hfi_borrowers *all, struct hfi_borrowed *borrowed)
{
    borrowed->out_since_ns = hfi_now(all->deployment->clock);
    borrowed->reported = false;
    hfi_list_append(&all->out, &borrowed->link);
    all->out_count++;
    all->references++;
}

hf_status hfi_borrow(struct hfi_pool *pool, int64_t until_ns, struct hfi_borrowed **out, hf_error *error)
{
    struct hfi_borrowers *all = pool->borrowers;
    struct hfi_borrowed *borrowed = NULL;
    hf_status status = HF_OK;
    bool first = false;
    *out = NULL;
    if (HIREDIS_MAJOR < 1 && pool->deployment.secure != NULL)
        return hfi_fail(error, HF_INVALID, "use hf_command, which goes over TLS too",
                        "this hiredis cannot borrow a connection of TLS");
    hfi_borrowers_lock(all);
    if (all->closed)
        status = closed(all->peer, error);
    else if (!hfi_list_is_empty(&all->idle))
        borrowed = hfi_borrow_take_idle_locked(all, all->idle.prev);
    else if (hfi_list_is_empty(&all->waiters) && all->total < all->slots)
        first = all->total++ == 0;
    else
        status = wait_locked(all, until_ns, &borrowed, error);
    hfi_borrowers_unlock(all);
    if (status != HF_OK)
        return status;
    if (first)
        hfi_listener_kick(pool->listener); /* while `total` was 0, it slept with no maintenance due */

    /* From here on this thread has the right to one connection. An unfit one from the stack is replaced by a new
     * one, not by the next in the stack, which has idled longer. */
    if (borrowed != NULL && !is_fit(all, borrowed)) {
        hfi_borrow_destroy(borrowed);
        borrowed = NULL;
    }
    if (borrowed == NULL)
        status = dial(all, &borrowed, error);
    if (status == HF_OK && !set_timeout(borrowed))
        status = hfi_fail(error, HF_UNAVAILABLE, NULL, "cannot set the timeout of a connection to %s",
                          all->peer->name);
    if (status != HF_OK) { /* before the right passes on: its next owner needs a free slot */
        hfi_borrow_destroy(borrowed);
        borrowed = NULL;
    }
    hfi_borrowers_lock(all);
    if (status == HF_OK)
        lend_locked(all, borrowed);
    else
        hfi_borrow_pass_on_right_locked(all);
    hfi_borrowers_unlock(all);
    *out = borrowed;
    return status;
}

struct redisContext *hfi_borrowed_context(struct hfi_borrowed *borrowed)
{
    return borrowed->context;
}

/* No data is pending in either direction, and it is still the connection that was lent. */
static bool is_clean(struct hfi_borrowed *borrowed)
{
    const struct redisContext *context = borrowed->context;
    const struct redisReader *reader = context->reader;
    int fd = borrowed->connection.fd, flags = borrowed->connection.tls != NULL ? 0 : fcntl(fd, F_GETFL);
    return context->err == 0 && context->fd == fd && flags >= 0 && (flags & O_NONBLOCK) == 0 &&
           (context->flags & REDIS_BLOCK) != 0 && reader != NULL && reader->err == 0 &&
           reader->pos == reader->len && reader->ridx < 0 &&
           (context->obuf == NULL || sdslen(context->obuf) == 0) && hfi_reset_is_quiet(&borrowed->connection);
}

static void come_back(struct hfi_borrowed *borrowed, bool try_reset)
{
    struct hfi_borrowers *all = borrowed->borrowers;
    hfi_borrowers_lock(all);
    hfi_list_remove(&borrowed->link);
    all->out_count--;
    try_reset = try_reset && !all->closed && hfi_borrow_is_current(all, borrowed->redirections);
    all->testing += try_reset ? 1 : 0;
    hfi_borrowers_unlock(all);

    int64_t now_ns = 0;
    HFI_PERTURB("borrow-returned");
    bool good = false;
    if (try_reset) {
        struct hfi_deployment *deployment = all->deployment;
        now_ns = hfi_now(deployment->clock);
        good = now_ns < borrowed->dies_ns && is_clean(borrowed) &&
               hfi_reset(all->peer, &borrowed->connection, hfi_after_ms(now_ns, deployment->settings.command_ms));
    }
    if (!good)
        hfi_borrow_destroy(borrowed);
    hfi_borrowers_lock(all);
    all->testing -= try_reset ? 1 : 0;
    if (good)
        hfi_borrow_pass_on_locked(all, borrowed, now_ns);
    else
        hfi_borrow_pass_on_right_locked(all);
    unref_locked(all);
}

void hfi_borrow_return(struct hfi_borrowed *borrowed)
{
    come_back(borrowed, true);
}

void hfi_borrow_discard(struct hfi_borrowed *borrowed)
{
    come_back(borrowed, false);
}

void hfi_borrow_forked(struct hfi_borrowed *borrowed)
{
    hfi_borrow_destroy(borrowed);
}

void hfi_borrowers_count(struct hfi_borrowers *all, struct hfi_pool_counts *counts)
{
    hfi_borrowers_lock(all);
    int64_t now_ns = hfi_now(all->deployment->clock);
    uint64_t used = 0;
    for (const struct hfi_list *link = all->idle.next; link != &all->idle; link = link->next)
        used +=
            now_ns - hfi_container_of(link, const struct hfi_borrowed, link)->idle_since_ns >= HFI_CHECK_AFTER_NS ? 1 : 0;
    counts->cl_active = counts->sv_active = (uint64_t)all->out_count;
    counts->cl_waiting = (uint64_t)all->waiting;
    counts->sv_idle = (uint64_t)all->idle_count - used;
    counts->sv_used = used;
    counts->sv_tested = (uint64_t)all->testing;
    counts->sv_login = (uint64_t)all->dialing;
    counts->maxwait_us = 0;
    if (!hfi_list_is_empty(&all->waiters))
        counts->maxwait_us =
            (uint64_t)(now_ns - hfi_list_first(&all->waiters, struct waiter, link)->since_ns) / 1000;
    hfi_borrowers_unlock(all);
}

void hfi_borrow_end(struct hfi_pool *pool)
{
    struct hfi_borrowers *all = pool->borrowers;
    hfi_borrowers_lock(all);
    all->closed = true;
    while (!hfi_list_is_empty(&all->waiters)) {
        struct waiter *waiter = hfi_list_first(&all->waiters, struct waiter, link);
        hfi_list_remove(&waiter->link);
        waiter->closed = true;
        hfi_park_wake(&waiter->park);
    }
    hfi_borrowers_unlock(all);
}

void hfi_borrowers_close(struct hfi_borrowers *all)
{
    hfi_dial_end(&all->dial);
    hfi_borrowers_lock(all);
    while (!hfi_list_is_empty(&all->idle)) {
        struct hfi_borrowed *borrowed = hfi_borrow_take_idle_locked(all, all->idle.prev);
        all->total--;
        hfi_borrowers_unlock(all);
        hfi_borrow_destroy(borrowed);
        hfi_borrowers_lock(all);
    }
    hfi_borrowers_unlock(all);
}

void hfi_borrowers_free(struct hfi_borrowers *all)
{
    if (all == NULL)
        return;
    hfi_borrowers_lock(all);
    unref_locked(all);
}

void hfi_borrowers_forked(struct hfi_borrowers *all)
{
    for (int i = 0; i < all->slots; i++) {
        int fd = atomic_exchange(&all->fds[i], -1);
        if (fd >= 0)
            (void)close(fd);
    }
    hfi_dial_forked(all->dial);
}
