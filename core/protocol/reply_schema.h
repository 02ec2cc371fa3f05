/* SPDX-License-Identifier: MIT */
/* reply_schema.h - the form of our scripts' replies, to the last element. Pure. A reply of another form means that the
 * reply stream is out of step: the next reply, however well-formed, may belong to another command. */
#ifndef HFI_REPLY_SCHEMA_H
#define HFI_REPLY_SCHEMA_H

#include "pool/command.h"

/* No validator is called for an error reply. */
hfi_reply_validator hfi_schema_acquire, hfi_schema_acquire_permits, hfi_schema_release, hfi_schema_more, hfi_schema_take_many,
    hfi_schema_fill, hfi_schema_floor, hfi_schema_break, hfi_schema_forget, hfi_schema_forget_tag, hfi_schema_look,
    hfi_schema_downgrade;
hfi_reply_validator hfi_schema_native, hfi_schema_renew, hfi_schema_recheck; /* of command->element_count elements */

#endif
