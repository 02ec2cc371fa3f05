/* SPDX-License-Identifier: MIT */
/* blame.c - see blame.h. "..., on @user_script:11." and the eleventh line of the source give the name. */
#include "core/blame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *line_of(const struct hfi_script *script, long number)
{
    const char *line = script->source;
    while (line != NULL && --number > 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return line;
}

void hfi_blame(const char *reply, const struct hfi_script *script, hf_error *error)
{
    static const char mark[] = "on @user_script:", call[] = "call('";
    const char *at = strstr(reply, mark);
    if (error == NULL || at == NULL || error->status != HF_DENIED)
        return;
    const char *line = line_of(script, strtol(at + strlen(mark), NULL, 10));
    const char *word = line != NULL ? strstr(line, call) : NULL;
    if (word == NULL || word > line + strcspn(line, "\n"))
        return;
    word += strlen(call);
    size_t used = strlen(error->message);
    (void)snprintf(error->message + used, sizeof error->message - used, ", which is %.*s", (int)strcspn(word, "'"), word);
}
