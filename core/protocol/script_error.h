/* SPDX-License-Identifier: MIT */
/* script_error.h - which command of a script, or which key, an error is about. */
#ifndef HFI_SCRIPT_ERROR_H
#define HFI_SCRIPT_ERROR_H

#include "core/protocol/key.h"
#include "pool/script.h"

/* Redis 7 names only the line of a script on which it refused a command. If `reply` names a line, appends that
 * command's name to error->message, which is about this reply. */
void hfi_script_error_annotate(const char *reply, const struct hfi_script *script, hf_error *error);
/* Fails with FOREIGN and names the key that belongs to another program. `which`: a word of hfi_wire_foreign. */
hf_status hfi_script_error_key(const struct hfi_keys *keys, const char *which, hf_error *error);

#endif
