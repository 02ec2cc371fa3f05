/* SPDX-License-Identifier: MIT */
/*
 * borrow_private.h - what borrow.c (lend, wait, return) and borrow_maintain.c (the listener's part) share: the state of
 * each borrowed connection. It is idle (in the stack, newest on top), out (with a borrower), under test or reset (by
 * one thread), or being dialled. `total` counts all of them and is at most max_connections. A returned connection goes
 * to the longest waiter. If a connection is destroyed instead, the longest waiter gets the right to dial.
 */
#ifndef HFI_BORROW_PRIVATE_H
#define HFI_BORROW_PRIVATE_H

#include "base/list.h"
#include "base/mutex.h"
#include "pool/backoff.h"
#include "pool/peer.h"
#include "pool/transport.h"

struct hfi_dial;
struct redisContext;

struct hfi_borrowed {
    unsigned redirections; /* the peer's when it was dialled: with another number it goes to another server */
    struct hfi_borrowers *borrowers;
    struct redisContext *context;
    struct hfi_list link; /* in `idle` or `out` */
    struct hfi_connection connection; /* as dialled: the user may have reconnected the context */
    int slot;             /* its index in `fds` */
    int64_t dies_ns, idle_since_ns, out_since_ns;
    bool reported; /* already logged as out for too long */
};

struct hfi_borrowers {
    struct hfi_peer *peer; /* not to be used after close, like the next one */
    struct hfi_deployment *deployment;
    struct hfi_mutex mutex; /* guards all below except `fds` */
    struct hfi_list idle, out, waiters;
    int total, idle_count, out_count, testing, dialing, waiting;
    int references; /* one for the pool, one for each connection that is out */
    bool closed;
    unsigned fill_redirections; /* as in hfi_borrowed, of the listener's own dial */
    uint64_t rng;
    struct hfi_backoff backoff;
    int64_t down_until_ns; /* the last dial failed: no thread dials before this */
    hf_error why;
    struct hfi_dial *dial;  /* the listener's own, for min_connections */
    int64_t maintain_at_ns; /* the listener's own */
    /* Every connection's descriptor, or -1. A fork child closes them without the mutex. */
    int slots;
    _Atomic(int) fds[];
};

/* borrow_check.c, in builds for development alone */
#ifdef HFI_CHECKED
void hfi_borrowers_check_locked(const struct hfi_borrowers *all);
#else
#define hfi_borrowers_check_locked(all) ((void)0)
#endif

static inline void hfi_borrowers_lock(struct hfi_borrowers *all)
{
    hfi_mutex_lock(&all->mutex);
}

static inline void hfi_borrowers_unlock(struct hfi_borrowers *all)
{
    hfi_borrowers_check_locked(all);
    hfi_mutex_unlock(&all->mutex);
}

/* borrow_sealed.c: hiredis is to read and write through the connection's transport. */
void hfi_borrow_seal(struct hfi_borrowed *borrowed);

/* borrow.c; _locked: with `mutex` held, the others without it */
/* Makes a context of a connection that has passed the handshake. NULL: no memory, it is closed. A slot is
 * always free: there is one for each connection that is allowed. */
/* redirections: of the peer, before the dial. */
struct hfi_borrowed *hfi_borrow_wrap(struct hfi_borrowers *all, struct hfi_connection connection, unsigned redirections,
                                     int64_t now_ns);
bool hfi_borrow_is_current(const struct hfi_borrowers *all, unsigned redirections); /* no other server is meant since */
void hfi_borrow_destroy(struct hfi_borrowed *borrowed); /* closes and frees it; NULL is a no-op */
/* Takes the connection of this link out of the idle ones. */
struct hfi_borrowed *hfi_borrow_take_idle_locked(struct hfi_borrowers *all, struct hfi_list *link);
/* The connection passes to the longest waiter, or becomes idle. */
void hfi_borrow_pass_on_locked(struct hfi_borrowers *all, struct hfi_borrowed *borrowed, int64_t now_ns);
/* The right to have one connection passes to the longest waiter, or is given up. */
void hfi_borrow_pass_on_right_locked(struct hfi_borrowers *all);

#endif
