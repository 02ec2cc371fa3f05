/* SPDX-License-Identifier: MIT */
/* script_source.c - see script_source.h. */
#include "tests/support/script_source.h"

#include <stdlib.h>

#define SCRIPTS_MOST 256

const char *hft_script_source(const struct hfi_script *script)
{
    static struct {
        const struct hfi_script *script;
        char *source;
    } known[SCRIPTS_MOST];
    size_t at = 0;
    while (at < SCRIPTS_MOST && known[at].script != script && known[at].script != NULL)
        at++;
    if (at == SCRIPTS_MOST)
        abort();
    if (known[at].script == NULL) {
        known[at].script = script;
        known[at].source = hfi_script_source(script);
    }
    return known[at].source;
}
