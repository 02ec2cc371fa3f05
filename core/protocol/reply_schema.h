/* SPDX-License-Identifier: MIT */
/* reply_schema.h - what the answers of our scripts look like, to the last element. Pure. An answer of another form says that the
 * stream of replies is out of step: the next one, whole as it may look, could be the answer to something else. */
#ifndef HFI_REPLY_SCHEMA_H
#define HFI_REPLY_SCHEMA_H

#include "pool/command.h"

/* None is asked about errors. */
hfi_reply_validator hfi_schema_native, hfi_schema_acquire, hfi_schema_release, hfi_schema_more, hfi_schema_fill, hfi_schema_floor,
    hfi_schema_break, hfi_schema_forget, hfi_schema_look;
hfi_reply_validator hfi_schema_renew, hfi_schema_recheck; /* command->expects elements */

#endif
