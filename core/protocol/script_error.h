/* SPDX-License-Identifier: MIT */
/* script_error.h - what exactly a refusal is about. Pure. */
#ifndef HFI_SCRIPT_ERROR_H
#define HFI_SCRIPT_ERROR_H

#include "core/protocol/key.h"
#include "pool/script.h"

/* Redis 7 says only on which line of a script it refused a command. Adds the command's name to a message about the
 * script's error reply, where the reply tells the line. */
void hfi_script_error_annotate(const char *reply, const struct hfi_script *script, hf_error *error);
/* FOREIGN: names the key that is another program's; `which` by the word that hfi_wire_foreign knows. */
hf_status hfi_script_error_key(const struct hfi_keys *keys, const char *which, hf_error *error);

#endif
