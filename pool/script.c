/* SPDX-License-Identifier: MIT */
/* script.c - see script.h. */
#include "pool/script.h"

#include <stdlib.h>
#include <string.h>

char *hfi_script_copy(const struct hfi_script *script, char *to)
{
    for (int i = 0; i < HFI_SCRIPT_PIECES && script->pieces[i].size > 0; i++) {
        memcpy(to, script->text + script->pieces[i].from, script->pieces[i].size);
        to += script->pieces[i].size;
    }
    return to;
}

char *hfi_script_source(const struct hfi_script *script)
{
    char *source = malloc(script->size + 1);
    if (source != NULL)
        *hfi_script_copy(script, source) = 0;
    return source;
}
