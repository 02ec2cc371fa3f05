/* SPDX-License-Identifier: MIT */
/* script.h - a Lua script as the build embeds it (core/scripts). */
#ifndef HFI_SCRIPT_H
#define HFI_SCRIPT_H

#include <stddef.h>

/* The source is `part`, with which several scripts begin, and then `own`. */
struct hfi_script {
    const char *name;
    const char *sha1; /* 40 hex digits, of both together */
    const char *part, *own;
    size_t      part_size, own_size;
};

/* Both together, and a 0. The caller frees it. NULL: no memory. */
char *hfi_script_source(const struct hfi_script *script);

#endif
