/* SPDX-License-Identifier: MIT */
/* announce.h - a holder with an owner_label says on its lock's channel that the lock has changed hands, for those who
 * watch (election.h). A hint: losing it only delays observers. Called with the lock's mutex held. */
#ifndef HFI_ANNOUNCE_H
#define HFI_ANNOUNCE_H

#include "core/lock/lock.h"

/* Its token has the lock: said once for each token. */
void hfi_announce_hold(struct hfi_lock *lock, int64_t now);
/* The release of the token is listed: the same lane carries this behind it. Nothing is said that hold did not begin. */
void hfi_announce_end(struct hfi_lock *lock, int64_t now);

#endif
