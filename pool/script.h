/* SPDX-License-Identifier: MIT */
/* script.h - a Lua script as the build embeds it (core/scripts). */
#ifndef HFI_SCRIPT_H
#define HFI_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#define HFI_SCRIPT_PIECES 12

/* The source is the concatenation of its pieces, which are places in a text that all scripts share. Those that it lacks have
 * no size. */
struct hfi_script {
    const char *name;
    const char *sha1; /* 40 hex digits, of the whole source */
    const char *text;
    uint32_t    size;
    struct {
        uint16_t from, size;
    } pieces[HFI_SCRIPT_PIECES];
};

char *hfi_script_copy(const struct hfi_script *script, char *to); /* copies `size` bytes, returns their end */
/* A copy that ends with a NUL. The caller frees it. NULL: no memory. */
char *hfi_script_source(const struct hfi_script *script);

#endif
