/* SPDX-License-Identifier: MIT */
/* members.h - waits for members of a set (a dialect's `is_member`). A key event tells that the set has changed, not which member
 * is out: one question about all that are waited for tells. */
#ifndef HFI_MEMBERS_H
#define HFI_MEMBERS_H

#include "core/context/context.h"

/* The set of this dialect has changed: those that wait for a member that is out now ask the server soon. No mutex held. */
void hfi_members_changed(hf_client *client, const struct hfi_dialect *dialect);
void hfi_members_kicked(hf_client *client); /* the listener, after hfi_pool_kick */
void hfi_members_free(hf_client *client); /* with the client */

#endif
