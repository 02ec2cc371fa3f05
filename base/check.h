/* SPDX-License-Identifier: MIT */
/* check.h - invariants between two steps of our own code. Development builds (HOLDFAST_CHECKED) abort where one does
 * not hold; in every other build a check compiles to nothing, and never ends a user's process. */
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
