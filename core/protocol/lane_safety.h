/* SPDX-License-Identifier: MIT */
/* lane_safety.h - which commands a shared connection cannot carry. Pure. */
#ifndef HFI_LANE_SAFETY_H
#define HFI_LANE_SAFETY_H

#include <stddef.h>

/* NULL: a shared connection can carry the command. Else what the command would do to it, as the end of a sentence. argc
 * is at least 1. */
const char *hfi_lane_unsafe(int argc, const char *const *argv, const size_t *sizes);

#endif
