/* SPDX-License-Identifier: MIT */
/* script.h - a Lua script as the build embeds it (core/scripts). */
#ifndef HFI_SCRIPT_H
#define HFI_SCRIPT_H

#include <stddef.h>

#define HFI_SCRIPT_PIECES 5

/* The source is the concatenation of its pieces: the script's own beginning, up to three parts that several scripts share,
 * the rest. Those that it lacks are NULL. */
struct hfi_script {
    const char *name;
    const char *sha1; /* 40 hex digits, of the whole source */
    size_t      size;
    struct {
        const char *text;
        size_t      size;
    } pieces[HFI_SCRIPT_PIECES];
};

char *hfi_script_copy(const struct hfi_script *script, char *to); /* copies `size` bytes, returns their end */
/* A copy that ends with a NUL. The caller frees it. NULL: no memory. */
char *hfi_script_source(const struct hfi_script *script);

#endif
