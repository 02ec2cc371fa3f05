/* SPDX-License-Identifier: MIT */
/* check.h - what must hold between two steps of ours. Builds for development (HOLDFAST_CHECKED) stop where it does not;
 * in every other build a check is nothing at all, and never ends a user's process. */
#ifndef HFI_CHECK_H
#define HFI_CHECK_H

#ifdef HFI_CHECKED
#undef NDEBUG
#include <assert.h>
#define HFI_CHECK(what) assert(what)
#else
#define HFI_CHECK(what) ((void)0)
#endif

#endif
