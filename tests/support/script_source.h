/* SPDX-License-Identifier: MIT */
/* script_source.h - the source of a script, for tests that send it to a server themselves. */
#ifndef HFT_SCRIPT_SOURCE_H
#define HFT_SCRIPT_SOURCE_H

#include "pool/script.h"

/* Returns the same pointer every time, for the life of the process. Only one thread may call. */
const char *hft_script_source(const struct hfi_script *script);

#endif
