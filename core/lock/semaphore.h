/* SPDX-License-Identifier: MIT */
/* semaphore.h - what the calls that take permits check. */
#ifndef HFI_SEMAPHORE_H
#define HFI_SEMAPHORE_H

#include "core/context/context.h"
#include "core/protocol/name.h"

#include <holdfast/lock.h>

/* The options and the name of an acquire of permits, checked, with defaults. */
hf_status hfi_semaphore_prepare(hf_client *client, const char *text, int limit, int permits, const hf_lock_options *given,
                                hf_lock_options *options, struct hfi_name *name, hf_error *error);

#endif
