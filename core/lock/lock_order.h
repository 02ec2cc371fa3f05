/* SPDX-License-Identifier: MIT */
/* lock_order.h - for .check_order: what each owner holds, and a report at the first acquire whose order could end in a
 * deadlock. The client has none (NULL) while the option is off, and the callers then call nothing here. */
#ifndef HFI_LOCK_ORDER_H
#define HFI_LOCK_ORDER_H

#include "core/lock/lock.h"

#include <stdio.h>

struct hfi_lock_order;

struct hfi_lock_order *hfi_lock_order_new(void); /* NULL: no memory */
void hfi_lock_order_free(struct hfi_lock_order *order); /* no lease is listed; NULL is a no-op */

/* The owner (0: nobody, and nothing happens) is about to acquire the lock, whether or not it would wait. Logs, so no mutex is held. */
void hfi_lock_order_wanted(struct hfi_lock *lock, uint64_t owner, const char *order_class);
/* True: the lock's class, if the options give none, is its whole name, so that no other lock is of that class. */
bool hfi_lock_order_is_alone(const struct hfi_lock *lock);
/* Lists the lease for its owner; once, however often it is re-entered. */
void hfi_lock_order_held(hf_lease *lease, const char *order_class);
/* Its owner has changed. Any mutex of a lower rank may be held. */
void hfi_lock_order_moved(hf_lease *lease);
/* It is being released: called once, while its memory is certain. */
void hfi_lock_order_released(hf_lease *lease);

void hfi_lock_order_dump(struct hfi_lock_order *order, FILE *out);

#endif
