/* SPDX-License-Identifier: MIT */
/* script.h - a Lua script as the build embeds it (core/scripts). */
#ifndef HFI_SCRIPT_H
#define HFI_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFI_SCRIPT_PIECES 18

enum hfi_script_clock {
    HFI_ASKS_NOTHING,
    HFI_ASKS_TIME,
    HFI_ASKS_KEY /* for servers that refuse TIME in scripts */
};

struct hfi_piece {
    uint16_t from, size;
};

/* All scripts together: their pieces are places in one text. The first one is empty. A pointer in each script would cost four times
 * what a number does, with what the loader has to know of it. */
struct hfi_script_text {
    const char *bytes;
    const struct hfi_piece *pieces;
    const char *names;
};

struct hfi_script {
    const struct hfi_script_text *text;
    uint16_t size;
    uint16_t name;     /* where it begins in the names */
    uint8_t  clock;    /* HFI_ASKS_ */
    uint8_t  pieces[HFI_SCRIPT_PIECES]; /* their numbers; one after the other they are the source; 0: no more */
    char     sha1[41]; /* hex digits, of the source */
};

/* The same with the other clock; NULL: it asks for no time. The build puts the two of them into an array. */
const struct hfi_script *hfi_script_other(const struct hfi_script *script);

static inline const char *hfi_script_name(const struct hfi_script *script)
{
    return script->text->names + script->name;
}

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
