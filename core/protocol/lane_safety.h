/* SPDX-License-Identifier: MIT */
/* lane_safety.h - which commands a connection that many share cannot carry. Pure. */
#ifndef HFI_LANE_SAFETY_H
#define HFI_LANE_SAFETY_H

#include <stddef.h>

/* NULL: it can carry this one. Else what the command would do, as the end of a sentence. argc is at least 1. */
const char *hfi_lane_unsafe(int argc, const char *const *argv, const size_t *sizes);

#endif
