/* SPDX-License-Identifier: MIT */
/* blame.h - which command of a script the server refused: Redis 7 says only on which line. Pure. */
#ifndef HFI_BLAME_H
#define HFI_BLAME_H

#include "base/error.h"
#include "core/scripts.h"

/* Adds the command's name to a message about the script's error reply, where the reply tells the line. */
void hfi_blame(const char *reply, const struct hfi_script *script, hf_error *error);

#endif
