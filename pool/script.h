/* SPDX-License-Identifier: MIT */
/* script.h - a Lua script as the build embeds it (core/scripts). */
#ifndef HFI_SCRIPT_H
#define HFI_SCRIPT_H

#include <stddef.h>

#define HFI_SCRIPT_PIECES 3

/* The source is its pieces, one after the other: its own beginning, what several scripts have in them, the rest. */
struct hfi_script {
    const char *name;
    const char *sha1; /* 40 hex digits, of the whole */
    size_t      size;
    struct {
        const char *text;
        size_t      size;
    } pieces[HFI_SCRIPT_PIECES];
};

char *hfi_script_copy(const struct hfi_script *script, char *to); /* `size` bytes; where they end */
/* A copy, and a 0. The caller frees it. NULL: no memory. */
char *hfi_script_source(const struct hfi_script *script);

#endif
