/* SPDX-License-Identifier: MIT */
/* script_source.h - the text of a script, for tests that hand it to a server themselves. */
#ifndef HFT_SCRIPT_SOURCE_H
#define HFT_SCRIPT_SOURCE_H

#include "pool/script.h"

/* The same pointer every time, for the life of the process. One thread's. */
const char *hft_script_source(const struct hfi_script *script);

#endif
