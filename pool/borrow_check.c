/* SPDX-License-Identifier: MIT */
/* borrow_check.c - what holds of the borrowed connections whenever their mutex is given back; builds for development stop
 * where it does not. */
#include "pool/borrow_private.h"

#ifdef HFI_CHECKED
void hfi_borrowers_check_locked(const struct hfi_borrowers *all)
{
    HFI_ASSERT_HELD(&all->mutex);
    HFI_CHECK(hfi_list_length(&all->idle) == all->idle_count);
    HFI_CHECK(hfi_list_length(&all->out) == all->out_count);
    HFI_CHECK(hfi_list_length(&all->waiters) <= all->waiting); /* a waiter that was served is in no list */
    /* The rest of `total` is in the hands of threads, on its way from one of these counts to another. */
    HFI_CHECK(all->idle_count + all->out_count + all->testing + all->dialing <= all->total);
    HFI_CHECK(all->total <= all->slots);
    /* The pool gives its own reference back after close, or when it could not be opened. */
    HFI_CHECK(all->out_count < all->references || all->closed || all->references == 0);
    if (!hfi_list_is_empty(&all->waiters))
        HFI_CHECK(!all->closed && all->idle_count == 0 && all->total == all->slots);
}
#endif
