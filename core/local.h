/* SPDX-License-Identifier: MIT */
/* local.h - the values of hf_fetch that this process saw last, at most local_bytes of them, oldest use out first. */
#ifndef HFI_LOCAL_H
#define HFI_LOCAL_H

#include "core/client.h"

bool hfi_local_open(hf_client *client); /* false: no memory */
void hfi_local_free(hf_client *client);
/* True in a thread that is running a loader of this client. */
bool hfi_loader_is_inside(const hf_client *client);

#endif
