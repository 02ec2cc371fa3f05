/* SPDX-License-Identifier: MIT */
/* script.c - see script.h. */
#include "pool/script.h"

#include <stdlib.h>
#include <string.h>

char *hfi_script_source(const struct hfi_script *script)
{
    char *source = malloc(script->part_size + script->own_size + 1);
    if (source == NULL)
        return NULL;
    memcpy(source, script->part, script->part_size);
    memcpy(source + script->part_size, script->own, script->own_size + 1);
    return source;
}
