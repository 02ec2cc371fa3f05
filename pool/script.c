/* SPDX-License-Identifier: MIT */
/* script.c - see script.h. */
#include "pool/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct hfi_script *hfi_script_other(const struct hfi_script *script)
{
    return script->clock == HFI_ASKS_NOTHING ? NULL : script->clock == HFI_ASKS_TIME ? script + 1 : script - 1;
}

char *hfi_script_copy(const struct hfi_script *script, char *to)
{
    for (int i = 0; i < HFI_SCRIPT_PIECES && script->pieces[i] > 0; i++) {
        const struct hfi_piece *piece = &script->text->pieces[script->pieces[i]];
        memcpy(to, script->text->bytes + piece->from, piece->size);
        to += piece->size;
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

static const char *line_of(const char *source, long number)
{
    const char *line = source;
    while (line != NULL && --number > 0) {
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return line;
}

bool hfi_script_command(const struct hfi_script *script, const char *error, char *command, size_t capacity)
{
    static const char mark[] = "@user_script:", call[] = "call('";
    const char *at = strstr(error, mark);
    char *source = at != NULL ? hfi_script_source(script) : NULL;
    const char *line = source != NULL ? line_of(source, strtol(at + strlen(mark), NULL, 10)) : NULL;
    const char *word = line != NULL ? strstr(line, call) : NULL;
    bool names = word != NULL && word < line + strcspn(line, "\n");
    if (names) {
        word += strlen(call);
        (void)snprintf(command, capacity, "%.*s", (int)strcspn(word, "'"), word);
    }
    free(source);
    return names;
}

static bool fails_at(const struct hfi_script *script, const char *error, const char *command)
{
    char named[16];
    return hfi_script_command(script, error, named, sizeof named) && strcmp(named, command) == 0;
}

bool hfi_script_lacks_time(const struct hfi_script *script, const char *error)
{
    /* To all scripts; to this user's, by Redis 6 and 7.0, by later ones and Valkey; renamed by the operator, by both. */
    static const char *const refusals[] = {"not allowed from script", "The user executing the script can't run",
                                           "ACL failure in script", "command called from"};
    const char *refusal = NULL;
    for (size_t i = 0; script->clock == HFI_ASKS_TIME && i < sizeof refusals / sizeof refusals[0] && refusal == NULL; i++)
        refusal = strstr(error, refusals[i]);
    if (refusal == NULL)
        return false;
    if (strstr(error, "@user_script:") == NULL) /* a service of its own words; none of the other commands is ever refused so */
        return strstr(error, refusals[0]) != NULL;
    return fails_at(script, error, "TIME");
}

bool hfi_script_lacks_key(const struct hfi_script *script, const char *error)
{
    return script->clock == HFI_ASKS_KEY && fails_at(script, error, "PEXPIRETIME");
}
