/* SPDX-License-Identifier: MIT */
/* script.h - a Lua script as the build embeds it (core/scripts). */
#ifndef HFI_SCRIPT_H
#define HFI_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_SCRIPT_PIECES 12

/* The source is the concatenation of its pieces, which are places in a text that all scripts share. Those that it lacks have
 * no size. */
struct hfi_script {
    const char *name;
    char        sha1[41]; /* hex digits, of the whole source */
    const char *text;
    uint32_t    size;
    struct {
        uint16_t from, size;
    } pieces[HFI_SCRIPT_PIECES];
    const struct hfi_script *other; /* the same with the other clock; NULL: it asks for no time */
    bool by_key; /* its clock is a key, for servers that refuse TIME in scripts */
};

char *hfi_script_copy(const struct hfi_script *script, char *to); /* copies `size` bytes, returns their end */
/* A copy that ends with a NUL. The caller frees it. NULL: no memory. */
char *hfi_script_source(const struct hfi_script *script);
/* The name of the command in the line of the script that an error names, "..., on @user_script:11.". False: it names none. */
bool hfi_script_command(const struct hfi_script *script, const char *error, char *command, size_t capacity);
/* The error says that the script may not ask for the time. Until it asks a script has only read, so nothing has been done. */
bool hfi_script_lacks_time(const struct hfi_script *script, const char *error);
/* The error says that the script may not read the key that is its clock. */
bool hfi_script_lacks_key(const struct hfi_script *script, const char *error);

#endif
